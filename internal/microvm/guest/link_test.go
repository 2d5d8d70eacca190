package guest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// served is where this program is a service that repeats what it is told, and its socket.
const (
	served       = "/served"
	servedSocket = "/tmp/socket"
)

// maybeServe does not return in a process that was started as the service.
func maybeServe() {
	if os.Args[0] != served {
		return
	}
	for _, address := range [][2]string{{"unix", servedSocket}, {"tcp", "127.0.0.1:" + os.Args[1]}} {
		l, err := net.Listen(address[0], address[1])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					_, _ = io.Copy(c, c)
				}()
			}
		}()
	}
	fmt.Println("serving")
	if err := os.WriteFile("/tmp/up", nil, 0o600); err != nil {
		os.Exit(1)
	}
	select {}
}

// unixPort is a port of the machine's, played by a socket of this host.
type unixPort struct{ net.Listener }

func (p unixPort) Accept() (io.ReadWriteCloser, error) { return p.Listener.Accept() }

// machine is an agent without a machine: its ports are sockets of a folder.
type machine struct {
	t      *testing.T
	a      *agent
	folder string
}

func startLinked(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("unsupported: sandboxes need root")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(free.Addr().(*net.TCPAddr).Port)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	app := sandbox.Process{Name: "app", UID: uid, Dir: "/home/app", Argv: []string{served, fmt.Sprint(port)}}
	probe := app
	probe.Argv = []string{"/usr/bin/test", "-e", "/tmp/up"}
	a := newAgent(wire.Plan{
		Sandbox: sandbox.Config{
			Hostname: "guest", Users: []sandbox.User{{Name: "app", UID: uid, Home: "/home/app"}}, FilesBytes: 16 << 20,
			Binds: []sandbox.Bind{{From: program, To: served}}, SharedNetwork: true,
		},
		Services: []wire.Service{{Process: app, Probe: &sandbox.Probe{Command: &probe, Timeout: time.Minute}}},
		Database: servedSocket, Ports: []uint16{port},
	})
	m := &machine{t: t, a: a, folder: t.TempDir()}
	var mu sync.Mutex
	var open []net.Listener
	up, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- a.serveConnections(func(number uint32) (acceptor, error) {
			name := fmt.Sprint(number)
			if number >= wire.ForwardPort {
				name = "forward"
			}
			l, err := net.Listen("unix", filepath.Join(m.folder, name))
			if err != nil {
				return nil, err
			}
			mu.Lock()
			open = append(open, l)
			mu.Unlock()
			if number == wire.AgentPort {
				close(up) // the last
			}
			return unixPort{l}, nil
		})
	}()
	<-up
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range open {
			_ = l.Close()
		}
		if err := <-ended; err == nil {
			t.Error("the agent ended without a reason")
		}
		if err := a.end(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (m *machine) dial(name string) net.Conn {
	m.t.Helper()
	c, err := net.Dial("unix", filepath.Join(m.folder, name))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = c.Close() })
	return c
}

// talk is a connection with the agent.
type talk struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func (m *machine) talk() *talk {
	m.t.Helper()
	c := m.dial(fmt.Sprint(wire.AgentPort))
	return &talk{m.t, c, bufio.NewReader(c)}
}

// next reads messages until one that ok takes.
func (k *talk) next(ok func(wire.Message) bool) wire.Message {
	k.t.Helper()
	for {
		line, err := k.r.ReadBytes('\n')
		if err != nil {
			k.t.Fatal(err)
		}
		var m wire.Message
		if err := json.Unmarshal(line, &m); err != nil {
			k.t.Fatal(err)
		}
		if ok(m) {
			return m
		}
	}
}

func (k *talk) ask(req wire.Request) wire.Message {
	k.t.Helper()
	text, err := json.Marshal(req)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.c.Write(append(text, '\n')); err != nil {
		k.t.Fatal(err)
	}
	return k.next(func(m wire.Message) bool { return m.ID == req.ID })
}

// ready waits until the services are.
func (k *talk) ready() {
	k.t.Helper()
	st := k.ask(wire.Request{ID: 1, Hello: true}).State
	if st == nil || !st.Ready {
		st = k.next(func(m wire.Message) bool { return m.State != nil }).State
	}
	if !st.Ready {
		k.t.Fatalf("%+v", st)
	}
}

func (m *machine) echo(c net.Conn, what string) {
	m.t.Helper()
	if _, err := io.WriteString(c, what+"\n"); err != nil {
		m.t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); err != nil || got != what+"\n" {
		m.t.Errorf("%q %v", got, err)
	}
}

// A guest without a serial device takes one connection with its agent after the other, and any number
// with the database and with the application.
func TestConnections(t *testing.T) {
	t.Parallel()
	m := startLinked(t)
	first := m.talk()
	first.ready()
	if got := first.ask(wire.Request{ID: 2, Log: "app"}); got.Text != "serving" {
		t.Errorf("%+v", got)
	}
	database, page := m.dial(fmt.Sprint(wire.StreamPort)), m.dial("forward")
	for range 2 {
		m.echo(database, "SELECT 1")
		m.echo(page, "GET /")
	}
	// A copy of the machine: the connection ends, and another one comes.
	if err := first.c.Close(); err != nil {
		t.Fatal(err)
	}
	second := m.talk()
	second.ready()
	m.echo(m.dial(fmt.Sprint(wire.StreamPort)), "SELECT 2")
	// Who hangs up is known at the other side: the service's copy of the connection ends with it.
	if err := database.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(database); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	if got := second.ask(wire.Request{ID: 3, Exec: &wire.Exec{Argv: []string{"echo", "root"}, Timeout: time.Minute}}); got.Text != "root\n" {
		t.Errorf("%+v", got)
	}
	// The start from nothing ends what was connected.
	if got := second.ask(wire.Request{ID: 4, Restart: true}); got.Err != "" {
		t.Fatal(got.Err)
	}
	_, _ = io.Copy(io.Discard, page)
	second.ready()
	m.echo(m.dial("forward"), "GET /again")
	if got := second.ask(wire.Request{ID: 5, Log: "nobody"}); !strings.Contains(got.Err, "no service") {
		t.Errorf("%+v", got)
	}
}

// Who kills the keeper of the services has ended all of them, and the world hears of it. Services that
// are started again end in silence.
func TestKeeperGone(t *testing.T) {
	t.Parallel()
	m := startLinked(t)
	k := m.talk()
	k.ready()
	if got := k.ask(wire.Request{ID: 2, Restart: true}); got.Err != "" {
		t.Fatal(got.Err)
	}
	k.next(func(m wire.Message) bool {
		if m.Ended != nil {
			t.Errorf("told of %+v", m.Ended)
		}
		return m.State != nil
	})
	m.a.mu.Lock()
	pid := m.a.box.KeeperPid()
	m.a.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := k.next(func(m wire.Message) bool { return m.Ended != nil && m.Ended.Service == "keeper" })
	if !strings.Contains(got.Ended.How, "is gone") {
		t.Errorf("%+v", got.Ended)
	}
}
