package microvm

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func deadline(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// played is a template whose machines are played by this program.
func played(t *testing.T) *Template {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tmpl := &Template{
		Spec:   Spec{Engine: Firecracker, MemoryBytes: 16 << 20, Ports: []uint16{8080}},
		Files:  Files{file("kernel"), file("initramfs"), file("root"), file("world")},
		engine: &fire{program: program},
	}
	folder := filepath.Join(dir, "template")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	err = tmpl.boot(deadline(t), folder, func(string) {})
	if fault.KindOf(err) == fault.Unsupported {
		t.Skipf("unsupported: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := tmpl.load(folder); err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func boxOf(t *testing.T, tmpl *Template) *sandbox.Sandbox {
	t.Helper()
	box, err := sandbox.Start(deadline(t), sandbox.Config{
		Hostname: "host", Users: []sandbox.User{User}, Binds: tmpl.Binds(), Devices: tmpl.Devices(), FilesBytes: 64 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

// A template is booted, halted and saved, and copies of it are started in sandboxes: a Firecracker is
// played, all else is what a real one finds. What only a real one can show is whether its guest runs.
func TestFirecracker(t *testing.T) {
	t.Parallel()
	tmpl := played(t)
	box := boxOf(t, tmpl)
	ctx := deadline(t)
	lost := make(chan error, 1)
	m, err := Start(ctx, box, tmpl, func(err error) { lost <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if want := time.Unix(1_741_597_200, 0); !m.Now().Equal(want) {
		t.Errorf("the services read %v, want %v", m.Now(), want)
	}
	if log, err := m.Log(ctx, "app"); err != nil || log != "log of app" {
		t.Errorf("%q %v", log, err)
	}
	for range 5 { // there is no number of streams
		c, err := m.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("a question\n")); err != nil {
			t.Fatal(err)
		}
		if got, err := bufio.NewReader(c).ReadString('\n'); err != nil || got != "1025 says a question\n" {
			t.Errorf("%q %v", got, err)
		}
	}
	script := "exec 3<>/dev/tcp/127.0.0.1/8080; echo a page >&3; read line <&3; echo \"got $line\""
	p, err := box.Run(ctx, sandbox.Process{Name: "browser", UID: User.UID, Dir: "/", Argv: []string{"/bin/bash", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Log(); got != "got 73616 says a page" {
		t.Errorf("the browser: %q, it %v", got, p.Exit())
	}
	if err := m.Restart(ctx, func(string) {}); err != nil {
		t.Error(err)
	}
	if err := m.Resumed(ctx, time.Now()); err == nil || !strings.Contains(err.Error(), "put back") {
		t.Errorf("put back in place: %v", err)
	}
	for _, f := range []func(context.Context) error{m.Stop, m.Continue, m.Check} {
		if err := f(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := <-lost; !strings.Contains(err.Error(), "service app ended") {
		t.Errorf("lost: %v", err)
	}
	asked, err := os.ReadFile(box.Path(fireHome("asked")))
	if err != nil {
		t.Fatal(err)
	}
	const want = `GET /version
PUT /snapshot/load {"snapshot_path":"/machine/state","mem_backend":{"backend_type":"File","backend_path":"/machine/memory"},"resume_vm":false}
PATCH /vm {"state":"Resumed"}
PATCH /vm {"state":"Paused"}
PATCH /vm {"state":"Resumed"}
`
	if string(asked) != want {
		t.Errorf("asked\n%s\nwant\n%s", asked, want)
	}
}

// What goes wrong is told with the reason that Firecracker gives, or its last words.
func TestFirecrackerFailures(t *testing.T) {
	t.Parallel()
	tmpl := played(t)
	if err := os.WriteFile(filepath.Join(tmpl.saved, stateFile), []byte(brokenState), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(deadline(t), boxOf(t, tmpl), tmpl, nil)
	if err == nil || !strings.Contains(err.Error(), "/snapshot/load") || !strings.Contains(err.Error(), "the state is broken") || !strings.Contains(err.Error(), "playing Firecracker") {
		t.Errorf("got %v", err)
	}
	tmpl.engine = &fire{program: "/bin/false"}
	_, err = Start(deadline(t), boxOf(t, tmpl), tmpl, nil)
	if err == nil || !strings.Contains(err.Error(), "exited with code 1") {
		t.Errorf("got %v", err)
	}
}

func TestRecent(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Firecracker v1.10.0": "", "Firecracker v1.16.2-dev": "", "Firecracker v2.0.0": "",
		"Firecracker v1.9.1": "too old", "Firecracker v0.25.2": "too old", "QEMU emulator version 7.2.22": "not how a Firecracker",
	} {
		err := recent(line)
		if (err == nil) != (want == "") || err != nil && (fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
