package world_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/world"
	"github.com/pommelgym/pommel/internal/world/schema"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

const good = `name: shop
build: {command: [make, "OUT=${out}"], dir: app, inputs: [app]}
services:
  - name: db
    postgres: {database: shop, role: shop, init: [schema.sql], settings: {work_mem: 4MB}}
  - name: app
    command: ["${out}/shop", -listen, "127.0.0.1:8080"]
    env: {DATABASE_URL: "${db.url}", PORT: 8080}
    ready: {http: "http://127.0.0.1:8080/", timeout: 5s}
browser:
  start_url: http://127.0.0.1:8080/start
limits: {memory: 1GiB, processes: 200}
bench: {task: buy, url: /, actions: [{name: click, do: "click('a')"}]}
`

// folder makes a world's folder that holds what good names.
func folder(tb testing.TB, text string) string {
	tb.Helper()
	dir := tb.TempDir()
	for _, d := range []string{"app", "tasks"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for name, content := range map[string]string{"schema.sql": "", world.FileName: text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// schemaSays is the verdict of the JSON Schema.
func schemaSays(tb testing.TB, text string) error {
	tb.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.World))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("world.json", doc); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("world.json")
	if err != nil {
		tb.Fatal(err)
	}
	f, err := yamlfile.Parse("world.yaml", []byte(text))
	if err != nil {
		return err
	}
	data, err := json.Marshal(f.Root.Any())
	if err != nil {
		tb.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	return s.Validate(v)
}

func TestLoadGood(t *testing.T) {
	t.Parallel()
	s, err := world.Load(folder(t, good))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemaSays(t, good); err != nil {
		t.Errorf("the schema refuses it: %v", err)
	}
	want := world.Browser{
		StartURL: "http://127.0.0.1:8080/start", Allow: []string{"http://127.0.0.1:8080"},
		Viewport: world.Viewport{Width: 1280, Height: 720}, Locale: "en-US", Timezone: "UTC", Scale: 1,
	}
	if d := cmp.Diff(want, s.Browser); d != "" {
		t.Error(d)
	}
	if s.Limits.Memory != 1<<30 || s.Services[1].Env["PORT"] != "8080" || s.Services[1].Ready.Timeout != 5*time.Second || s.Bench.Actions[0].Do != "click('a')" || s.Tasks != "tasks" {
		t.Errorf("got %+v", s)
	}
}

func TestBundledWorldsAreGood(t *testing.T) {
	t.Parallel()
	for name, dir := range world.List() {
		if _, err := world.Load(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, world.FileName))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaSays(t, string(text)); err != nil {
			t.Errorf("%s: the schema refuses it: %v", name, err)
		}
	}
}

// TestLoadBad: each mistake is one replacement in the good file. Those that the schema
// can see it must refuse too.
func TestLoadBad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to, want string
		bySchema       bool
	}{
		"misspelt key":       {"limits:", "limit:", `:12:1: limit: unknown key "limit"; did you mean "limits"?`, true},
		"no name":            {"name: shop\nbuild", "build", `name: the key "name" is missing`, true},
		"bad name":           {"name: shop\nbuild", "name: Shop\nbuild", ":1:7: name: a name is lower-case", true},
		"two databases":      {"  - name: app\n    command:", "  - name: db2\n    postgres: {database: b, role: b}\n  - name: app\n    command:", ":4:3: services: a world has exactly one postgres service", false},
		"no database":        {"postgres: {database: shop, role: shop, init: [schema.sql], settings: {work_mem: 4MB}}", "command: [a]\n    ready: {tcp: '127.0.0.1:1'}", "exactly one postgres service", false},
		"same name twice":    {"name: app", "name: db", `services[1].name: the name "db" is taken`, false},
		"browser's name":     {"name: app", "name: browser", `services[1].name: the name "browser" is taken`, false},
		"no init file":       {"schema.sql", "other.sql", ":5:51: services[0].postgres.init[0]: there is no other.sql in the world's folder", false},
		"outside":            {"dir: app", "dir: ../..", "build.dir: the path must stay within the world's folder", false},
		"fixed setting":      {"work_mem: 4MB", "wal_level: minimal", "settings.wal_level: the setting wal_level is fixed", false},
		"unknown variable":   {"${db.url}", "${database.url}", "services[1].env.DATABASE_URL: unknown variable ${database.url}; known here: ${db.database}, ${db.host}", false},
		"open variable":      {"${db.url}", "${db.url", "is not closed", false},
		"not ready":          {"    ready: {http: \"http://127.0.0.1:8080/\", timeout: 5s}\n", "", "services[1].ready: say how to know", true},
		"two ways":           {"timeout: 5s", "tcp: \"127.0.0.1:8080\"", ":9:12: services[1].ready: expected exactly one of", true},
		"outside probe":      {"http: \"http://127.0.0.1:8080/\"", "http: \"http://example.com/\"", "expected a URL such as", false},
		"bad timeout":        {"timeout: 5s", "timeout: 5", "expected a duration such as 10s", true},
		"bad start":          {"http://127.0.0.1:8080/start", "/start", "browser.start_url: expected an http URL", true},
		"start not allowed":  {"/start", "/start\n  allow: [http://127.0.0.1:81]", "browser.allow: the origin of start_url", false},
		"pattern in allow":   {"/start", "/start\n  allow: [http://127.0.0.1:8080, 'http://*.test']", ":12:34: browser.allow[1]: expected an origin", true},
		"tiny viewport":      {"/start", "/start\n  viewport: {width: 10, height: 700}", "browser.viewport: width and height", true},
		"unknown time zone":  {"/start", "/start\n  timezone: Mars/Base", "browser.timezone: expected a time zone", false},
		"bad locale":         {"/start", "/start\n  locale: english please", "browser.locale: expected a language tag", true},
		"too little memory":  {"1GiB", "1MiB", "limits.memory: a browser and a database need at least", false},
		"memory without":     {"1GiB", "1000000000", "expected an amount of memory such as 512MiB", true},
		"too few processes":  {"processes: 200", "processes: 5", "limits.processes: processes and threads together", true},
		"both kinds":         {"command: [\"${out}/shop\"", "postgres: {database: a, role: b}\n    command: [\"${out}/shop\"", "postgres or command, not both", true},
		"empty command":      {"command: [make, \"OUT=${out}\"]", "command: []", "build.command: the command is empty", true},
		"wrong env":          {"PORT: 8080", "\"A B\": 1", "is not the name of an environment variable", true},
		"database is nested": {"PORT: 8080", "PORT: [8080]", ":8:44: services[1].env.PORT: expected a string, got a list", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good, c.from, c.to, 1)
			if text == good {
				t.Fatal("the replacement changed nothing")
			}
			_, err := world.Load(folder(t, text))
			if fault.KindOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "world.yaml:") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if refused := schemaSays(t, text) != nil; refused != c.bySchema {
				t.Errorf("the schema refuses it: %v, want %v", refused, c.bySchema)
			}
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	if _, err := world.Find("no-such-world"); fault.KindOf(err) != fault.NotFound || fault.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	if _, err := world.Find("./testdata"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
	dir, err := world.Find("./testdata/worlds/mini")
	if err != nil || !filepath.IsAbs(dir) {
		t.Errorf("got %s %v", dir, err)
	}
	if _, err := world.Load(t.TempDir()); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
}
