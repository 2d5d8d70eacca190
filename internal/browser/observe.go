package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/cdp"
)

// DefaultMaxText bounds Observation.Text when View.MaxText is 0.
const DefaultMaxText = 256 << 10

// maxHTML bounds Observation.HTML. Raw documents hold inlined scripts and pictures
// that no reader of an observation wants in full.
const maxHTML = 4 << 20

// agentWorld evaluates in the isolated world that holds the observer.
type agentWorld interface {
	evalAgent(ctx context.Context, expr string, out any) error
}

// readPage fills in what the page says: URL, title, focus, text and, if wanted,
// elements and HTML.
func readPage(ctx context.Context, w agentWorld, v View, o *Observation) error {
	var raw string
	expr := "P.observe({max:" + strconv.Itoa(textLimit(v)) + ",elements:" + strconv.FormatBool(v.Elements) + proofOption(v) + v.kept.option() + "})"
	if err := w.evalAgent(ctx, expr, &raw); err != nil {
		return fmt.Errorf("observe page: %w", err)
	}
	frames, err := decodePage(raw, v.kept, o)
	if err != nil {
		return fmt.Errorf("observe page: %w", err)
	}
	if fw, ok := w.(frameWorlds); ok && len(frames) > 0 {
		if err := readFrames(ctx, fw, v, o, frames, nil); err != nil {
			return err
		}
	}
	if !v.HTML {
		return nil
	}
	if err := w.evalAgent(ctx, "P.html("+strconv.Itoa(maxHTML)+")", &o.HTML); err != nil {
		return fmt.Errorf("read html: %w", err)
	}
	return nil
}

func proofOption(v View) string {
	if v.proof {
		return ",proof:true"
	}
	return ""
}

func textLimit(v View) int {
	if v.MaxText <= 0 {
		return DefaultMaxText
	}
	return v.MaxText
}

// pageHead is the first line of what the observer returns.
type pageHead struct {
	URL       string         `json:"url"`
	Title     string         `json:"title"`
	Focused   string         `json:"focused"`
	Truncated bool           `json:"truncated"`
	Elements  int            `json:"elements"`
	Foreign   []foreignFrame `json:"foreign"`
	Kept      *unchanged     `json:"kept"`
}

// decodePage reads the observer's answer: a line of JSON, one line for each element
// with tabs between its fields, then the text. It is not JSON as a whole, since the
// protocol wraps it in JSON once already and a second layer costs more than the
// walk over a small page. Of a text that k holds in its form before, only what has changed
// may come.
func decodePage(raw string, k *kept, o *Observation) ([]foreignFrame, error) {
	line, rest, ok := strings.Cut(raw, "\n")
	if !ok {
		return nil, errors.New("the observer's answer has no head")
	}
	var head pageHead
	if err := json.Unmarshal([]byte(line), &head); err != nil {
		return nil, fmt.Errorf("the observer's head: %w", err)
	}
	o.URL, o.Title, o.FocusedBid, o.Truncated = head.URL, head.Title, head.Focused, head.Truncated
	o.Elements = nil
	if n := strings.Count(rest, "\n"); head.Elements < 0 || head.Elements > n {
		return nil, fmt.Errorf("the observer promised %d elements in %d lines", head.Elements, n)
	}
	if head.Elements > 0 {
		o.Elements = make([]Element, head.Elements)
	}
	for i := range o.Elements {
		line, rest, _ = strings.Cut(rest, "\n")
		if err := decodeElement(line, &o.Elements[i]); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	text, err := k.take(rest, head.Kept)
	if err != nil {
		return nil, err
	}
	o.Text = text
	return head.Foreign, nil
}

// elementFields is how many fields 41_lines.js writes for an element.
const elementFields = 11

func decodeElement(line string, e *Element) error {
	var f [elementFields]string
	for i := range f {
		var more bool
		f[i], line, more = strings.Cut(line, "\t")
		if more != (i < elementFields-1) {
			return fmt.Errorf("want %d fields, got another number", elementFields)
		}
	}
	e.Bid, e.Role, e.Name, e.Value, e.Tag = f[0], f[1], unescape(f[2]), unescape(f[3]), f[9]
	if f[4] != "" {
		e.State = strings.Split(f[4], ",")
	}
	for i := range e.Box {
		n, err := strconv.Atoi(f[5+i])
		if err != nil {
			return fmt.Errorf("box: %w", err)
		}
		e.Box[i] = n
	}
	bits, err := strconv.Atoi(f[10])
	if err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	e.Interactive, e.InViewport = bits&1 != 0, bits&2 != 0
	return nil
}

var unescaper = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r")

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return unescaper.Replace(s)
}

// axFrame is the browser's own accessibility tree of one frame.
type axFrame struct {
	FrameID string          `json:"frameId"`
	URL     string          `json:"url"`
	Nodes   json.RawMessage `json:"nodes"`
}

type frameTree struct {
	Frame struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	} `json:"frame"`
	Children []frameTree `json:"childFrames"`
}

// axTree asks the browser for its accessibility tree, frame by frame. It costs ten
// times as much as the observer's text and is for people who compare or port.
func axTree(ctx context.Context, s *cdp.Session) (json.RawMessage, error) {
	var tree struct {
		FrameTree frameTree `json:"frameTree"`
	}
	if err := s.Call(ctx, "Page.getFrameTree", nil, &tree); err != nil {
		return nil, fmt.Errorf("read frame tree: %w", err)
	}
	var frames []axFrame
	for todo := []frameTree{tree.FrameTree}; len(todo) > 0; {
		f := todo[0]
		todo = append(todo[1:], f.Children...)
		var ax struct {
			Nodes json.RawMessage `json:"nodes"`
		}
		params := map[string]string{"frameId": f.Frame.ID}
		if err := s.Call(ctx, "Accessibility.getFullAXTree", params, &ax); err != nil {
			return nil, fmt.Errorf("read accessibility tree of %s: %w", f.Frame.URL, err)
		}
		frames = append(frames, axFrame{FrameID: f.Frame.ID, URL: f.Frame.URL, Nodes: ax.Nodes})
	}
	out, err := json.Marshal(map[string]any{"frames": frames})
	if err != nil {
		return nil, fmt.Errorf("write accessibility tree: %w", err)
	}
	return out, nil
}
