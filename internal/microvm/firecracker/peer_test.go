package firecracker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// peer plays Firecracker, as its API is described: what it takes in which state, fields that a body
// must and may have, and answers with 204, 200 or 400 and a fault's message.
type peer struct {
	t      *testing.T
	socket string

	mu    sync.Mutex
	asked []string          // guarded by mu
	state string            // guarded by mu
	put   map[string]string // guarded by mu; bodies by path
	fail  map[string]string // guarded by mu; messages by path
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, socket: filepath.Join(t.TempDir(), "api"), state: "Not started", put: map[string]string{}, fail: map[string]string{}}
	return p
}

// listen is apart: a process takes its time until it does.
func (p *peer) listen() {
	p.t.Helper()
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &http.Server{Handler: p}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	p.t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
}

// fields are those that a body must have (with !) and may have.
var fields = map[string]string{
	"PUT /machine-config":  "vcpu_count! mem_size_mib! smt track_dirty_pages cpu_template huge_pages",
	"PUT /boot-source":     "kernel_image_path! initrd_path boot_args",
	"PUT /drives/":         "drive_id! is_root_device! is_read_only path_on_host partuuid cache_type rate_limiter io_engine socket",
	"PUT /vsock":           "guest_cid! uds_path! vsock_id",
	"PUT /actions":         "action_type!",
	"PATCH /vm":            "state!",
	"PUT /snapshot/create": "mem_file_path! snapshot_path! snapshot_type",
	"PUT /snapshot/load":   "snapshot_path! mem_backend mem_file_path enable_diff_snapshots track_dirty_pages resume_vm network_overrides vsock_override clock_realtime",
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	name := r.Method + " " + r.URL.Path
	p.asked = append(p.asked, strings.TrimSpace(name+" "+string(body)))
	w.Header().Set("Content-Type", "application/json")
	if why := p.refusal(name, r.Header, body); why != "" {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"fault_message": why})
		return
	}
	switch name {
	case "GET /version":
		fmt.Fprint(w, `{"firecracker_version": "1.16.0"}`)
	case "GET /":
		fmt.Fprintf(w, `{"app_name": "Firecracker", "id": "anonymous-instance", "state": %q, "vmm_version": "1.16.0"}`, p.state)
	default:
		p.put[r.URL.Path] = string(body)
		w.WriteHeader(http.StatusNoContent)
	}
}

const (
	afterStart  = "The requested operation is not supported after starting the microVM."
	beforeStart = "The requested operation is not supported before starting the microVM."
)

// refusal is called with mu held. It also carries out what changes the state.
func (p *peer) refusal(name string, h http.Header, body []byte) string {
	if why := p.fail[name]; why != "" {
		return why
	}
	if strings.HasPrefix(name, "GET ") {
		return ""
	}
	if got := h.Get("Content-Type"); got != "application/json" {
		return "Invalid content type " + got
	}
	kind := name
	if strings.HasPrefix(name, "PUT /drives/") {
		kind = "PUT /drives/"
	}
	got, why := parse(kind, body)
	if why != "" {
		return why
	}
	started := p.state != "Not started"
	switch kind {
	case "PUT /machine-config", "PUT /boot-source", "PUT /vsock":
		if started {
			return afterStart
		}
	case "PUT /drives/":
		if started {
			return afterStart
		}
		if name != kind+got["drive_id"].(string) {
			return "The id from the path does not match the id from the body!"
		}
	case "PUT /actions":
		if started {
			return afterStart
		}
		if p.put["/boot-source"] == "" {
			return "Cannot start microvm without kernel configuration."
		}
		p.state = "Running"
	case "PATCH /vm":
		if !started {
			return beforeStart
		}
		p.state = map[string]string{"Paused": "Paused", "Resumed": "Running"}[got["state"].(string)]
	case "PUT /snapshot/create":
		if !started {
			return beforeStart
		}
		if p.state != "Paused" {
			return "Create snapshot error: Cannot save the microVM state: Operation not allowed: The vCPUs are not paused"
		}
	case "PUT /snapshot/load":
		if started || len(p.put) > 0 {
			return "Loading a microVM snapshot not allowed after configuring boot-specific resources."
		}
		if (got["mem_backend"] == nil) == (got["mem_file_path"] == nil) {
			return "missing field: either `mem_backend` or `mem_file_path` is required"
		}
		p.state = "Paused"
	}
	return ""
}

func parse(kind string, body []byte) (got map[string]any, why string) {
	known, ok := fields[kind]
	if !ok {
		return nil, "Invalid request method and/or path: " + kind
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&got); err != nil {
		return nil, "An error occurred when deserializing the json body of a request: " + err.Error()
	}
	may := map[string]bool{}
	for f := range strings.FieldsSeq(known) {
		name, must := strings.CutSuffix(f, "!")
		may[name] = true
		if _, ok := got[name]; must && !ok {
			return nil, "missing field `" + name + "`"
		}
	}
	for name := range got {
		if !may[name] {
			return nil, "unknown field `" + name + "`"
		}
	}
	return got, ""
}

// requests are those so far.
func (p *peer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func (p *peer) failing(name, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail[name] = message
}
