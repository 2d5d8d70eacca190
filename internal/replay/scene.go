package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

// Scene is one step as it is compared.
type Scene struct {
	Step   int
	Action string
	// Picture is a hash of the screenshot, "" if there is none.
	Picture string
	doc     []byte // JSON with its keys in order
}

// beside are the parts of info that are no part of the comparison: wall time, and hashes
// over what is compared piece by piece.
var beside = []string{"timing", "observation_hash"}

// raw is what a record and a result have in common.
type raw struct {
	Instruction string           `json:"instruction,omitempty"`
	Observation *gym.Observation `json:"observation"`
	Reward      float64          `json:"reward"`
	Terminated  bool             `json:"terminated"`
	Truncated   bool             `json:"truncated"`
	Info        json.RawMessage  `json:"info,omitempty"`
}

// SceneOf is the scene of a result.
func SceneOf(action string, r *gym.Result) (Scene, error) {
	info, err := json.Marshal(r.Info)
	if err != nil {
		return Scene{}, fmt.Errorf("encode info: %w", err)
	}
	out := raw{Instruction: r.Instruction, Observation: r.Observation, Reward: r.Reward, Terminated: r.Terminated, Truncated: r.Truncated, Info: info}
	s, err := out.scene(r.Step, action)
	if shot := r.Observation.Screenshot; shot != nil {
		s.Picture = sum(shot.Data)
	}
	return s, err
}

// recorded is the scene of a record; dir is the episode's folder, where its pictures lie.
func recorded(h trace.Header, st trace.Step, dir string) (Scene, error) {
	out := raw{Observation: st.Observation, Reward: st.Reward, Terminated: st.Terminated, Truncated: st.Truncated, Info: st.Info}
	if st.Step == 0 {
		out.Instruction = h.Instruction
	}
	s, err := out.scene(st.Step, st.Action)
	if st.Screenshot == "" || err != nil {
		return s, err
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.Base(st.Screenshot)))
	if err != nil {
		return Scene{}, fmt.Errorf("read the picture of step %d: %w", st.Step, err)
	}
	s.Picture = sum(data)
	return s, nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

func (r raw) scene(step int, action string) (Scene, error) {
	if r.Observation != nil && r.Observation.Screenshot != nil {
		o := *r.Observation
		o.Screenshot = nil
		r.Observation = &o
	}
	b, err := json.Marshal(r)
	if err != nil {
		return Scene{}, fmt.Errorf("encode step %d: %w", step, err)
	}
	doc, err := decode(b)
	if err != nil {
		return Scene{}, fmt.Errorf("decode step %d: %w", step, err)
	}
	if info, ok := doc["info"].(map[string]any); ok {
		for _, name := range beside {
			delete(info, name)
		}
	}
	return Scene{Step: step, Action: action, doc: encode(doc)}, nil
}

// decode keeps numbers as they are written.
func decode(b []byte) (map[string]any, error) {
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	err := dec.Decode(&doc)
	return doc, err
}

// encode writes maps in the order of their keys. What was decoded can be encoded.
func encode(doc map[string]any) []byte {
	b, _ := json.Marshal(doc)
	return b
}

// Sum is a hash over the whole scene without its picture.
func (s Scene) Sum() string { return sum(s.doc) }

// Diff lists what is different in b; nothing when the scenes are equal.
func Diff(a, b Scene) []Difference {
	var d differ
	if !bytes.Equal(a.doc, b.doc) {
		was, err1 := decode(a.doc)
		is, err2 := decode(b.doc)
		if err1 != nil || err2 != nil {
			d.add("step", string(a.doc), string(b.doc))
		}
		d.walk("", was, is)
	}
	if a.Picture != b.Picture {
		d.add("screenshot", "sha256 "+a.Picture, "sha256 "+b.Picture)
	}
	return d.found
}
