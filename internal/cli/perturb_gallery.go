package cli

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

type perturbGalleryCmd struct {
	World string   `default:"shop" help:"Name or folder of the world."`
	Out   string   `required:"" help:"Folder for the pictures and an index.html."`
	Kind  []string `help:"Only these kinds."`
	Page  []string `help:"Paths of the pages to show; default: the start page, the page of the world's bench, and one that it links to."`
	Words string   `enum:"common,heldout" default:"common" help:"Which set of wordings."`
	Seed  int64    `default:"1" help:"Seed of the episodes."`
}

// picture is one page under one kind.
type picture struct{ Kind, Doc, Theme, Page, File, Seen string }

func (c *perturbGalleryCmd) Run(ctx context.Context, s *State) error {
	kinds, err := c.kinds()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	g, err := gym.Open(ctx, gym.Options{World: c.World, Traces: "off", Progress: s.bootProgress()})
	if err != nil {
		return err
	}
	defer g.Close()
	plan, err := g.Bench()
	if err != nil {
		return err
	}
	env := g.NewEnv()
	defer env.Close()
	if len(c.Page) == 0 {
		if c.Page, err = somePages(ctx, env, plan); err != nil {
			return err
		}
	}
	bar := s.progress("gallery", 2*len(kinds))
	defer bar.end()
	var all []picture
	for _, k := range kinds {
		for _, theme := range []string{"light", "dark"} {
			bar.step(k.Name)
			shots, err := c.shoot(ctx, env, plan.Task, k, theme)
			if err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			all = append(all, shots...)
		}
	}
	return c.index(s, all)
}

// kinds are those that can be seen.
func (c *perturbGalleryCmd) kinds() ([]gym.PerturbationKind, error) {
	all, err := gym.PerturbationKinds(c.World)
	if err != nil {
		return nil, err
	}
	var out []gym.PerturbationKind
	for _, k := range all {
		seen := k.Point == "page" || k.Name == "http.error" || k.Name == "http.rate_limit"
		if seen && (len(c.Kind) == 0 || slices.Contains(c.Kind, k.Name)) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, gym.NewError(gym.NotFound, "no kind that shows in a page matches")
	}
	return out, nil
}

// profile strikes with one kind on each page but the first.
func (c *perturbGalleryCmd) profile(k gym.PerturbationKind, theme string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: gallery\nrecovery: {steps: 1000, tries: 100}\nrules:\n")
	if k.Name != "browser.theme" {
		fmt.Fprintf(&b, "  - {kind: browser.theme, probability: 1, limit: 1, with: {scheme: %s}}\n", theme)
	}
	fmt.Fprintf(&b, "  - {kind: %s, probability: 1, limit: 50, first: 2", k.Name)
	for _, set := range k.Settings {
		if m, ok := set.(map[string]any); ok && m["name"] == "words" {
			fmt.Fprintf(&b, ", with: {words: %s}", c.Words)
		}
	}
	return b.String() + "}\n"
}

// shoot takes the pictures of one kind.
func (c *perturbGalleryCmd) shoot(ctx context.Context, env *gym.Env, task string, k gym.PerturbationKind, theme string) ([]picture, error) {
	file := filepath.Join(c.Out, "profile.yaml")
	if err := os.WriteFile(file, []byte(c.profile(k, theme)), 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(file)
	if _, err := env.Reset(ctx, gym.Request{Task: task, Seed: c.Seed, Profile: file, MaxSteps: 1000}); err != nil {
		return nil, err
	}
	var out []picture
	for i, page := range c.Page {
		steps := []string{"goto(" + action.Quote(page) + ")", "wait(ms=1500)"}
		if k.Recovery == "confirm" {
			steps = append(steps, `click(selector="main form[method=post] button")`)
		}
		var seen []string
		for len(steps) > 0 {
			r, err := env.Step(ctx, steps[0], gym.View{Elements: true})
			if err != nil {
				return nil, err
			}
			steps = steps[1:]
			if e := r.Observation.LastActionError; e != nil && e.Kind == action.Ambiguous {
				steps = []string{pressFirst(r.Observation)}
			}
			for _, e := range r.Info.Perturbations {
				if e.Kind == k.Name {
					seen = append(seen, e.Seen)
				}
			}
		}
		o, err := env.Observe(ctx, gym.View{Screenshot: "png"})
		if err != nil {
			return nil, err
		}
		if o.Screenshot == nil {
			return nil, errors.New("the browser gave no picture")
		}
		p := picture{Kind: k.Name, Doc: k.Doc, Theme: theme, Page: page, Seen: strings.Join(seen, "; "), File: fmt.Sprintf("%s-%s-%d.png", k.Name, theme, i+1)}
		if err := os.WriteFile(filepath.Join(c.Out, p.File), o.Screenshot.Data, 0o644); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// pressFirst presses the first button of the page's own part, below its header.
func pressFirst(o *gym.Observation) string {
	const header = 120
	for _, e := range o.Elements {
		if e.Role == "button" && e.InViewport && e.Box[1] > header {
			return "click(" + action.Quote(e.Bid) + ")"
		}
	}
	return "noop()"
}

var linkForm = regexp.MustCompile(`<a [^>]*href="(/[^"#?]+)[^"#]*"`)

// somePages are the start page, the page of the bench, and the first that it links to.
func somePages(ctx context.Context, env *gym.Env, plan gym.BenchPlan) ([]string, error) {
	first, err := env.Reset(ctx, gym.Request{Task: plan.Task, MaxSteps: 1000})
	if err != nil {
		return nil, err
	}
	pages := []string{first.Observation.URL, plan.URL}
	r, err := env.Step(ctx, "goto("+action.Quote(plan.URL)+")", gym.View{HTML: true})
	if err != nil {
		return nil, err
	}
	_, inside, _ := strings.Cut(r.Observation.HTML, "<main")
	for _, m := range linkForm.FindAllStringSubmatch(inside, -1) {
		if !slices.Contains(pages, m[1]) {
			return append(pages, m[1]), nil
		}
	}
	return pages, nil
}

var galleryPage = template.Must(template.New("gallery").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Perturbations</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;background:#eceff1;color:#20262b}figure{display:inline-block;margin:0 1rem 1.5rem 0;width:400px;vertical-align:top}
img{width:100%;border:1px solid #b0bec5;border-radius:6px}h2{margin:2rem 0 .2rem}figcaption{font-size:13px;color:#546e7a}</style>
<h1>Perturbations</h1>{{$last := ""}}{{range .}}{{if ne .Kind $last}}<h2>{{.Kind}}</h2><p>{{.Doc}}</p>{{end}}{{$last = .Kind}}
<figure><a href="{{.File}}"><img src="{{.File}}" alt="{{.Kind}}, {{.Theme}}" loading="lazy"></a><figcaption>{{.Theme}}, {{.Page}}<br>{{.Seen}}</figcaption></figure>{{end}}
</html>
`))

func (c *perturbGalleryCmd) index(s *State, all []picture) error {
	f, err := os.Create(filepath.Join(c.Out, "index.html"))
	if err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	if err := errors.Join(galleryPage.Execute(f, all), f.Close()); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	fmt.Fprintf(s.Stdout, "%d pictures, see %s\n", len(all), filepath.Join(c.Out, "index.html"))
	return nil
}
