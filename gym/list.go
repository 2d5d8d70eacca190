package gym

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/world"
)

// WorldInfo describes a world that was found by name.
type WorldInfo struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Dir   string `json:"dir"`
	Tasks int    `json:"tasks"`
	// Error is what is wrong with its files, if anything.
	Error string `json:"error,omitempty"`
}

// Worlds lists the worlds that can be opened by name.
func Worlds() []WorldInfo {
	var out []WorldInfo
	for name, dir := range world.List() {
		w := WorldInfo{Name: name, Dir: dir}
		spec, suite, err := read(dir)
		if err != nil {
			w.Error = err.Error()
		} else {
			w.Title, w.Tasks = spec.Title, len(suite.Tasks)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b WorldInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// read reads a world's and its tasks' files.
func read(dir string) (*world.Spec, *task.Suite, error) {
	spec, err := world.Load(dir)
	if err != nil {
		return nil, nil, fault.Wrap(fault.InvalidArgument, err, "load world")
	}
	suite, err := task.LoadSuite(filepath.Join(dir, spec.Tasks))
	if err != nil {
		return nil, nil, fault.Wrap(fault.InvalidArgument, err, "load tasks")
	}
	return spec, suite, nil
}

// TasksOf lists the tasks of a world without opening it.
func TasksOf(name string) ([]TaskInfo, error) {
	dir, err := world.Find(name)
	if err != nil {
		return nil, err
	}
	_, suite, err := read(dir)
	if err != nil {
		return nil, err
	}
	var out []TaskInfo
	for _, s := range suite.Tasks {
		out = append(out, infoOf(s))
	}
	return out, nil
}

// Probe is one thing that worlds need of a host, and whether it is there.
type Probe struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Doctor looks at all that worlds need on this host.
func Doctor(ctx context.Context) []Probe {
	var out []Probe
	for _, f := range world.Doctor(ctx) {
		out = append(out, Probe{Name: f.Name, OK: f.OK, Needed: f.Required, Detail: f.Detail, Remedy: f.Remedy})
	}
	return out
}

// PartVersions are the versions of Chromium and PostgreSQL on this host, "" if they are not there.
func PartVersions(ctx context.Context) (chromium, database string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if path, err := browser.FindChromium(); err == nil {
		out, _ := exec.CommandContext(ctx, path, "--version").Output()
		chromium = strings.TrimSpace(string(out))
	}
	if in, err := postgres.FindInstall(ctx, os.Getenv); err == nil {
		database = in.Version
	}
	return chromium, database
}

// NewError makes a typed error.
func NewError(k Kind, format string, args ...any) error { return fault.New(k, format, args...) }
