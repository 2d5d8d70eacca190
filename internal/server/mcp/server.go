package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

const instructions = `You operate a web application in a real browser. Call observe first: it tells the task. Each tool acts on the page and
answers with the page as it is then. Elements are named by the bid in brackets. Call finish when the task is done.`

// Config of a Server.
type Config struct {
	// Episode is the one that a request may act on, and who has it; header is nil on stdio.
	// It may wait until there is one.
	Episode func(ctx context.Context, header http.Header) (gym.Sessions, string, error)
	// Log must not be nil.
	Log *slog.Logger
	// Count is told of each call and how it ended; nil counts nothing.
	Count func(call string, err error, took time.Duration)
	// Version of the server.
	Version string
}

// Server answers agents.
type Server struct {
	cfg Config
	sdk *sdk.Server
}

// New makes a server. It holds nothing that needs closing.
func New(c Config) *Server {
	if c.Count == nil {
		c.Count = func(string, error, time.Duration) {}
	}
	s := &Server{cfg: c}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "pommel", Title: "Pommel", Version: c.Version}, &sdk.ServerOptions{
		Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}, Logger: c.Log,
	})
	for _, t := range Tools() {
		s.sdk.AddTool(&sdk.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.Name == ObserveTool, IdempotentHint: t.Name == ObserveTool},
		}, s.call)
	}
	return s
}

// Handler answers over streamable HTTP. Who may call is the business of what stands
// before it; so are Host and Origin.
func (s *Server) Handler() http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: s.cfg.Log, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxRequest,
	})
	return checked(h)
}

// Serve answers one client over a pair of streams until it leaves or ctx ends.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := s.sdk.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// call carries out one tool call.
func (s *Server) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	start := time.Now()
	res, err := s.dispatch(ctx, req)
	s.cfg.Count(CallName(req.Params.Name), err, time.Since(start))
	if err != nil {
		return failed(err), nil
	}
	return res, nil
}

func (s *Server) dispatch(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var header http.Header
	if req.Extra != nil {
		header = req.Extra.Header
	}
	sessions, id, err := s.cfg.Episode(ctx, header)
	if err != nil {
		return nil, err
	}
	st, err := sessions.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	if req.Params.Name == ObserveTool {
		head, o, err := Observe(ctx, sessions, st)
		if err != nil {
			return nil, err
		}
		return look(head, o), nil
	}
	text, err := ActionString(req.Params.Name, req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	n, err := stepNumber(req.Params.Meta)
	if err != nil {
		return nil, err
	}
	r, err := sessions.Step(ctx, id, n, text, st.View)
	if err != nil {
		return nil, err
	}
	return fromStep(r), nil
}

// Observe looks at the page of an episode without a step; head is its task.
func Observe(ctx context.Context, sessions gym.Sessions, st *gym.Status) (head string, o *gym.Observation, err error) {
	if st.Last.Done() {
		return "", nil, fault.New(fault.EpisodeOver, "the episode has ended")
	}
	o, err = sessions.Observe(ctx, st.EpisodeID, st.View)
	return "Task: " + st.Instruction + "\n", o, err
}

// stepNumber is "step" in the request's _meta: with it a repeated call is carried out once.
func stepNumber(meta sdk.Meta) (int, error) {
	v, ok := meta["step"]
	if !ok {
		return 0, nil
	}
	n, ok := v.(float64)
	if j, isNumber := v.(json.Number); isNumber {
		f, err := j.Float64()
		n, ok = f, err == nil
	}
	if !ok || n < 0 || n != float64(int(n)) {
		return 0, fault.New(fault.InvalidArgument, "_meta.step is %v; want the number of the step, from 1", v)
	}
	return int(n), nil
}

// failed tells the agent what it must know and the harness, in _meta, what it may act on.
func failed(err error) *sdk.CallToolResult {
	e := wire.ErrorOf(err)
	text := e.String()
	switch {
	case e.Void():
		text = "The environment failed, which is not your doing. The episode cannot go on: " + text
	case e.Kind == fault.EpisodeOver || e.Kind == fault.StaleEpisode:
		text = "The episode has ended; no more actions are taken."
	}
	return &sdk.CallToolResult{
		IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}},
		Meta: sdk.Meta{"kind": string(e.Kind), "void": e.Void(), "done": e.Void() || e.Kind == fault.EpisodeOver || e.Kind == fault.StaleEpisode},
	}
}
