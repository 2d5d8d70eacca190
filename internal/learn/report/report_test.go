package report

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/learn/train"
	"github.com/pommelgym/pommel/internal/wilson"
)

func outcome() *train.Outcome {
	o := &train.Outcome{
		World: "shop", Profile: "none", Seed: 1, Steps: 90, Updates: 3, SuccessStart: 0, SuccessEnd: 0.9,
		Start: &train.Evaluation{Episodes: 10, Interval: wilson.Of(0, 10)}, End: &train.Evaluation{Episodes: 10, Success: 9, Rate: 0.9, Interval: wilson.Of(9, 10)},
		ByTask: []train.TaskLine{{Task: "buy<item>", Difficulty: "easy", Episodes: 4, Success: 3, End: 0.9}, {Task: "other", Difficulty: "medium", End: 0.5}},
	}
	for i := range 3 {
		o.Curve = append(o.Curve, train.Point{Update: i + 1, Steps: 30 * (i + 1), Success: 0.3 * float64(i+1), Smooth: 0.2 * float64(i+1), Reward: 0.5})
	}
	return o
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir, outcome()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curve.png", "tasks.png"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if img, err := png.Decode(bytes.NewReader(data)); err != nil || img.Bounds().Dx() < 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	html, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(html)
	for _, want := range []string{"buy&lt;item&gt;", "data:image/png;base64,", "0 % before", "90 % after", "60 % to 98 %"} {
		if !strings.Contains(page, want) {
			t.Errorf("report.html lacks %q", want)
		}
	}
	for _, no := range []string{"http://", "https://", "<script"} {
		if strings.Contains(page, no) {
			t.Errorf("report.html has %q; it must stand alone", no)
		}
	}
}

// TestNothingYet: a training that was interrupted before its first update has a report too.
func TestNothingYet(t *testing.T) {
	t.Parallel()
	if err := Write(t.TempDir(), &train.Outcome{World: "shop", ByTask: []train.TaskLine{{Task: "a"}}}); err != nil {
		t.Fatal(err)
	}
}
