package determinism

import (
	"sync"

	"github.com/pommelgym/pommel/internal/replay"
)

// key names a group.
type key struct {
	task  string
	seed  int64
	agent string
}

// take is one episode of a group.
type take struct {
	driver  string
	chain   string // the last observation_hash
	records string // over everything that the trainer is told
	shots   string // over the screenshots
	scenes  []replay.Scene
}

// group adds up the takes of one key.
type group struct {
	first   *take
	chains  map[string]int
	records map[string]int
	shots   map[string]int
}

// Example is one difference, for people.
type Example struct {
	Task        string              `json:"task"`
	Seed        int64               `json:"seed"`
	Agent       string              `json:"agent"`
	Driver      string              `json:"driver"`
	Step        int                 `json:"step"`
	Action      string              `json:"action"`
	Differences []replay.Difference `json:"differences"`
}

// Summary is what a Tally has counted.
type Summary struct {
	Episodes int `json:"episodes"`
	Groups   int `json:"groups"`
	Steps    int `json:"steps"`
	// Mismatches are episodes whose chain is not that of the first of their group.
	Mismatches  int `json:"mismatches"`
	MaxChains   int `json:"max_distinct_chains"`
	MaxPictures int `json:"max_distinct_screenshots"`
	// MaxRecords counts everything that the trainer is told: also boxes of elements and
	// the judge's evidence, which are no part of the chain.
	MaxRecords int `json:"max_distinct_records"`
	Pictures   int `json:"screenshots"`
	Failures   int `json:"failures"`
	// SameStart counts groups of one task whose seeds differ and whose chains do not.
	SameStart int       `json:"equal_seeds"`
	Examples  []Example `json:"examples,omitempty"`
	Errors    []string  `json:"errors,omitempty"`
}

const (
	maxExamples = 10
	maxErrors   = 10
)

// Tally adds up takes, also of several runs on different worlds. It may be used by many goroutines.
type Tally struct {
	mu     sync.Mutex
	groups map[key]*group
	sum    Summary
}

// NewTally makes an empty one.
func NewTally() *Tally { return &Tally{groups: map[key]*group{}} }

func (t *Tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Failures++
	if len(t.sum.Errors) < maxErrors {
		t.sum.Errors = append(t.sum.Errors, err.Error())
	}
}

func (t *Tally) add(k key, e *take) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Episodes++
	t.sum.Steps += len(e.scenes)
	for _, s := range e.scenes {
		if s.Picture != "" {
			t.sum.Pictures++
		}
	}
	g := t.groups[k]
	if g == nil {
		g = &group{first: e, chains: map[string]int{}, records: map[string]int{}, shots: map[string]int{}}
		t.groups[k] = g
	}
	g.chains[e.chain]++
	g.records[e.records]++
	g.shots[e.shots]++
	if e.chain != g.first.chain {
		t.sum.Mismatches++
	}
	if e.records != g.first.records || e.shots != g.first.shots {
		t.example(k, g.first, e)
	}
}

func (t *Tally) example(k key, was, is *take) {
	if len(t.sum.Examples) >= maxExamples {
		return
	}
	for i := range min(len(was.scenes), len(is.scenes)) {
		if found := replay.Diff(was.scenes[i], is.scenes[i]); len(found) > 0 {
			t.sum.Examples = append(t.sum.Examples, Example{
				Task: k.task, Seed: k.seed, Agent: k.agent, Driver: is.driver,
				Step: is.scenes[i].Step, Action: is.scenes[i].Action, Differences: found,
			})
			return
		}
	}
}

// Summary counts.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sum
	s.Groups = len(t.groups)
	type episode struct{ task, agent, chain string }
	seen := map[episode]bool{}
	for k, g := range t.groups {
		s.MaxChains = max(s.MaxChains, len(g.chains))
		s.MaxRecords = max(s.MaxRecords, len(g.records))
		s.MaxPictures = max(s.MaxPictures, len(g.shots))
		e := episode{k.task, k.agent, g.first.chain}
		if seen[e] {
			s.SameStart++
		}
		seen[e] = true
	}
	return s
}
