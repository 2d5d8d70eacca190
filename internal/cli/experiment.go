package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/experiment"
	"github.com/pommelgym/pommel/internal/learn/train"
)

type experimentCmd struct {
	worldFlags
	jsonFlag
	Tasks     []string `help:"Train on these tasks. Default: the easy ones of the training split: what a policy cannot do undisturbed says nothing of trouble."`
	TestTasks []string `help:"Judge by these as tasks that were not trained on. Default: the easy and medium ones of the test split."`
	Profile   string   `default:"rough" help:"What the second arm is trained under; the first is trained without perturbations."`
	Profiles  []string `default:"calm,rough,heldout" help:"What both are judged under."`
	Steps     int      `default:"5000" help:"Steps of training for each policy."`
	Seeds     []int64  `default:"1,2,3" help:"Seeds of training: one policy of each arm for each. More can be added to what is done."`
	Rounds    int      `default:"8" help:"How often each policy plays each task under each profile."`
	HintAfter int      `default:"2" help:"As in pommel train."`
	Prior     bool     `default:"true" negatable:"" help:"Begin with the habits that pommel train begins with; without, with no opinion at all."`
	Parallel  int      `default:"2" help:"How many worlds play at the same time; the result does not depend on it."`
	Out       string   `default:"pommel-experiment" help:"Folder for policies and results. What lies there is not done again."`
	Report    string   `default:"" help:"Write the report to this Markdown file, and its plot and results into a folder of the same name. Default: OUT/report.md."`
}

// Validate refuses what cannot be meant.
func (c *experimentCmd) Validate() error {
	if c.Steps < 1 || c.Rounds < 1 || c.Parallel < 1 || c.HintAfter < 0 || len(c.Seeds) == 0 || len(c.Profiles) == 0 {
		return fmt.Errorf("--steps, --rounds and --parallel take 1 or more, --hint-after 0 or more, --seeds and --profiles one or more each")
	}
	if c.Report == "" {
		c.Report = filepath.Join(c.Out, "report.md")
	}
	if filepath.Ext(c.Report) != ".md" {
		return fmt.Errorf("--report %s: a name that ends with .md is expected", c.Report)
	}
	return nil
}

func (c *experimentCmd) Run(ctx context.Context, s *State) error {
	g, err := c.open(ctx, s, c.Parallel)
	if err != nil {
		return err
	}
	defer g.Close()
	design, err := c.design(g)
	if err != nil {
		return err
	}
	lab := experiment.Lab{
		Gym: g, Dir: c.Out, Parallel: c.Parallel, Judge: s.episodes,
		Watch: func(label string, tasks []gym.TaskInfo) (train.Watch, func()) {
			s.say("%s", label)
			v := newTrainView(s, tasks, fmt.Sprintf("%d steps", c.Steps))
			return v.watch(), v.end
		},
	}
	r, err := lab.Run(ctx, design)
	if err != nil {
		return err
	}
	if err := c.write(r); err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(r)
	}
	printExperiment(s, r, c.Report)
	return nil
}

func (c *experimentCmd) design(g *gym.Gym) (d experiment.Design, err error) {
	for _, p := range append([]string{c.Profile}, c.Profiles...) {
		if err := g.CheckProfile(p); err != nil {
			return d, err
		}
	}
	learnt, err := trainingTasks(g, c.Tasks, []string{"easy"})
	if err != nil {
		return d, err
	}
	unseen, err := tasksOf(g, "test", c.TestTasks, []string{"easy", "medium"})
	if err != nil {
		return d, err
	}
	return experiment.Design{
		World: g.Describe().World, Train: taskIDs(learnt), Steps: c.Steps, Seeds: c.Seeds, HintAfter: c.HintAfter, Prior: c.Prior,
		Arms:     []experiment.Arm{{Name: "calm"}, {Name: c.Profile, Profile: c.Profile}},
		Suites:   []experiment.Suite{{Name: "train", Tasks: taskIDs(learnt)}, {Name: "test", Tasks: taskIDs(unseen)}},
		Profiles: c.Profiles, Rounds: c.Rounds, FirstSeed: firstUnseenSeed,
	}, nil
}

// firstUnseenSeed lies above all seeds that training draws.
const firstUnseenSeed = 1_000_000

func taskIDs(tasks []gym.TaskInfo) []string {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

// write writes the report, its plot and its results.
func (c *experimentCmd) write(r *experiment.Result) error {
	name := strings.TrimSuffix(c.Report, ".md")
	plot, err := r.Plot()
	if err != nil {
		return err
	}
	results, err := os.ReadFile(filepath.Join(c.Out, "result.json"))
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	page, err := r.Markdown(filepath.Base(name), c.command())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return fmt.Errorf("make the report's folder: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{filepath.Join(name, "success.png"), plot}, {filepath.Join(name, "result.json"), results}, {c.Report, page}} {
		if err := os.WriteFile(f.name, f.data, 0o644); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}

// command is what repeats the experiment.
func (c *experimentCmd) command() string {
	seeds := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(c.Seeds)), ","), "[]")
	cmd := fmt.Sprintf("pommel experiment --world %s --profile %s --profiles %s --steps %d --seeds %s --rounds %d --hint-after %d",
		c.World, c.Profile, strings.Join(c.Profiles, ","), c.Steps, seeds, c.Rounds, c.HintAfter)
	if len(c.Tasks) > 0 {
		cmd += " --tasks " + strings.Join(c.Tasks, ",")
	}
	if len(c.TestTasks) > 0 {
		cmd += " --test-tasks " + strings.Join(c.TestTasks, ",")
	}
	if !c.Prior {
		cmd += " --no-prior"
	}
	return cmd
}

func printExperiment(s *State, r *experiment.Result, report string) {
	var rows [][]string
	for _, x := range r.Cells {
		rows = append(rows, []string{x.Suite, x.Profile, x.Arm, fmt.Sprintf("%d/%d", x.Success, x.Episodes), percent(x.Success, x.Episodes),
			fmt.Sprintf("%.0f-%.0f %%", 100*x.Interval.Low, 100*x.Interval.High)})
	}
	table(s.Stdout, "TASKS|PROFILE|TRAINED UNDER|EPISODES|SUCCESS|95 % INTERVAL", rows...)
	fmt.Fprintln(s.Stdout)
	for _, x := range r.Contrasts {
		sure := "within chance"
		if x.Sure {
			sure = "outside of chance"
		}
		fmt.Fprintf(s.Stdout, "%s under %s: %s less %s is %+.0f points (%+.0f to %+.0f): %s\n",
			x.Suite, x.Profile, r.Last().Name, r.First().Name, 100*x.Gain, 100*x.Interval.Low, 100*x.Interval.High, sure)
	}
	fmt.Fprintf(s.Stdout, "report: %s\n", report)
}
