// Package profile reads profiles: which kinds of perturbation come how often, how strong
// and against what. A profile is a strict YAML file; a handful are built in.
package profile

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Profile is a checked profile.
type Profile struct {
	Name  string `yaml:"name,required"`
	Title string `yaml:"title"`
	// Strength scales every rule.
	Strength *float64 `yaml:"strength"`
	Recovery Recovery `yaml:"recovery"`
	Rules    []Rule   `yaml:"rules"`
	// Schedule is a curriculum: strengths over the progress of a training.
	Schedule []Stage `yaml:"schedule"`
	// Tell is added to the instruction of every task.
	Tell string `yaml:"tell"`

	file *yamlfile.File
}

// Recovery is what a plan may ask of an agent.
type Recovery struct {
	// Steps bounds what all firings of an episode cost together.
	Steps int `yaml:"steps"`
	// Tries bounds how often in a row the same request may fail.
	Tries int `yaml:"tries"`
}

// Rule is one kind with its settings.
type Rule struct {
	Kind string `yaml:"kind,required"`
	// ID names the rule's random stream; it is the kind unless a kind has several rules.
	ID          string   `yaml:"id"`
	Strength    *float64 `yaml:"strength"`
	Probability *float64 `yaml:"probability"`
	// Limit is how often it strikes in an episode, Gap how many decision points lie between.
	Limit *int `yaml:"limit"`
	Gap   int  `yaml:"gap"`
	// First is the first decision point at which it may strike, from 1.
	First   int      `yaml:"first"`
	Targets Targets  `yaml:"targets"`
	Window  Window   `yaml:"window"`
	With    Settings `yaml:"with"`

	kind *kind.Kind
	node *yamlfile.Node
}

// Of is the rule's kind.
func (r *Rule) Of() *kind.Kind { return r.kind }

// Targets say what a rule applies to. Empty lists are the kind's own choice.
type Targets struct {
	// URLs are patterns of path and query; * stands for any text.
	URLs    []string `yaml:"urls" json:"urls,omitempty"`
	Methods []string `yaml:"methods" json:"methods,omitempty"`
	Types   []string `yaml:"types" json:"types,omitempty"`
	// Roles and Selectors choose controls for kinds that act upon one.
	Roles     []string `yaml:"roles" json:"roles,omitempty"`
	Selectors []string `yaml:"selectors" json:"selectors,omitempty"`
	// Tasks and NotTasks choose tasks.
	Tasks    []string `yaml:"tasks" json:"tasks,omitempty"`
	NotTasks []string `yaml:"not_tasks" json:"not_tasks,omitempty"`
}

// Window is a span of virtual time since the episode began.
type Window struct {
	After time.Duration `yaml:"after"`
	Until time.Duration `yaml:"until"`
}

// Stage is one point of a curriculum; between two stages the strength changes evenly.
type Stage struct {
	At       float64 `yaml:"at"`
	Strength float64 `yaml:"strength"`
}

// Settings are a rule's settings by name.
type Settings map[string]Choice

// Choice is what a setting is drawn from: one of Values, or a whole number From..To.
type Choice struct {
	Values   []string
	Range    bool
	From, To string
}

// DecodeYAML reads a scalar, a list, or {from, to}.
func (c *Choice) DecodeYAML(n *yamlfile.Node) error {
	switch n.Kind {
	case yamlfile.List:
		for _, it := range n.Items {
			if it.Kind == yamlfile.List || it.Kind == yamlfile.Map || it.Kind == yamlfile.Null {
				return it.Errorf("expected a single value")
			}
			c.Values = append(c.Values, it.Text)
		}
		if len(c.Values) == 0 {
			return n.Errorf("expected at least one value")
		}
	case yamlfile.Map:
		var span struct {
			From string `yaml:"from,required"`
			To   string `yaml:"to,required"`
		}
		if err := n.Decode(&span); err != nil {
			return err
		}
		c.Range, c.From, c.To = true, span.From, span.To
	case yamlfile.Null:
		return n.Errorf("expected a value, a list of values, or {from, to}")
	default:
		c.Values = []string{n.Text}
	}
	return nil
}

// Defaults of rules and recovery.
const (
	DefaultLimit       = 3
	DefaultProbability = 0.2
	DefaultTries       = 3
	DefaultSteps       = 60
)

