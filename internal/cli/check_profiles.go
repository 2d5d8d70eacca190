package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/check"
	"github.com/pommelgym/pommel/internal/rollout"
)

// profiles are the names that --profiles asks for.
func (c *checkCmd) profiles() ([]string, error) {
	var out []string
	for _, name := range c.Profiles {
		if name != "all" {
			out = append(out, name)
			continue
		}
		all, err := gym.Profiles()
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			out = append(out, p.Name)
		}
	}
	return out, nil
}

// checkProfiles has the recovering oracle play every task and seed under each profile, and
// adds what it found to the tasks.
func (c *checkCmd) checkProfiles(ctx context.Context, s *State, g *gym.Gym, tasks []gym.TaskInfo, found []check.Task) error {
	profiles, err := c.profiles()
	if err != nil {
		return err
	}
	for _, name := range profiles {
		wrong := map[string][]string{}
		_, err := s.rollout(ctx, g, "profile "+name, rollout.Config{
			Agent: "oracle", Tasks: tasks, Episodes: len(tasks) * c.Seeds, Parallel: c.Parallel, Seed: c.Seed, Profile: name,
		}, func(e rollout.Episode) {
			switch {
			case e.Lost != nil:
				wrong[e.Task] = append(wrong[e.Task], fmt.Sprintf("seed %d: %v", e.Seed, e.Lost))
			case !e.Success || e.Reward < 1-1e-9:
				wrong[e.Task] = append(wrong[e.Task], fmt.Sprintf("seed %d: reward %.4g after %d steps: %v", e.Seed, e.Reward, e.Steps, e.AgentError))
			}
		})
		if err != nil {
			return err
		}
		for i := range found {
			detail := strings.Join(wrong[found[i].Task], "; ")
			found[i].Checks = append(found[i].Checks, check.Check{
				Name: "profile_" + name, OK: detail == "", Detail: detail,
				Remedy: "play the seed with `pommel run --profile " + name + "` and look at what struck; give the kind targets, or mend the task",
			})
			found[i].OK = found[i].OK && detail == ""
		}
	}
	return nil
}
