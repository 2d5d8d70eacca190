package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

// LoadFile reads one task file. The error holds every mistake in it, each with its place.
func LoadFile(path string) (*Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read task: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the content of one task file; path is the name that errors show.
func Parse(path string, data []byte) (*Spec, error) {
	f, err := yamlfile.Parse(path, data)
	if err != nil {
		return nil, err
	}
	s := &Spec{src: &source{file: f, text: string(data)}}
	if err := f.Decode(s); err != nil {
		return nil, err
	}
	s.setDefaults()
	if err := validate(s); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Spec) setDefaults() {
	if s.Reward.Mode == "" {
		s.Reward.Mode = Potential
	}
	if s.Limits.Steps == 0 && s.src.file.Node("limits.steps") == nil {
		s.Limits.Steps = DefaultSteps
	}
	if s.Start.URL == "" {
		s.Start.URL = "/"
	}
	s.Reward.HasOnly = s.src.file.Node("reward.only") != nil
}

// Suite is a set of tasks in the order of their ids.
type Suite struct {
	Tasks []*Spec
}

// LoadSuite reads every *.yaml file of a folder and of the folders in it.
func LoadSuite(dir string) (*Suite, error) {
	paths, err := taskFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("read tasks: %s holds no .yaml file", dir)
	}
	suite := &Suite{}
	var errs []error
	byID := map[string]*Spec{}
	for _, p := range paths {
		s, err := LoadFile(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first, dup := byID[s.ID]; dup {
			errs = append(errs, withHint(s.src.errorf("id", "the id %q is taken by %s", s.ID, first.File()), "give each task an id of its own"))
			continue
		}
		byID[s.ID] = s
		suite.Tasks = append(suite.Tasks, s)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(suite.Tasks, func(a, b *Spec) int { return strings.Compare(a.ID, b.ID) })
	return suite, nil
}

func taskFiles(dir string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(p); !d.IsDir() && (ext == ".yaml" || ext == ".yml") {
			paths = append(paths, p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return paths, nil
}

// Find is the task with an id, or nil.
func (s *Suite) Find(id string) *Spec {
	for _, t := range s.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Select lists the tasks of a split and a difficulty, among the ids that are named;
// "" and an empty list select all. An id that does not exist is an error.
func (s *Suite) Select(split, difficulty string, ids []string) ([]*Spec, error) {
	if split != "" && !oneOf(split, splits) {
		return nil, fmt.Errorf("select tasks: unknown split %q; expected %s", split, orList(splits))
	}
	if difficulty != "" && !oneOf(difficulty, difficulties) {
		return nil, fmt.Errorf("select tasks: unknown difficulty %q; expected %s", difficulty, orList(difficulties))
	}
	for _, id := range ids {
		if s.Find(id) == nil {
			return nil, fmt.Errorf("select tasks: there is no task %q; known are %s", id, strings.Join(s.ids(), ", "))
		}
	}
	var out []*Spec
	for _, t := range s.Tasks {
		if (split == "" || t.Split == split) && (difficulty == "" || t.Difficulty == difficulty) && (len(ids) == 0 || oneOf(t.ID, ids)) {
			out = append(out, t)
		}
	}
	return out, nil
}

func (s *Suite) ids() []string {
	out := make([]string, len(s.Tasks))
	for i, t := range s.Tasks {
		out[i] = t.ID
	}
	return out
}

// SeedSplit is the split of a seed: of each ten, 0 to 6 train, 7 and 8 validate, 9 tests.
func SeedSplit(seed int64) string {
	switch ((seed % 10) + 10) % 10 {
	case 7, 8:
		return "validation"
	case 9:
		return "test"
	}
	return "train"
}

// Seeds lists the first n seeds of a split; "" is all seeds.
func Seeds(split string, n int) []int64 {
	out := make([]int64, 0, n)
	for seed := int64(0); len(out) < n && (split == "" || oneOf(split, splits)); seed++ {
		if split == "" || SeedSplit(seed) == split {
			out = append(out, seed)
		}
	}
	return out
}

func withHint(e *yamlfile.Error, format string, args ...any) *yamlfile.Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}
