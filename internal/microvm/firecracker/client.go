package firecracker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// Client is one Firecracker. Its methods may be called at once; Firecracker answers in turn.
type Client struct {
	http *http.Client
	// Version is what it says of itself.
	Version string
}

// Error is a request's failure as Firecracker says it.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"fault_message"`
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("it answered with status %d", e.Status)
	}
	return e.Message
}

// maxAnswer bounds an answer.
const maxAnswer = 1 << 20

// Connect waits for a Firecracker to listen on a socket, and asks for its version. ended, which may be
// nil, ends the wait with its process.
func Connect(ctx context.Context, socket string, ended <-chan struct{}) (*Client, error) {
	c := &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		// One after the other is all that it serves.
		MaxConnsPerHost: 1,
	}}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ended:
			cancel(errors.New("it ended before it listened"))
		case <-ctx.Done():
		}
	}()
	err := sys.WaitFolder(ctx, filepath.Dir(socket), func() (bool, error) { return c.greet(ctx) })
	if err != nil {
		c.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("speak to firecracker: %w", err)
	}
	return c, nil
}

// refusedPause is for the moment between the two calls that make a socket and have it listened on,
// of which the second changes nothing that could be watched.
const refusedPause = time.Millisecond

// greet says whether there is somebody, and notes the version.
func (c *Client) greet(ctx context.Context) (bool, error) {
	for {
		var v struct {
			Version string `json:"firecracker_version"`
		}
		err := c.do(ctx, http.MethodGet, "/version", nil, &v)
		switch {
		case err == nil:
			c.Version = v.Version
			return true, nil
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case !errors.Is(err, syscall.ECONNREFUSED):
			return false, err
		}
		select {
		case <-time.After(refusedPause):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// do makes one request. in and out may be nil.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("firecracker %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return fmt.Errorf("firecracker %s %s: %w", method, path, err)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("firecracker %s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = answer(resp.StatusCode, text, out)
	}
	if err != nil {
		return fmt.Errorf("firecracker %s %s: %w", method, path, err)
	}
	return nil
}

// answer takes an answer apart: 200 with a body, 204 without, anything else is a fault.
func answer(status int, text []byte, out any) error {
	if status != http.StatusOK && status != http.StatusNoContent {
		e := &Error{Status: status}
		if err := json.Unmarshal(text, e); err != nil {
			e.Message = ""
		}
		return e
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("it answered what is no JSON: %w", err)
	}
	return nil
}

// Close lets go of the connection. The process ends with its sandbox.
func (c *Client) Close() { c.http.CloseIdleConnections() }
