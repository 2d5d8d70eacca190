package microvm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/microvm"
	"github.com/pommelgym/pommel/internal/microvm/guest"
	"github.com/pommelgym/pommel/internal/microvm/wire"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	guest.MaybeInit()
	microvm.MaybeFakeFirecracker()
	os.Exit(m.Run())
}

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// cache is the one that worlds use, so that what they need too is made once.
func cache(tb testing.TB) string {
	dir := os.Getenv("POMMEL_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			tb.Fatal(err)
		}
		dir = filepath.Join(user, "pommel")
	}
	return filepath.Join(dir, "machines")
}

const uidApp = 62002

// template is a machine with one service, a shell that counts.
func template(tb testing.TB) *microvm.Template {
	tb.Helper()
	app := sandbox.Process{
		Name: "app", UID: uidApp, Dir: "/home/app", Env: []string{"PATH=/usr/bin:/bin"},
		Argv: []string{"sh", "-c", "echo counting; i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 1; done"},
	}
	probe := app
	probe.Argv = []string{"test", "-e", "/tmp/count"}
	start := time.Date(2025, 3, 10, 9, 0, 0, 0, time.UTC)
	t, err := microvm.BuildTemplate(testContext(tb), cache(tb), microvm.Spec{
		MemoryBytes: 256 << 20, Packages: []string{"postgresql-15"}, Ports: []uint16{8080},
		Plan: wire.Plan{
			Sandbox: sandbox.Config{
				Hostname: "guest", Users: []sandbox.User{{Name: "app", UID: uidApp, Home: "/home/app"}}, SharedNetwork: true,
				FilesBytes: 64 << 20, Clock: &sandbox.Clock{Start: start, Label: "guest"},
			},
			Services: []wire.Service{{Process: app, Probe: &sandbox.Probe{Command: &probe, Timeout: time.Minute}}},
		},
	}, func(stage string) { tb.Log(time.Now().Format("15:04:05.000"), stage) })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = t.Close() })
	return t
}

func TestMachine(t *testing.T) {
	tmpl := template(t)
	box, err := sandbox.Start(testContext(t), sandbox.Config{
		Hostname: "host", Users: []sandbox.User{microvm.User}, Binds: tmpl.Binds(), FilesBytes: 64 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	began := time.Now()
	m, err := microvm.Start(testContext(t), box, tmpl, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	t.Log("copied in", time.Since(began))
	out, code, err := m.Exec(testContext(t), "sh", "-c", "uname -r; id -u; date; ps ax")
	if err != nil || code != 0 || !strings.Contains(out, "cloud") {
		t.Errorf("%q %d %v", out, code, err)
	}
	t.Log(out)
	if log, err := m.Log(testContext(t), "app"); err != nil || log != "counting" {
		t.Errorf("%q %v", log, err)
	}
}
