package rollout

import (
	"cmp"
	"sort"
	"time"

	"github.com/pommelgym/pommel/internal/wilson"
)

// Summary adds up the episodes of a run. Episodes that the infrastructure lost are
// counted apart and take no part in rates and means.
type Summary struct {
	Agent       string  `json:"agent"`
	Profile     string  `json:"profile"`
	Seed        int64   `json:"seed"`
	Episodes    int     `json:"episodes"`
	Success     int     `json:"success"`
	SuccessRate float64 `json:"success_rate"`
	// Interval holds the true success rate with 95 % confidence.
	Interval    wilson.Interval `json:"success_interval"`
	MeanReward  float64         `json:"mean_reward"`
	Steps       int             `json:"steps"`
	Seconds     float64         `json:"seconds"`
	StepsPerS   float64         `json:"steps_per_s"`
	EpisodesPS  float64         `json:"episodes_per_s"`
	Truncated   int             `json:"truncated"`
	Lost        int             `json:"infra_failures"`
	AgentErrors int             `json:"agent_errors"`
	ByTask      []TaskLine      `json:"by_task"`
	// Perturbed is in how many episodes something struck; ByKind compares success with and
	// without each kind.
	Perturbed int        `json:"perturbed_episodes"`
	ByKind    []KindLine `json:"by_kind,omitempty"`
	Failures  []Failure  `json:"failures,omitempty"`

	byTask map[string]*TaskLine
	byKind map[string]*KindLine
}

// TaskLine adds up one task.
type TaskLine struct {
	Task       string          `json:"task"`
	Difficulty string          `json:"difficulty"`
	Split      string          `json:"split"`
	Episodes   int             `json:"episodes"`
	Success    int             `json:"success"`
	Interval   wilson.Interval `json:"success_interval"`
	MeanReward float64         `json:"mean_reward"`
	MeanSteps  float64         `json:"mean_steps"`

	reward float64
	steps  int
}

// Failure names an episode that was lost or that its agent gave up.
type Failure struct {
	Task  string `json:"task"`
	Seed  int64  `json:"seed"`
	Kind  string `json:"kind"` // infrastructure, agent
	Error string `json:"error"`
}

// maxFailures bounds how many failures a summary names.
const maxFailures = 50

func newSummary(c Config) *Summary {
	s := &Summary{Agent: c.Agent, Profile: cmp.Or(c.Profile, "none"), Seed: c.Seed, byTask: map[string]*TaskLine{}, byKind: map[string]*KindLine{}}
	for _, t := range c.Tasks {
		s.byTask[t.ID] = &TaskLine{Task: t.ID, Difficulty: t.Difficulty, Split: t.Split}
	}
	return s
}

func (s *Summary) add(e Episode) {
	if e.Lost != nil {
		s.Lost++
		s.fail(e, "infrastructure", e.Lost)
		return
	}
	if e.AgentError != nil {
		s.AgentErrors++
		s.fail(e, "agent", e.AgentError)
	}
	t := s.byTask[e.Task]
	s.Episodes++
	s.strikes(e)
	t.Episodes++
	s.Steps += e.Steps
	t.steps += e.Steps
	s.MeanReward += e.Reward
	t.reward += e.Reward
	if e.Truncated {
		s.Truncated++
	}
	if e.Success {
		s.Success++
		t.Success++
	}
}

func (s *Summary) fail(e Episode, kind string, err error) {
	if len(s.Failures) < maxFailures {
		s.Failures = append(s.Failures, Failure{Task: e.Task, Seed: e.Seed, Kind: kind, Error: err.Error()})
	}
}

func (s *Summary) finish(took time.Duration) {
	s.Seconds = took.Seconds()
	s.Interval = wilson.Of(s.Success, s.Episodes)
	if s.Episodes > 0 {
		s.SuccessRate = float64(s.Success) / float64(s.Episodes)
		s.MeanReward /= float64(s.Episodes)
		s.StepsPerS = float64(s.Steps) / s.Seconds
		s.EpisodesPS = float64(s.Episodes) / s.Seconds
	}
	s.finishKinds()
	for _, t := range s.byTask {
		if t.Episodes > 0 {
			t.Interval = wilson.Of(t.Success, t.Episodes)
			t.MeanReward = t.reward / float64(t.Episodes)
			t.MeanSteps = float64(t.steps) / float64(t.Episodes)
			s.ByTask = append(s.ByTask, *t)
		}
	}
	order := map[string]int{"easy": 0, "medium": 1, "hard": 2}
	sort.Slice(s.ByTask, func(i, j int) bool {
		a, b := s.ByTask[i], s.ByTask[j]
		if order[a.Difficulty] != order[b.Difficulty] {
			return order[a.Difficulty] < order[b.Difficulty]
		}
		return a.Task < b.Task
	})
}
