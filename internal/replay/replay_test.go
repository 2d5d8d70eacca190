package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

func result(change func(*gym.Result)) *gym.Result {
	cell := "placed"
	r := &gym.Result{
		Step: 3, Reward: 0.25,
		Observation: &gym.Observation{URL: "http://x/", Text: "RootWebArea\n\t[1] button 'Buy'\n\t[2] link 'Help'"},
		Info: gym.Info{Task: "t", Changes: []gym.Change{{Table: "orders", Op: "insert", New: map[string]*string{"status": &cell, "note": nil}}},
			ObservationHash: "aa", Timing: gym.Timing{TotalMS: 4}},
	}
	if change != nil {
		change(r)
	}
	return r
}

func scene(t *testing.T, r *gym.Result) Scene {
	t.Helper()
	s, err := SceneOf("noop()", r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDiffNamesWhatDiffers: each kind of difference is found, and named where it is.
func TestDiffNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	was := scene(t, result(nil))
	other := "shipped"
	for name, c := range map[string]struct {
		change func(*gym.Result)
		want   []Difference
	}{
		"nothing":   {nil, nil},
		"wall time": {func(r *gym.Result) { r.Info.Timing.TotalMS = 99 }, nil},
		"text": {func(r *gym.Result) { r.Observation.Text = "RootWebArea\n\t[1] button 'Sell'\n\t[2] link 'Help'" },
			[]Difference{{"observation.text line 2", "\t[1] button 'Buy'", "\t[1] button 'Sell'"}}},
		"a line more": {func(r *gym.Result) { r.Observation.Text += "\nend" }, []Difference{{"observation.text line 4", "(nothing)", "end"}}},
		"reward":      {func(r *gym.Result) { r.Reward = 1 }, []Difference{{"reward", "0.25", "1"}}},
		"a cell": {func(r *gym.Result) { r.Info.Changes[0].New["status"] = &other },
			[]Difference{{"info.changes[0].new.status", "placed", "shipped"}}},
		"NULL": {func(r *gym.Result) { r.Info.Changes[0].New["note"] = &other },
			[]Difference{{"info.changes[0].new.note", "null", `"shipped"`}}},
		"a row less": {func(r *gym.Result) { r.Info.Changes = []gym.Change{} },
			[]Difference{{"info.changes", `[{"new":{"note":null,"status":"placed"},"op":"insert","table":"orders"}]`, "(nothing)"}}},
	} {
		if diff := cmp.Diff(c.want, Diff(was, scene(t, result(c.change)))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	text := Text(Diff(was, scene(t, result(func(r *gym.Result) { r.Observation.Title = "new" }))))
	if text != "observation.title\n  - \n  + new\n" {
		t.Errorf("text = %q", text)
	}
}

// TestScreenshotsAreCompared, by content.
func TestScreenshotsAreCompared(t *testing.T) {
	t.Parallel()
	shot := func(data string) Scene {
		return scene(t, result(func(r *gym.Result) { r.Observation.Screenshot = &gym.Image{Format: "png", Data: []byte(data)} }))
	}
	if d := Diff(shot("a"), shot("a")); len(d) > 0 {
		t.Errorf("equal pictures differ: %v", d)
	}
	if d := Diff(shot("a"), shot("b")); len(d) != 1 || d[0].Path != "screenshot" {
		t.Errorf("different pictures: %v", d)
	}
}

// TestARecordComparesEqualToItsResult: what went through the files is the same scene.
func TestARecordComparesEqualToItsResult(t *testing.T) {
	t.Parallel()
	r := result(func(r *gym.Result) { r.Observation.Screenshot = &gym.Image{Format: "png", Data: []byte("a")} })
	info, err := json.Marshal(r.Info)
	if err != nil {
		t.Fatal(err)
	}
	s, err := trace.Open(t.TempDir(), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := s.Begin(trace.Header{EpisodeID: "e"})
	rec.Step(trace.Step{Step: r.Step, Action: "noop()", Observation: r.Observation, Reward: r.Reward, Info: info})
	rec.End(trace.End{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Dir(), "e")
	tr, err := trace.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	was, err := recorded(tr.Header, tr.Steps[0], dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(was, scene(t, r)); len(d) > 0 {
		t.Errorf("they differ: %s", Text(d))
	}
}

// TestOlderRecords: what they do not say is worked out, and what they were not told is not compared.
func TestOlderRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := `{"kind":"header","format":1,"episode_id":"e","world":"w","task":"buy","seed":4}
{"kind":"step","step":0,"action":"","observation":{"text":"x","elements":[{"bid":"1"}]},"info":{"task":"buy","success":false}}
{"kind":"end","reason":"truncated","steps":7}
`
	if err := os.WriteFile(filepath.Join(dir, trace.FileName), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Request(tr)
	want := gym.Request{Task: "buy", Seed: 4, MaxSteps: 7, View: gym.View{Elements: true}}
	if err != nil || r != want {
		t.Errorf("request = %+v, %v; want %+v", r, err, want)
	}
	now := &gym.Result{Observation: &gym.Observation{Text: "x", Elements: []gym.Element{{Bid: "1"}}}, Info: gym.Info{Task: "buy", Split: "train"}}
	found, err := compare(tr, tr.Steps[0], dir, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if strings.HasPrefix(d.Path, "info.") {
			t.Errorf("compared what the record was not told: %+v", d)
		}
	}
	now.Info.Success = true
	if found, err = compare(tr, tr.Steps[0], dir, now); err != nil || !strings.Contains(Text(found), "info.success") {
		t.Errorf("a difference was overlooked: %v, %v", found, err)
	}
}
