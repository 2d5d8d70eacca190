// Package client drives a Pommel server from a Go program. It needs nothing of the
// engine: no browser, no database.
//
//	c, err := client.Dial("127.0.0.1:7777", client.Options{})
//	...
//	defer c.Close()
//	s, err := c.Session(ctx)
//	...
//	defer s.Close()
//	r, err := s.Reset(ctx, client.Request{Task: "buy-item", Seed: 7})
//	for err == nil && !r.Done() {
//		r, err = s.Step(ctx, agent(r.Observation))
//	}
//
// A Session is one agent's environment. It numbers its steps, so that a broken
// connection costs nothing: it connects again and asks again, and the server makes
// no step twice.
//
// # Failure
//
// Every error is an *Error with a Kind; KindOf reads it. What an agent does wrong is
// no error: it stands in the observation as LastActionError. Kinds for which
// Kind.Void is true mean that the infrastructure failed: leave the episode out of the
// training data, and Reset.
package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gen/pommel/v1/pommelv1connect"
)

// The messages of the API. Their fields are described in proto/pommel/v1/gym.proto.
type (
	// Observation is what the agent sees.
	Observation = pommelv1.Observation
	// Element is one meaningful node of the page.
	Element = pommelv1.Element
	// Tab is one open page.
	Tab = pommelv1.Tab
	// Dialog is an open JavaScript dialog.
	Dialog = pommelv1.Dialog
	// Image is a screenshot.
	Image = pommelv1.Image
	// ActionError says why an action did not take effect.
	ActionError = pommelv1.ActionError
	// Info is for the trainer, not for the agent.
	Info = pommelv1.Info
	// Stage is one milestone of a task.
	Stage = pommelv1.Stage
	// Perturbation is something that was put in the agent's way.
	Perturbation = pommelv1.Perturbation
	// Timing says where a call's wall time went.
	Timing = pommelv1.Timing
	// View says which optional parts observations should hold.
	View = pommelv1.View
	// Task describes one task of the server's world.
	Task = pommelv1.Task
	// EpisodeStatus tells how far an episode is.
	EpisodeStatus = pommelv1.GetEpisodeResponse
	// ServerInfo describes the server.
	ServerInfo = pommelv1.GetServerResponse
)

const (
	// maxMessage bounds one answer; the server keeps its answers below it.
	maxMessage     = 64 << 20
	defaultRetries = 5
)

// Options of a Client; the zero value is for a server on this machine.
type Options struct {
	// Token is the server's token, if it has one.
	Token string
	// TLS configures https addresses; nil is the default configuration.
	TLS *tls.Config
	// Name is this caller's name in the server's logs and traces.
	Name string
	// Retries is how often a Session connects again after a broken connection before it
	// gives up: 0 is 5, negative is never.
	Retries int
	// Heartbeat renews the leases of Sessions in the background, for agents that think for
	// longer than the lease.
	Heartbeat bool
}

// Client talks to one server. It may be used by many goroutines.
type Client struct {
	rpc       pommelv1connect.GymServiceClient
	transport *http.Transport
	opts      Options
}

// Dial makes a client for addr: "host:port", an http or https URL, or "unix:/path".
// It does not connect yet; the first call does.
func Dial(addr string, o Options) (*Client, error) {
	base, dial, err := parse(addr)
	if err != nil {
		return nil, err
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(true)
	transport := &http.Transport{
		Protocols:       &protocols,
		TLSClientConfig: o.TLS.Clone(),
		DialContext:     dial,
		IdleConnTimeout: 10 * time.Minute,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: 1 << 20,
			// A server whose host vanished sends no farewell.
			SendPingTimeout: 15 * time.Second,
			PingTimeout:     15 * time.Second,
		},
	}
	rpc := pommelv1connect.NewGymServiceClient(&http.Client{Transport: whole{authorized{transport, o.Token}}}, base,
		connect.WithReadMaxBytes(maxMessage),
		// Packing a page of text takes longer than sending it.
		connect.WithAcceptCompression("gzip", nil, nil),
	)
	return &Client{rpc: rpc, transport: transport, opts: o}, nil
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func parse(addr string) (base string, dial dialFunc, err error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	bad := func(err error) (string, dialFunc, error) {
		return "", nil, &Error{Kind: InvalidArgument, Message: fmt.Sprintf("address %q; want host:port, a URL or unix:/path", addr), Err: err}
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path == "" {
			return bad(nil)
		}
		return "http://localhost", func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}, nil
	}
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	switch {
	case err != nil:
		return bad(err)
	case u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https", u.Path != "" && u.Path != "/":
		return bad(nil)
	}
	return strings.TrimRight(addr, "/"), d.DialContext, nil
}

