package export

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/trace"
)

func recorded(t *testing.T) ([]Row, string) {
	t.Helper()
	s, err := trace.Open(t.TempDir(), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Begin(trace.Header{EpisodeID: "e1", World: "w", Task: "buy", Seed: 7, Instruction: "Köp \"två\""})
	r.Step(trace.Step{Observation: &browser.Observation{URL: "http://x/", Text: "[1] button 'Köp'\nnext"}})
	r.Step(trace.Step{
		Step: 1, Action: "click('1')", Reward: 0.25, Terminated: true,
		Info: json.RawMessage(`{"observation_hash":"abc","changes":[{"table":"t","op":"insert","new":{"a":null}}]}`),
		Observation: &browser.Observation{Text: "done", Elements: []browser.Element{{Bid: "1", Role: "button"}},
			Screenshot: &browser.Image{Format: "png", Data: []byte("\x89PNG\x00")}},
	})
	r.End(trace.End{Reason: "terminated", Success: true, Reward: 0.25, Steps: 1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Dir(), "e1")
	tr, err := trace.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Rows(tr, dir)
	if err != nil {
		t.Fatal(err)
	}
	return rows, dir
}

func TestParquetHoldsTheRows(t *testing.T) {
	t.Parallel()
	rows, _ := recorded(t)
	if len(rows) != 2 || rows[1].ObservationHash != "abc" || !rows[0].Success || string(rows[1].Screenshot) != "\x89PNG\x00" || rows[1].ScreenshotFormat != "png" {
		t.Fatalf("rows = %+v", rows)
	}
	var out bytes.Buffer
	w := Parquet(&out)
	for range 3 { // three episodes
		if err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := parquet.Read[Row](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(got) != 6 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i := range got {
		want := rows[i%2]
		if want.Screenshot == nil {
			want.Screenshot = got[i].Screenshot[:0] // a column of bytes has no nil
		}
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("row %d: %s", i, diff)
		}
	}
}

func TestJSONLHoldsTheRows(t *testing.T) {
	t.Parallel()
	rows, _ := recorded(t)
	var out bytes.Buffer
	w := JSONL(&out)
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var got Row
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows[1], got); diff != "" {
		t.Error(diff)
	}
}

// A record is no reason to read files elsewhere.
func TestPicturesLieInTheFolder(t *testing.T) {
	t.Parallel()
	_, dir := recorded(t)
	tr := &trace.Trace{Steps: []trace.Step{{Screenshot: "../../../../etc/hostname", Observation: &browser.Observation{}}}}
	if rows, err := Rows(tr, dir); err == nil {
		t.Errorf("a picture outside of the folder was read: %+v", rows)
	}
}
