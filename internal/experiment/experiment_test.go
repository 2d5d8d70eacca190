package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/learn/train"
	"github.com/pommelgym/pommel/internal/rollout"
)

// results are two arms, two seeds and two profiles with rates that are easy to add up.
func results() *Result {
	r := &Result{Design: Design{
		World: "w", Arms: []Arm{{Name: "calm"}, {Name: "rough", Profile: "rough"}}, Train: []string{"a", "b"}, Steps: 100, Seeds: []int64{1, 2},
		Suites: []Suite{{Name: "test", Tasks: []string{"c"}}}, Profiles: []string{"calm", "heldout"}, Rounds: 50,
	}}
	for i, arm := range []string{"calm", "rough"} {
		for _, seed := range r.Design.Seeds {
			run := Run{Arm: arm, Seed: seed, Trained: &train.Outcome{Steps: 101, Digest: "beef"}}
			for k, profile := range r.Design.Profiles {
				won := 40 - 20*k + 10*i*k + int(seed)
				run.Tests = append(run.Tests, Test{Suite: "test", Profile: profile, Played: &rollout.Summary{Episodes: 50, Success: won, SuccessRate: float64(won) / 50, MeanReward: 0.5}})
			}
			r.Runs = append(r.Runs, run)
		}
	}
	r.compare()
	return r
}

func TestCompareAddsUpTheSeeds(t *testing.T) {
	t.Parallel()
	r := results()
	c := r.Cells[3]
	if c.Arm != "rough" || c.Profile != "heldout" || c.Success != 63 || c.Episodes != 100 || c.Rate != 0.63 || c.Reward != 0.5 || len(c.Seeds) != 2 || c.Seeds[1] != 0.64 {
		t.Errorf("the fourth cell is %+v", c)
	}
	calm, heldout := r.Contrasts[0], r.Contrasts[1]
	if calm.Gain != 0 || calm.Sure {
		t.Errorf("equal arms differ: %+v", calm)
	}
	if heldout.Gain < 0.199 || heldout.Gain > 0.201 || !heldout.Sure {
		t.Errorf("63 of 100 against 43 of 100 is %+v", heldout)
	}
}

func TestReportHoldsTheFigures(t *testing.T) {
	t.Parallel()
	r := results()
	page, err := r.Markdown("resilience", "pommel experiment --steps 100")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"`pommel experiment --steps 100`", "| test | heldout | rough | 63 of 100 (63 %) | 53 % to 72 % | 62 %, 64 % | 0.50 |",
		"| test | heldout | +20 | +6 to +33 | outside of chance |", "| test | calm | +0 |", "resilience/success.png", "| rough | 2 | 101 |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report lacks %q:\n%s", want, page)
		}
	}
	plot, err := r.Plot()
	if err != nil || !strings.HasPrefix(string(plot), "\x89PNG") {
		t.Errorf("plot: %d bytes, %v", len(plot), err)
	}
}

// A folder that holds another experiment is left alone.
func TestFolderOfAnotherDesign(t *testing.T) {
	t.Parallel()
	l := Lab{Dir: t.TempDir()}
	d := results().Design
	for range 2 {
		if err := l.claim(d); err != nil {
			t.Fatal(err)
		}
	}
	d.Seeds = append(slices.Clone(d.Seeds), 99)
	for range 2 {
		if err := l.claim(d); err != nil {
			t.Errorf("a seed was added: %v", err)
		}
	}
	fewer := d
	fewer.Seeds = d.Seeds[:1]
	if err := l.claim(fewer); err == nil {
		t.Error("seeds that were taken away: no error")
	}
	d.Steps++
	if err := l.claim(d); err == nil || !strings.Contains(err.Error(), "another design") {
		t.Errorf("claim: %v", err)
	}
}

// TestResultsNameNoFolder: what is published does not say where on a machine it was made, whenever that was.
func TestResultsNameNoFolder(t *testing.T) {
	t.Parallel()
	l := Lab{Dir: t.TempDir()}
	done := results()
	for _, run := range done.Runs {
		dir := filepath.Join(l.Dir, fmt.Sprintf("%s-%d", run.Arm, run.Seed))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(dir, "train.json"), run.Trained); err != nil {
			t.Fatal(err)
		}
		for _, test := range run.Tests {
			test.Played.Agent = "policy:" + filepath.Join(dir, policyFile)
			if err := write(filepath.Join(dir, test.Suite+"-"+test.Profile+".json"), test); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := l.Run(t.Context(), done.Design) // nothing is left to do
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Runs[3].Tests[1].Played; got.Agent != "policy:rough-2/policy.pommel" || got.Success != 32 {
		t.Errorf("%+v", got)
	}
	b, err := os.ReadFile(filepath.Join(l.Dir, "result.json"))
	if err != nil || strings.Contains(string(b), l.Dir) {
		t.Errorf("%v:\n%s", err, b)
	}
}