// authorized sends the token along.
type authorized struct {
	next  http.RoundTripper
	token string
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.next.RoundTrip(r)
}

// Close drops idle connections. Sessions are closed by themselves.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Server describes the server.
func (c *Client) Server(ctx context.Context) (*ServerInfo, error) {
	return typed(c.rpc.GetServer(ctx, &pommelv1.GetServerRequest{}))
}

// Tasks lists the tasks of a split and a difficulty; empty means all.
func (c *Client) Tasks(ctx context.Context, split, difficulty string) ([]*Task, error) {
	r, err := typed(c.rpc.ListTasks(ctx, &pommelv1.ListTasksRequest{Split: split, Difficulty: difficulty}))
	return r.GetTasks(), err
}

// The calls below are the bare RPCs, for callers that keep episode ids and step
// numbers themselves. They are not repeated after a broken connection.

// Reset starts an episode.
func (c *Client) Reset(ctx context.Context, r *pommelv1.ResetRequest) (*pommelv1.ResetResponse, error) {
	return typed(c.rpc.Reset(ctx, r))
}

// Step performs one action string.
func (c *Client) Step(ctx context.Context, r *pommelv1.StepRequest) (*pommelv1.StepResponse, error) {
	return typed(c.rpc.Step(ctx, r))
}

// Checkpoint saves the state of an episode and returns its name.
func (c *Client) Checkpoint(ctx context.Context, r *pommelv1.CheckpointRequest) (string, error) {
	got, err := typed(c.rpc.Checkpoint(ctx, r))
	return got.GetCheckpointId(), err
}

// Restore puts an episode back to a checkpoint.
func (c *Client) Restore(ctx context.Context, r *pommelv1.RestoreRequest) (*pommelv1.RestoreResponse, error) {
	return typed(c.rpc.Restore(ctx, r))
}

// Forget frees a checkpoint. One that is not held is no error.
func (c *Client) Forget(ctx context.Context, episodeID, checkpointID string) error {
	_, err := typed(c.rpc.Forget(ctx, &pommelv1.ForgetRequest{EpisodeId: episodeID, CheckpointId: checkpointID}))
	return err
}

// Observe looks again without acting.
func (c *Client) Observe(ctx context.Context, episodeID string, v *View) (*Observation, error) {
	r, err := typed(c.rpc.Observe(ctx, &pommelv1.ObserveRequest{EpisodeId: episodeID, View: v}))
	return r.GetObservation(), err
}

// Episode tells how far an episode is, and gives the token with which an agent acts on it through MCP.
func (c *Client) Episode(ctx context.Context, episodeID string) (*EpisodeStatus, error) {
	return typed(c.rpc.GetEpisode(ctx, &pommelv1.GetEpisodeRequest{EpisodeId: episodeID}))
}

// Heartbeat renews the lease of an episode and returns its length.
func (c *Client) Heartbeat(ctx context.Context, episodeID string) (time.Duration, error) {
	r, err := typed(c.rpc.Heartbeat(ctx, &pommelv1.HeartbeatRequest{EpisodeId: episodeID}))
	return time.Duration(r.GetLeaseMs()) * time.Millisecond, err
}

// CloseEpisode frees the world of an episode. Closing twice is no error.
func (c *Client) CloseEpisode(ctx context.Context, episodeID string) error {
	_, err := typed(c.rpc.Close(ctx, &pommelv1.CloseRequest{EpisodeId: episodeID}))
	return err
}
