package world

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

// Find is the folder of a world. name is the path of a folder (it holds a slash or is "."),
// or the name of a folder in one of the places that Places lists.
func Find(name string) (string, error) {
	if name == "" {
		return "", fault.New(fault.InvalidArgument, "no world was named")
	}
	if strings.ContainsRune(name, filepath.Separator) || name == "." || name == ".." {
		if !isWorld(name) {
			return "", fault.New(fault.NotFound, "%s holds no %s", name, FileName)
		}
		return filepath.Abs(name)
	}
	places := Places()
	for _, p := range places {
		if dir := filepath.Join(p, name); isWorld(dir) {
			return filepath.Abs(dir)
		}
	}
	return "", fault.New(fault.NotFound, "no world is named %q", name).
		WithHint("give the path of its folder, or put it into one of: %s", strings.Join(places, ", "))
}

// Places are the folders in which worlds are looked for by name: those of POMMEL_WORLDS,
// ./worlds, worlds beside the program or where it was installed, and worlds at the root of the module around the
// working folder (for tests).
func Places() []string {
	var out []string
	for _, p := range filepath.SplitList(os.Getenv("POMMEL_WORLDS")) {
		if p != "" {
			out = append(out, p)
		}
	}
	out = append(out, "worlds")
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		out = append(out, filepath.Join(dir, "worlds"), filepath.Join(dir, "..", "worlds"), filepath.Join(dir, "..", "share", "pommel", "worlds"))
	}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				out = append(out, filepath.Join(dir, "worlds"))
				break
			}
		}
	}
	return out
}

// List names the worlds that Find finds by name, with their folders.
func List() map[string]string {
	out := map[string]string{}
	for _, p := range Places() {
		files, _ := filepath.Glob(filepath.Join(p, "*", FileName))
		for _, f := range files {
			dir, err := filepath.Abs(filepath.Dir(f))
			if _, known := out[filepath.Base(dir)]; err == nil && !known {
				out[filepath.Base(dir)] = dir
			}
		}
	}
	return out
}

func isWorld(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil && info.Mode().IsRegular()
}