// Parse reads the content of a profile; file is the name that errors show. own are the
// kinds that the world brings.
func Parse(file string, data []byte, own []kind.Kind) (*Profile, error) {
	f, err := yamlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	p := &Profile{file: f}
	if err := f.Decode(p); err != nil {
		return nil, err
	}
	if p.Recovery.Tries == 0 {
		p.Recovery.Tries = DefaultTries
	}
	if p.Recovery.Steps == 0 {
		p.Recovery.Steps = DefaultSteps
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		r.node = f.Node(fmt.Sprintf("rules[%d]", i))
		if r.ID == "" {
			r.ID = r.Kind
		}
		r.First = max(1, r.First)
	}
	return p, validate(p, own)
}

//go:embed shipped/*.yaml
var shipped embed.FS

// Shipped lists the names of the built-in profiles.
func Shipped() []string {
	entries, err := fs.ReadDir(shipped, "shipped")
	if err != nil {
		return nil // an embedded folder is always there
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	order := []string{"calm", "mild", "rough", "hostile", "heldout"}
	slices.SortFunc(out, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return out
}

// Load reads a profile by reference: NAME or a path to a .yaml file, then optionally
// @0.5 (the strength is half) or @40% (40 % of the way through the schedule). "" and
// "none" are no profile: nil.
func Load(ref string, own []kind.Kind) (*Profile, error) {
	name, scale, scaled := cutScale(ref)
	if name == "" || name == "none" {
		return nil, nil
	}
	data, file, err := read(name)
	if err != nil {
		return nil, err
	}
	p, err := Parse(file, data, own)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "load profile %q", name)
	}
	if !scaled {
		return p, nil
	}
	if err := p.scale(scale); err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "profile %q", ref)
	}
	return p, nil
}

func cutScale(ref string) (name, scale string, scaled bool) {
	i := strings.LastIndexByte(ref, '@')
	if i < 0 {
		return ref, "", false
	}
	return ref[:i], ref[i+1:], true
}

func read(name string) (data []byte, file string, err error) {
	if strings.ContainsRune(name, '/') || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		if data, err = os.ReadFile(name); err != nil {
			return nil, "", fault.Wrap(fault.NotFound, err, "read profile")
		}
		return data, name, nil
	}
	file = path.Join("shipped", name+".yaml")
	if data, err = shipped.ReadFile(file); err != nil {
		return nil, "", fault.New(fault.NotFound, "there is no profile %q", name).
			WithHint("built in are %s; a path to a .yaml file names one of your own", strings.Join(Shipped(), ", "))
	}
	return data, name + ".yaml", nil
}

// IsBuiltIn says whether a reference names a built-in profile: callers that come over the
// network may name no files.
func IsBuiltIn(ref string) bool {
	name, _, _ := cutScale(ref)
	return name == "" || name == "none" || slices.Contains(Shipped(), name)
}

// scale sets the strength as the part of a reference behind @ says.
func (p *Profile) scale(text string) error {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		at, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(at >= 0 && at <= 100) {
			return fmt.Errorf("progress %q: expected 0%% to 100%%", text)
		}
		if len(p.Schedule) == 0 {
			return fmt.Errorf("progress %q: the profile has no schedule", text)
		}
		s := p.strengthAt(at / 100)
		p.Strength = &s
		return nil
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0 && s <= 1) {
		return fmt.Errorf("strength %q: expected a number from 0 to 1, or a progress such as 40%%", text)
	}
	p.Strength = &s
	return nil
}

// strengthAt reads the schedule.
func (p *Profile) strengthAt(at float64) float64 {
	s := p.Schedule
	if at <= s[0].At {
		return s[0].Strength
	}
	for i := 1; i < len(s); i++ {
		if at <= s[i].At {
			part := (at - s[i-1].At) / (s[i].At - s[i-1].At)
			return s[i-1].Strength + part*(s[i].Strength-s[i-1].Strength)
		}
	}
	return s[len(s)-1].Strength
}

// StrengthOf is the strength of a rule with the profile's own.
func (p *Profile) StrengthOf(r *Rule) float64 {
	s := 1.0
	if p.Strength != nil {
		s = *p.Strength
	}
	if r.Strength != nil {
		s *= *r.Strength
	}
	return s
}

// Chance is how likely a rule strikes at a decision point.
func (p *Profile) Chance(r *Rule) float64 {
	c := DefaultProbability
	if r.Probability != nil {
		c = *r.Probability
	}
	return c * p.StrengthOf(r)
}

// MostOf is how often a rule may strike.
func (r *Rule) MostOf() int {
	if r.Limit != nil {
		return *r.Limit
	}
	return DefaultLimit
}
