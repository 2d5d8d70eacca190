package gym

import (
	"context"
	"slices"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/own"
	"github.com/pommelgym/pommel/internal/perturb/plan"
	"github.com/pommelgym/pommel/internal/perturb/profile"
	"github.com/pommelgym/pommel/internal/world"
)

// PerturbationKind describes one kind of friction.
type PerturbationKind struct {
	Name string `json:"name"`
	// Point is what it is decided at: request, page or step.
	Point    string `json:"point"`
	Cost     int    `json:"cost"`
	Recovery string `json:"recovery"`
	Doc      string `json:"doc"`
	Settings []any  `json:"settings,omitempty"`
}

// ProfileInfo describes a built-in profile.
type ProfileInfo struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Rules int    `json:"rules"`
}

// PerturbationKinds lists the kinds that Pommel and, unless it is "", a world bring.
func PerturbationKinds(world string) ([]PerturbationKind, error) {
	own, err := ownKinds(world)
	if err != nil {
		return nil, err
	}
	var out []PerturbationKind
	for _, k := range append(kind.All(), own...) {
		p := PerturbationKind{Name: k.Name, Point: string(k.Point), Cost: k.Cost, Recovery: k.Recovery, Doc: k.Doc}
		for _, s := range k.Settings {
			p.Settings = append(p.Settings, map[string]any{"name": s.Name, "type": s.Type, "default": s.Default, "doc": s.Doc})
		}
		out = append(out, p)
	}
	return out, nil
}

// Profiles lists the built-in profiles.
func Profiles() ([]ProfileInfo, error) {
	var out []ProfileInfo
	for _, name := range profile.Shipped() {
		p, err := profile.Load(name, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, ProfileInfo{Name: name, Title: p.Title, Rules: len(p.Rules)})
	}
	return out, nil
}

// PerturbationPlan is what a profile will do in an episode; nil is nothing. world may be
// "" when the profile uses no kinds of a world.
func PerturbationPlan(world, ref, task string, seed int64) (*plan.Plan, error) {
	if seed < 0 {
		return nil, fault.New(fault.InvalidArgument, "seed %d: expected 0 or more", seed)
	}
	own, err := ownKinds(world)
	if err != nil {
		return nil, err
	}
	p, err := profile.Load(ref, own)
	if err != nil {
		return nil, err
	}
	return plan.Make(p, task, seed), nil
}

// ownKinds are the kinds that a world brings; "" is no world.
func ownKinds(name string) ([]kind.Kind, error) {
	if name == "" {
		return nil, nil
	}
	dir, err := world.Find(name)
	if err != nil {
		return nil, err
	}
	return kindsOf(dir)
}

func kindsOf(dir string) ([]kind.Kind, error) {
	kinds, err := own.Load(dir)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "load the world's perturbations")
	}
	return kinds, nil
}

// checkKinds tries the SQL of the world's own kinds on its database.
func (g *Gym) checkKinds(ctx context.Context) error {
	if !slices.ContainsFunc(g.kinds, func(k kind.Kind) bool { return k.SQL != nil }) {
		return nil
	}
	w, err := g.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer g.pool.Release(w)
	found, err := own.Check(ctx, g.spec.Dir, w.Reader())
	switch {
	case err != nil:
		return fault.Wrap(fault.WorldLost, err, "try the perturbations on the database")
	case len(found) > 0:
		return fault.Wrap(fault.InvalidArgument, found, "the perturbations of world %s do not fit its database", g.spec.Name)
	}
	return nil
}

// profile loads a profile by reference; nil is none.
func (g *Gym) profile(ref string) (*profile.Profile, error) { return profile.Load(ref, g.kinds) }

// CheckProfile says what is wrong with a reference to a profile, before an episode asks for it.
func (g *Gym) CheckProfile(ref string) error {
	_, err := g.profile(ref)
	return err
}
