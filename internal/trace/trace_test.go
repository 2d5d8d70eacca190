package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pommelgym/pommel/internal/browser"
)

func record(t *testing.T, s *Store, id string) {
	t.Helper()
	r := s.Begin(Header{EpisodeID: id, World: "w", Task: "buy", Seed: 7, Params: map[string]any{"n": "2"}})
	r.Step(Step{Step: 0, Observation: &browser.Observation{URL: "http://x/", Text: "[1] button 'Köp'"}})
	r.Step(Step{Step: 1, Action: "click('1')", Reward: 0.5, Observation: &browser.Observation{
		Text: "done", Screenshot: &browser.Image{Format: "png", Width: 2, Height: 1, Scale: 1, Data: []byte("\x89PNG")},
	}})
	r.End(End{Reason: "terminated", Success: true, Reward: 0.5, Steps: 1})
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "deep", "er"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	record(t, s, "e1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(filepath.Join(s.Dir(), "e1"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Task != "buy" || got.Header.Seed != 7 || got.Header.Format != FormatVersion {
		t.Errorf("header = %+v", got.Header)
	}
	if len(got.Steps) != 2 || got.Steps[0].Observation.Text != "[1] button 'Köp'" || got.Steps[1].Action != "click('1')" {
		t.Errorf("steps = %+v", got.Steps)
	}
	if got.End == nil || !got.End.Success || got.End.Reason != "terminated" {
		t.Errorf("end = %+v", got.End)
	}
	pic, err := os.ReadFile(filepath.Join(s.Dir(), "e1", got.Steps[1].Screenshot))
	if err != nil || string(pic) != "\x89PNG" {
		t.Errorf("picture = %q, %v", pic, err)
	}
	if got.Steps[1].Observation.Screenshot.Data != nil {
		t.Error("the picture stands in the lines too")
	}
}

func TestKeepRemovesTheOldest(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir(), Options{Keep: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir(), "000-not-a-trace"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		record(t, s, fmt.Sprintf("e%d", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := List(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"e2", "e3", "e4"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), "000-not-a-trace")); err != nil {
		t.Error("a folder that is no trace was removed:", err)
	}
}

func TestFailureIsReportedAndRecordingGoesOn(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	record(t, s, "same")
	record(t, s, "same") // its folder exists already
	record(t, s, "other")
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "record same") {
		t.Errorf("Close = %v, want the failure of the second episode", err)
	}
	if _, err := Read(filepath.Join(s.Dir(), "other")); err != nil {
		t.Error(err)
	}
	s.Begin(Header{EpisodeID: "late"}).End(End{}) // after Close: dropped, no panic
}

func TestReadErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"empty":     {"", "no header line"},
		"not json":  {"{\"kind\":\"header\",\"format\":1}\nhello\n", "line 2"},
		"too new":   {"{\"kind\":\"header\",\"format\":99}\n", "format 99 is newer"},
		"only step": {"{\"kind\":\"step\",\"step\":1}\n", "no header line"},
	} {
		_, err := parse(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %q", name, err, c.want)
		}
	}
	tr, err := parse(strings.NewReader("{\"kind\":\"header\",\"format\":1}\n{\"kind\":\"future\",\"x\":1}\n{\"kind\":\"step\",\"step\":4}\n"))
	if err != nil || len(tr.Steps) != 1 || tr.End != nil {
		t.Errorf("trace with an unknown line: %+v, %v", tr, err)
	}
}
