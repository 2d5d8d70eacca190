package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/pommelgym/pommel/"

// layers lists the rooms from the top of the house to the bottom. A room may
// import rooms below it; rooms on one line do not know each other.
var layers = [][]string{
	{"cmd/pommel"},
	{"internal/cli"},
	{"internal/experiment"},
	{"internal/rollout", "internal/check", "internal/determinism", "internal/soak"},
	{"internal/replay"},
	{"internal/agent"},
	{"internal/learn"},
	{"internal/server"},
	{"client"},
	{"gym"},
	{"internal/episode"},
	{"internal/oracle"},
	{"internal/reward"},
	{"internal/trace"},
	{"internal/world/worldtest"},
	{"internal/task", "internal/world"},
	{"internal/browser/casetest"},
	{"internal/perturb"},
	{"internal/browser/browsertest"},
	{"internal/perturb/own"},
	{"internal/browser", "internal/postgres/pgtest"},
	{"internal/microvm"},
	{"internal/postgres"},
	{"internal/perturb/page"},
	{"internal/perturb/plan"},
	{"internal/perturb/profile"},
	{"internal/cdp", "internal/sandbox", "internal/yamlfile", "internal/perturb/kind", "internal/perturb/stream"},
	{"rewind", "internal/worldclock"},
	{"internal/uapi", "internal/action", "internal/fault", "internal/sys", "internal/version", "internal/wilson", "internal/crew", "gen", "internal/gen", "web"},
}

func rank(room string) (level int, name string, ok bool) {
	best := -1
	for l, rooms := range layers {
		for _, r := range rooms {
			if (room == r || strings.HasPrefix(room, r+"/")) && len(r) > best {
				best, level, name, ok = len(r), l, r, true
			}
		}
	}
	return level, name, ok
}

// TestLayers: imports point downwards only.
func TestLayers(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, imports []string) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if strings.HasPrefix(dir, "worlds/") || dir == "internal/archtest" {
			return
		}
		from, fromName, ok := rank(dir)
		if !ok {
			t.Errorf("%s: folder %s stands in no layer; add it to layers", path, dir)
			return
		}
		for _, imp := range imports {
			to, toName, ok := rank(strings.TrimPrefix(imp, module))
			switch {
			case !strings.HasPrefix(imp, module):
			case !ok:
				t.Errorf("%s: imports %s, which stands in no layer", path, imp)
			case strings.HasSuffix(path, "_test.go") && strings.HasPrefix(toName, fromName+"/"):
				// A room's tests may use the test helper that is built on top of it.
			case toName != fromName && to <= from:
				t.Errorf("%s: %s must not import %s: dependencies point downwards", path, fromName, toName)
			}
		}
	})
}

// kernelDoor are the rooms that may use raw kernel interfaces.
var kernelDoor = []string{"internal/sys", "internal/uapi", "rewind", "internal/sandbox", "internal/world", "internal/archtest"}

// TestOneDoorToTheKernel: golang.org/x/sys/unix stays in the rooms that are made for it.
func TestOneDoorToTheKernel(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, imports []string) {
		for _, imp := range imports {
			if imp != "golang.org/x/sys/unix" || strings.HasSuffix(path, "_test.go") {
				continue
			}
			allowed := false
			for _, room := range kernelDoor {
				allowed = allowed || strings.HasPrefix(filepath.ToSlash(path), room+"/")
			}
			if !allowed {
				t.Errorf("%s imports x/sys/unix; use internal/sys", path)
			}
		}
	})
}

// TestWorldsStandAlone: a bundled world is written as any author would write it, so its app uses nothing of Pommel's.
func TestWorldsStandAlone(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, imports []string) {
		if !strings.HasPrefix(filepath.ToSlash(path), "worlds/") || strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, imp := range imports {
			if strings.HasPrefix(imp, module) && !strings.HasPrefix(imp, module+"worlds/") {
				t.Errorf("%s: a world's program imports %s", path, imp)
			}
		}
	})
}

func eachFile(t *testing.T, visit func(path string, imports []string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (rel != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, s := range f.Imports {
			imports = append(imports, strings.Trim(s.Path.Value, `"`))
		}
		n++
		visit(rel, imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Fatalf("found only %d files: the test looks in the wrong place", n)
	}
}
