package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/rollout"
)

// worldFlags choose a world and how many copies of it run.
type worldFlags struct {
	World  string `default:"shop" help:"Name or folder of the world."`
	Driver string `default:"auto" help:"${driver_help}"`
	Traces string `default:"" help:"Folder for recorded episodes, or 'off'. Default: below the user's state folder."`
	Keep   int    `default:"2000" help:"How many recorded episodes to keep; 0 keeps all."`
	Log    bool   `help:"Log what worlds do to standard error."`
}

func (f worldFlags) open(ctx context.Context, s *State, worlds int) (*gym.Gym, error) {
	return f.openLogged(ctx, s, worlds, s.logger(f.Log))
}

func (f worldFlags) openLogged(ctx context.Context, s *State, worlds int, log *slog.Logger) (*gym.Gym, error) {
	return gym.Open(ctx, f.options(s, worlds, log))
}

// openProof opens worlds that keep no starts of episodes: what differs from start to start shall show.
func (f worldFlags) openProof(ctx context.Context, s *State, worlds int) (*gym.Gym, error) {
	o := f.options(s, worlds, s.logger(f.Log))
	o.Starts = -1
	return gym.Open(ctx, o)
}

func (f worldFlags) options(s *State, worlds int, log *slog.Logger) gym.Options {
	return gym.Options{
		World: f.World, Driver: f.Driver, Worlds: worlds, Traces: f.Traces, KeepTraces: f.Keep,
		Log: log, Progress: s.bootProgress(),
	}
}

// taskFlags choose tasks.
type taskFlags struct {
	Task       []string `help:"${tasks_help}"`
	Split      string   `enum:",train,validation,test" default:"" help:"Only tasks of this split."`
	Difficulty string   `enum:",easy,medium,hard" default:"" help:"Only tasks of this difficulty."`
}

func (f taskFlags) choose(g *gym.Gym) ([]gym.TaskInfo, error) {
	return g.Select(f.Split, f.Difficulty, f.Task)
}

type runCmd struct {
	worldFlags
	taskFlags
	jsonFlag
	Agent    string  `default:"oracle" help:"Who plays: oracle, random, policy:FILE (from pommel train), or cmd:PROGRAM (JSON lines on its standard input and output)."`
	Episodes int     `default:"20" help:"How many episodes; tasks take turns."`
	Parallel int     `default:"1" help:"How many worlds run at the same time."`
	Seed     int64   `default:"0" help:"Seed of the first episode; each next one adds 1."`
	Screens  string  `enum:",png,jpeg" default:"" help:"Record a picture of each step for the dashboard: png or jpeg."`
	Profile  string  `default:"" help:"Perturbations: calm, mild, rough, hostile, heldout or a .yaml file; @0.5 or @40% behind it sets the strength."`
	Expect   float64 `name:"expect-success" default:"0" help:"Exit with 1 if the success rate is lower (0..1)."`
}

// Validate refuses what cannot be meant.
func (c *runCmd) Validate() error {
	if c.Episodes < 1 || c.Parallel < 1 || c.Expect < 0 || c.Expect > 1 {
		return fmt.Errorf("--episodes and --parallel take 1 or more, --expect-success 0 to 1")
	}
	return nil
}

func (c *runCmd) Run(ctx context.Context, s *State) error {
	g, err := c.open(ctx, s, min(c.Parallel, c.Episodes))
	if err != nil {
		return err
	}
	defer g.Close()
	tasks, err := c.choose(g)
	if err != nil {
		return err
	}
	if err := g.CheckProfile(c.Profile); err != nil {
		return err
	}
	sum, err := s.rollout(ctx, g, c.Agent, rollout.Config{
		Agent: c.Agent, Tasks: tasks, Episodes: c.Episodes, Parallel: c.Parallel, Seed: c.Seed, Profile: c.Profile, Screenshot: c.Screens,
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = s.printJSON(struct {
			World string `json:"world"`
			*rollout.Summary
		}{g.Describe().World, sum})
	} else {
		printSummary(s, sum)
	}
	if err == nil && (sum.SuccessRate < c.Expect || sum.Lost > 0) {
		err = errNotGood
	}
	return err
}

// rollout plays episodes behind a progress bar.
func (s *State) rollout(ctx context.Context, g *gym.Gym, label string, c rollout.Config, each ...func(rollout.Episode)) (*rollout.Summary, error) {
	show, end := s.episodes(label, c.Episodes)
	defer end()
	c.OnEpisode = func(e rollout.Episode) {
		show(e)
		for _, f := range each {
			f(e)
		}
	}
	return rollout.Run(ctx, g, c)
}

// episodes is a progress bar for n episodes: what to tell of each, and what to call at the end.
func (s *State) episodes(label string, n int) (func(rollout.Episode), func()) {
	bar := s.progress(label, n)
	played, won, lost := 0, 0, 0
	return func(e rollout.Episode) {
		switch {
		case e.Lost != nil:
			lost++
		case e.Success:
			won++
			played++
		default:
			played++
		}
		note := fmt.Sprintf("success %s", percent(won, played))
		if lost > 0 {
			note += fmt.Sprintf(", %d lost", lost)
		}
		bar.step(note)
	}, bar.end
}

// printKinds compares success with and without each kind of perturbation that struck.
func printKinds(s *State, sum *rollout.Summary) {
	if len(sum.ByKind) == 0 {
		return
	}
	var rows [][]string
	for _, k := range sum.ByKind {
		rows = append(rows, []string{
			k.Kind, strconv.Itoa(k.Strikes), strconv.Itoa(k.With.Episodes), percent(k.With.Success, k.With.Episodes), percent(k.Without.Success, k.Without.Episodes),
		})
	}
	fmt.Fprintf(s.Stdout, "\nprofile %s, something struck in %d episodes\n", sum.Profile, sum.Perturbed)
	table(s.Stdout, "KIND|STRIKES|EPISODES|SUCCESS WITH|WITHOUT", rows...)
}

func printSummary(s *State, sum *rollout.Summary) {
	var rows [][]string
	for _, t := range sum.ByTask {
		rows = append(rows, []string{
			t.Task, t.Difficulty, t.Split, strconv.Itoa(t.Episodes), percent(t.Success, t.Episodes),
			fmt.Sprintf("%.2f", t.MeanReward), fmt.Sprintf("%.1f", t.MeanSteps),
		})
	}
	table(s.Stdout, "TASK|DIFFICULTY|SPLIT|EPISODES|SUCCESS|REWARD|STEPS", rows...)
	printKinds(s, sum)
	fmt.Fprintf(s.Stdout, "\n%s: %d of %d episodes succeeded (%s; 95 %% interval %.0f to %.0f %%), mean reward %.3f, %.1f steps/s, %d truncated, %d infrastructure failures\n",
		sum.Agent, sum.Success, sum.Episodes, percent(sum.Success, sum.Episodes),
		100*sum.Interval.Low, 100*sum.Interval.High, sum.MeanReward, sum.StepsPerS, sum.Truncated, sum.Lost)
	for _, f := range sum.Failures {
		fmt.Fprintf(s.Stdout, "  %s seed %d (%s): %s\n", f.Task, f.Seed, f.Kind, f.Error)
	}
}
