package rollout

import (
	"fmt"
	"testing"

	"github.com/pommelgym/pommel/gym"
)

func TestSuccessWithAndWithoutAKind(t *testing.T) {
	t.Parallel()
	s := newSummary(Config{Agent: "oracle", Profile: "rough", Tasks: []gym.TaskInfo{{ID: "buy"}}})
	slow, popup := gym.PerturbationEvent{Kind: "http.latency"}, gym.PerturbationEvent{Kind: "ui.survey"}
	for _, e := range []Episode{
		{Success: true},
		{Success: true, Struck: []gym.PerturbationEvent{slow, slow}},
		{Struck: []gym.PerturbationEvent{slow, popup}},
		{Struck: []gym.PerturbationEvent{popup}, Lost: fmt.Errorf("lost")},
	} {
		e.Task = "buy"
		s.add(e)
	}
	s.finish(1)
	if s.Perturbed != 2 || len(s.ByKind) != 2 {
		t.Fatalf("perturbed %d, kinds %+v", s.Perturbed, s.ByKind)
	}
	got := ""
	for _, k := range s.ByKind {
		got += fmt.Sprintf("%s %d: %d/%d and %d/%d; ", k.Kind, k.Strikes, k.With.Success, k.With.Episodes, k.Without.Success, k.Without.Episodes)
	}
	if want := "ui.survey 1: 0/1 and 2/2; http.latency 3: 1/2 and 1/1; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
