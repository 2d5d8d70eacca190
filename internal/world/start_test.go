package world_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/world"
)

// scriptWorld is a world whose application is a shell script.
func scriptWorld(tb testing.TB, script, ready, sql string) *world.Spec {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range map[string]string{
		"run.sh": script, "schema.sql": sql,
		world.FileName: fmt.Sprintf(`name: script
build: {command: [cp, run.sh, "${out}/"], inputs: [run.sh]}
services:
  - name: db
    postgres: {database: script, role: script, init: [schema.sql]}
  - name: app
    command: [sh, "${out}/run.sh", "$${PWD}", "${db.port}"]
    env: {URL: "${db.url}"}
    ready: %s
browser: {start_url: "http://127.0.0.1:8080/"}
`, ready),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	s, err := world.Load(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func startScript(t *testing.T, script, ready string) error {
	t.Helper()
	img, err := world.BuildImage(testContext(t), scriptWorld(t, script, ready, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Start(testContext(t), img, nil)
	if err == nil {
		_ = w.Close()
	}
	return err
}

// A start that fails names the service, says what happened and shows its last words.
func TestFailedStartsSayWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, ready string
		want          []string
	}{
		"exits":         {"echo cannot open config >&2; exit 4", `{tcp: "127.0.0.1:8080"}`, []string{"service app", "exited with code 4", "cannot open config"}},
		"never ready":   {"echo waiting; sleep 1000", `{tcp: "127.0.0.1:8080", timeout: 300ms}`, []string{"service app", "not ready after 300ms", "connection refused", "waiting"}},
		"not healthy":   {"cd /tmp; echo up; exec python3 -m http.server 8080 --bind 127.0.0.1", `{http: "http://127.0.0.1:8080/nothing", timeout: 3s}`, []string{"service app", "404 File not found", "last output of app"}},
		"command fails": {"sleep 1000", `{command: [sh, -c, "exit 5"], timeout: 3s}`, []string{"service app", "exit code 5"}},
		"no page":       {"sleep 1000", `{command: ["true"]}`, []string{"service browser", "127.0.0.1:8080"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := startScript(t, c.script, c.ready)
			if fault.KindOf(err) != fault.WorldLost {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestVariablesReachTheApplication(t *testing.T) {
	t.Parallel()
	err := startScript(t, `echo "$1 $2 $URL $HOME $(id -un)" >&2; exit 1`, `{tcp: "127.0.0.1:8080"}`)
	want := "${PWD} 5432 postgres://script:application@127.0.0.1:5432/script?sslmode=disable /home/app app"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestFailedBuildsSayWhy(t *testing.T) {
	t.Parallel()
	s := scriptWorld(t, "", `{tcp: "127.0.0.1:1"}`, "")
	s.Build.Command = []string{"sh", "-c", "echo compile error; exit 2"}
	_, err := world.BuildImage(testContext(t), s, nil)
	if fault.KindOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), "world.yaml:2:") || !strings.Contains(err.Error(), "compile error") {
		t.Errorf("got %v", err)
	}
	s = scriptWorld(t, "", `{tcp: "127.0.0.1:1"}`, "\nCREATE TABLE x (y nonsense);")
	_, err = world.BuildImage(testContext(t), s, nil)
	if fault.KindOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), "schema.sql:2:") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	s = scriptWorld(t, "# never built", `{tcp: "127.0.0.1:1"}`, "")
	s.Build.Command = []string{"sleep", "1000"}
	_, err = world.BuildImage(ctx, s, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The id of an image follows all that the world is made from, and nothing else.
func TestImageID(t *testing.T) {
	t.Parallel()
	id := func(script, ready, sql string) string {
		img, err := world.BuildImage(testContext(t), scriptWorld(t, script, ready, sql), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(img.Dir()); err != nil {
			t.Error(err)
		}
		return img.ID()
	}
	tcp, sql := `{tcp: "127.0.0.1:1"}`, "CREATE TABLE t (a int)"
	base := id("true", tcp, sql)
	if again := id("true", tcp, sql); again != base {
		t.Errorf("in another folder: %s, was %s", again, base)
	}
	for what, got := range map[string]string{
		"script": id("false", tcp, sql), "file": id("true", `{tcp: "127.0.0.1:2"}`, sql), "sql": id("true", tcp, sql+"; "),
	} {
		if got == base {
			t.Errorf("another %s has the same id", what)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, f := range world.Doctor(testContext(t)) {
		names[f.Name] = true
		if f.Detail == "" || !f.OK && f.Remedy == "" {
			t.Errorf("unclear: %+v", f)
		}
	}
	for _, n := range []string{"sandbox", "postgres", "chromium", "cache"} {
		if !names[n] {
			t.Errorf("no finding named %s", n)
		}
	}
}
