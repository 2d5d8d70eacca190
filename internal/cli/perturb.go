package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/perturb/plan"
)

type perturbCmd struct {
	List    perturbListCmd    `cmd:"" help:"List the kinds of perturbation, or the built-in profiles."`
	Plan    perturbPlanCmd    `cmd:"" help:"Print what a profile will do in the episode of a seed."`
	Gallery perturbGalleryCmd `cmd:"" help:"Take pictures of what each kind makes of a page."`
}

type perturbListCmd struct {
	jsonFlag
	Profiles bool   `help:"List the built-in profiles instead."`
	World    string `default:"" help:"Also the kinds that this world brings."`
}

func (c *perturbListCmd) Run(s *State) error {
	if c.Profiles {
		return c.profiles(s)
	}
	kinds, err := gym.PerturbationKinds(c.World)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(map[string]any{"kinds": kinds})
	}
	var rows [][]string
	for _, k := range kinds {
		rows = append(rows, []string{k.Name, k.Point, strconv.Itoa(k.Cost), k.Recovery, k.Doc})
	}
	table(s.Stdout, "KIND|DECIDED AT|COST|RECOVERY|", rows...)
	return nil
}

func (c *perturbListCmd) profiles(s *State) error {
	profiles, err := gym.Profiles()
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(map[string]any{"profiles": profiles})
	}
	var rows [][]string
	for _, p := range profiles {
		rows = append(rows, []string{p.Name, strconv.Itoa(p.Rules), p.Title})
	}
	table(s.Stdout, "PROFILE|RULES|", rows...)
	return nil
}

type perturbPlanCmd struct {
	jsonFlag
	Profile string `required:"" help:"A built-in profile or a .yaml file; @0.5 or @40% behind it sets the strength."`
	Seed    int64  `default:"0" help:"Seed of the episode."`
	Task    string `default:"" help:"Task of the episode; empty shows rules for all tasks."`
	World   string `default:"" help:"World whose own kinds the profile may use."`
}

func (c *perturbPlanCmd) Run(s *State) error {
	p, err := gym.PerturbationPlan(c.World, c.Profile, c.Task, c.Seed)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(map[string]any{"profile": c.Profile, "seed": c.Seed, "plan": p})
	}
	if p == nil {
		fmt.Fprintf(s.Stdout, "%s, seed %d: nothing will happen\n", c.Profile, c.Seed)
		return nil
	}
	var rows [][]string
	for _, r := range p.Rules {
		for _, f := range r.Firings {
			rows = append(rows, []string{r.ID, fmt.Sprintf("%s %d", r.Point, f.At), details(r, f)})
		}
	}
	table(s.Stdout, "RULE|AT|WITH", rows...)
	fmt.Fprintf(s.Stdout, "\n%s, seed %d: %d strikes, at most %d steps to get over\n", c.Profile, c.Seed, len(rows), p.Cost())
	return nil
}

// details writes the settings of a firing in the order of the catalogue.
func details(r plan.Rule, f plan.Firing) string {
	var out []string
	for _, s := range r.Of.Settings {
		if v, ok := f.Texts[s.Name]; ok {
			out = append(out, s.Name+"="+v)
		}
		if v, ok := f.Numbers[s.Name]; ok {
			unit := ""
			if s.Type == "duration" {
				unit = "ms"
			}
			out = append(out, s.Name+"="+strconv.Itoa(v)+unit)
		}
	}
	return strings.Join(out, " ")
}
