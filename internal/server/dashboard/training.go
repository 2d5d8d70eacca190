package dashboard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
)

// trainingFile is what a training leaves in its folder.
const trainingFile = "train.json"

// trainingHead is one training of a list. Fields are those of `pommel train --json`.
type trainingHead struct {
	Name         string    `json:"name"`
	When         time.Time `json:"when"`
	World        string    `json:"world"`
	Profile      string    `json:"profile"`
	Seed         int64     `json:"seed"`
	Steps        int       `json:"steps"`
	Updates      int       `json:"updates"`
	Episodes     int       `json:"episodes"`
	Seconds      float64   `json:"seconds"`
	SuccessStart float64   `json:"success_start"`
	SuccessEnd   float64   `json:"success_end"`
	// Before and After are the evaluations; without one its rate says nothing.
	Before *rate `json:"evaluation_start,omitempty"`
	After  *rate `json:"evaluation_end,omitempty"`
}

// rate is an evaluation.
type rate struct {
	Success float64 `json:"success_rate"`
}

// folders are the trainings by name: a folder that was named, or one inside of it.
func (h *Handler) folders() map[string]string {
	out := map[string]string{}
	put := func(dir string) bool {
		if _, err := os.Stat(filepath.Join(dir, trainingFile)); err != nil {
			return false
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return false
		}
		name := filepath.Base(abs)
		if has, taken := out[name]; taken && has != abs {
			name = filepath.Base(filepath.Dir(abs)) + "-" + name
		}
		out[name] = abs
		return true
	}
	for _, dir := range h.cfg.Training {
		if put(dir) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it may come later
		}
		for _, e := range entries {
			put(filepath.Join(dir, e.Name()))
		}
	}
	return out
}

func (h *Handler) trainings(*http.Request) (any, error) {
	out := []trainingHead{}
	for name, dir := range h.folders() {
		path := filepath.Join(dir, trainingFile)
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it was removed meanwhile
		}
		var t trainingHead
		if json.Unmarshal(data, &t) != nil {
			continue // another program's file of that name
		}
		if st, err := os.Stat(path); err == nil {
			t.When = st.ModTime().UTC()
		}
		t.Name = name
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b trainingHead) int {
		if c := b.When.Compare(a.When); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return map[string]any{"trainings": out}, nil
}

func (h *Handler) training(r *http.Request) (any, error) {
	name := r.PathValue("name")
	dir, ok := h.folders()[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "no training %q", name)
	}
	data, err := os.ReadFile(filepath.Join(dir, trainingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "no training %q", name)
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(data) {
		return nil, fault.New(fault.NotFound, "training %q: %s is no JSON", name, trainingFile)
	}
	return json.RawMessage(data), nil
}
