package microvm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
)

// MaybeFakeFirecracker does not return in a process that was started in Firecracker's place. It plays
// one with a guest in it whose services are ready: in the sandbox, with the rights, the sockets and the
// files that a Firecracker has there.
func MaybeFakeFirecracker() {
	if os.Args[0] != fireAt {
		return
	}
	if err := (&fake{}).run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// brokenState is a snapshot that it refuses to load.
const brokenState = "broken"

type fake struct {
	mu     sync.Mutex
	loaded bool // guarded by mu
	met    int  // guarded by mu; how often somebody has asked for the agent
	vsock  string
}

func (f *fake) run() error {
	if len(os.Args) < 3 || os.Args[1] != "--api-sock" {
		return fmt.Errorf("not Firecracker's arguments: %q", os.Args)
	}
	l, err := net.Listen("unix", os.Args[2])
	if err != nil {
		return err
	}
	fmt.Println("playing Firecracker")
	f.vsock = filepath.Join(filepath.Dir(os.Args[2]), "vsock")
	return http.Serve(l, f)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if err := f.note(r.Method + " " + r.URL.Path + " " + string(body)); err != nil {
		f.fault(w, err)
		return
	}
	var paths struct {
		State   string `json:"snapshot_path"`
		Memory  string `json:"mem_file_path"`
		Backend struct {
			Path string `json:"backend_path"`
		} `json:"mem_backend"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &paths); err != nil {
			f.fault(w, err)
			return
		}
	}
	var err error
	switch r.URL.Path {
	case "/version":
		_, _ = io.WriteString(w, `{"firecracker_version": "1.16.0"}`)
		return
	case "/actions":
		err = f.guest()
	case "/snapshot/create":
		memory := make([]byte, 64<<10)
		copy(memory[8<<10:], "the guest's memory")
		err = os.WriteFile(paths.Memory, memory, 0o600)
		if err == nil {
			err = os.WriteFile(paths.State, []byte("the state"), 0o600)
		}
	case "/snapshot/load":
		err = f.load(paths.State, paths.Backend.Path)
	}
	if err != nil {
		f.fault(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *fake) fault(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"fault_message": err.Error()})
}

// note leaves each request in a file.
func (f *fake) note(line string) error {
	out, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[2]), "asked"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = fmt.Fprintln(out, strings.TrimSpace(line))
	return err
}

func (f *fake) load(state, memory string) error {
	s, err := os.ReadFile(state)
	if err != nil {
		return err
	}
	m, err := os.ReadFile(memory)
	if err != nil {
		return err
	}
	if string(s) == brokenState {
		return fmt.Errorf("Load snapshot error: Failed to restore from snapshot: the state is broken")
	}
	if !strings.Contains(string(m), "the guest's memory") || string(s) != "the state" {
		return fmt.Errorf("Load snapshot error: not what was saved: %q", s)
	}
	f.mu.Lock()
	f.loaded = true
	f.mu.Unlock()
	return f.guest()
}

// guest listens where the guest's ports are reached.
func (f *fake) guest() error {
	l, err := net.Listen("unix", f.vsock)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.port(c)
		}
	}()
	return nil
}

func (f *fake) port(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	var port uint32
	if _, serr := fmt.Sscanf(line, "CONNECT %d\n", &port); err != nil || serr != nil {
		return
	}
	switch port {
	case wire.AgentPort:
		f.mu.Lock()
		f.met++
		met, loaded := f.met, f.loaded
		f.mu.Unlock()
		if !loaded && met == 1 {
			return // a guest that boots does not listen yet
		}
		_, _ = io.WriteString(c, "OK 1073741824\n")
		if loaded && met == 1 {
			return // taken for one of the template's connections
		}
		agentOf(c, r)
	case wire.StreamPort, wire.ForwardPort + 8080:
		_, _ = io.WriteString(c, "OK 1073741825\n")
		line, _ := r.ReadString('\n')
		fmt.Fprintf(c, "%d says %s", port, line)
	}
}

// agentOf plays the guest's agent.
func agentOf(c net.Conn, r *bufio.Reader) {
	ready := &wire.State{Ready: true, Now: time.Unix(1_741_597_200, 0).UTC()}
	send := func(m wire.Message) {
		text, _ := json.Marshal(m)
		_, _ = c.Write(append(text, '\n'))
	}
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var req wire.Request
		m := wire.Message{}
		if err := json.Unmarshal(line, &req); err != nil {
			m.Err = err.Error()
		}
		m.ID = req.ID
		switch {
		case req.Hello:
			m.State = ready
		case req.Log != "":
			m.Text = "log of " + req.Log
		}
		send(m)
		switch {
		case req.Restart:
			send(wire.Message{Stage: "starting"})
			send(wire.Message{State: ready})
		case req.Check:
			send(wire.Message{Ended: &wire.Ended{Service: "app", How: "exited with code 3"}})
		}
	}
}
