package batch

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/net"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	os.Exit(m.Run())
}

// TestOracleStepsAreCandidates: what the policy cannot choose it cannot learn. Every step
// of the oracles of the training tasks must be among the candidates of its page.
func TestOracleStepsAreCandidates(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	g, err := gym.Open(ctx, gym.Options{World: "shop", Worlds: 2, Traces: "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	tasks, err := g.Select("train", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []Job
	for _, task := range tasks {
		if task.Difficulty != "hard" {
			for seed := range int64(2) {
				jobs = append(jobs, Job{Task: task.ID, Seed: seed, Limit: task.MaxSteps})
			}
		}
	}
	n := net.New(1)
	envs := []Env{g.NewEnv(), g.NewEnv()}
	episodes, err := Each(ctx, envs, len(jobs), func(ctx context.Context, env Env, i int) Episode {
		return Demonstrate(ctx, env, n, jobs[i])
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range episodes {
		name := fmt.Sprintf("%s seed %d", e.Job.Task, e.Job.Seed)
		wide := 0
		for _, s := range e.Steps {
			wide = max(wide, s.In.N)
		}
		t.Logf("%s: %d steps, at most %d candidates, reward %.2f", name, len(e.Steps), wide, e.Reward)
		if e.Lost != nil {
			t.Errorf("%s: after %d steps: %v", name, len(e.Steps), e.Lost)
		} else if !e.Success {
			t.Errorf("%s: the oracle's own steps did not succeed", name)
		}
	}
	for _, env := range envs {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	}
}
