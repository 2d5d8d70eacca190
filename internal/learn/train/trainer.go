package train

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pommelgym/pommel/internal/learn/batch"
	"github.com/pommelgym/pommel/internal/learn/curriculum"
	"github.com/pommelgym/pommel/internal/learn/feature"
	"github.com/pommelgym/pommel/internal/learn/net"
	"github.com/pommelgym/pommel/internal/learn/optimiser"
	"github.com/pommelgym/pommel/internal/learn/ppo"
)

// Trainer is a training in progress.
type Trainer struct {
	c     Config
	envs  []batch.Env
	watch Watch

	net   *net.Net
	adam  *optimiser.Adam
	learn *ppo.Learner
	plan  *curriculum.Curriculum
	good  *good

	steps, updates, episodes, lost int
	visits                         map[string]int // first visits of kinds of pages, by task
	curve                          []Point
	spent                          time.Duration // training alone
	started                        time.Time     // of the part that runs now
	before, after                  *Evaluation
}

// Watch is told how training goes; nil functions are not called.
type Watch struct {
	// Stage begins a stage: evaluate, demonstrate, train.
	Stage func(name string)
	// Episode is called after each episode, Update after each update.
	Episode func(batch.Episode)
	Update  func(Point)
}

// Point is one point of the curve: the batch behind one update.
type Point struct {
	Update  int     `json:"update"`
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"`
	// Success and Reward are means over the batch; Smooth is the mean of the tasks' success of late.
	Success float64 `json:"success"`
	Reward  float64 `json:"reward"`
	Smooth  float64 `json:"smooth"`
	Length  float64 `json:"length"`
	// Entropy is how undecided the policy was, from 0 to 1: that of its choices over its largest value.
	Entropy float64 `json:"entropy"`
	Norm    float64 `json:"norm"`
	Lost    int     `json:"lost"`
	// Profile is what the batch was played under; "" is no friction.
	Profile string `json:"profile,omitempty"`
	// Rates are the tasks' success of late, in the order of the configuration.
	Rates []float64 `json:"rates"`
}

// New begins a training on the given environments.
func New(c Config, envs []batch.Env, w Watch) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &Trainer{c: c, envs: envs, watch: w, net: net.New(mix(c.Seed, forNet, 0)), adam: optimiser.NewAdam(), visits: map[string]int{}}
	if c.Prior {
		t.net.Lean(feature.Prior())
	}
	t.learn = ppo.NewLearner(t.net)
	t.plan = curriculum.New(c.Tasks, c.Tuning.Seeds, c.Tuning.Stretch, c.Seed)
	var ids []string
	for _, task := range c.Tasks {
		ids = append(ids, task.ID)
	}
	t.good = newGood(ids)
	return t, nil
}

// Run trains until the budget is used up, with an evaluation before and after. An interrupted
// training returns its context's error; what was learnt so far can still be saved.
func (t *Trainer) Run(ctx context.Context) error {
	if t.updates == 0 && t.before == nil {
		var err error
		if t.before, err = t.evaluate(ctx, "evaluate before"); err != nil {
			return err
		}
	}
	t.started = time.Now()
	err := t.train(ctx)
	t.spent = t.elapsed()
	t.started = time.Time{}
	if err != nil {
		return err
	}
	t.after, err = t.evaluate(ctx, "evaluate after")
	return err
}

func (t *Trainer) train(ctx context.Context) error {
	if t.updates == 0 && t.c.Demos > 0 {
		if err := t.demonstrate(ctx); err != nil {
			return err
		}
	}
	t.stage("train")
	for !t.done() {
		if err := t.Update(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trainer) stage(name string) {
	if t.watch.Stage != nil {
		t.watch.Stage(name)
	}
}

// elapsed is the time that training took so far.
func (t *Trainer) elapsed() time.Duration {
	if t.started.IsZero() {
		return t.spent
	}
	return t.spent + time.Since(t.started)
}

// progress is the part of the budget that is used up.
func (t *Trainer) progress() float64 {
	if t.c.Steps > 0 {
		return min(1, float64(t.steps)/float64(t.c.Steps))
	}
	return min(1, t.elapsed().Seconds()/t.c.Time.Seconds())
}

func (t *Trainer) done() bool { return t.progress() >= 1 }

// Update plays one batch and learns from it.
func (t *Trainer) Update(ctx context.Context) error {
	if err := t.show(ctx, jobsOf(t.plan.NeedHelp(t.c.HintAfter))); err != nil {
		return err
	}
	progress := t.progress()
	lessons := t.plan.Next(t.c.Tuning.Episodes, t.c.Tuning.Group, progress, t.c.Friction)
	jobs := jobsOf(lessons)
	for i := range jobs {
		jobs[i].Noise = mix(t.c.Seed, forEpisode, uint64(t.episodes+i))
	}
	episodes, err := batch.Collect(ctx, t.envs, t.net, jobs, t.watch.Episode)
	if err != nil {
		return err
	}
	p := t.account(episodes)
	p.Profile = lessons[0].Profile
	steps := t.prepare(episodes)
	rng := rand.New(rand.NewPCG(mix(t.c.Seed, forShuffle, uint64(t.updates)), 0))
	p.Norm, p.Entropy = t.improve(steps, rng)
	t.relive(rng, t.c.Tuning.Relive)
	t.updates++
	p.Update = t.updates
	p.Seconds = t.elapsed().Seconds()
	t.curve = append(t.curve, p)
	if t.watch.Update != nil {
		t.watch.Update(p)
	}
	return nil
}

// account notes what became of a batch. Episodes that the infrastructure lost are counted
// and otherwise left out.
func (t *Trainer) account(episodes []batch.Episode) Point {
	var p Point
	n := 0.0
	for i := range episodes {
		e := &episodes[i]
		t.episodes++
		if e.Lost != nil {
			t.lost++
			p.Lost++
			continue
		}
		n++
		t.steps += len(e.Steps)
		t.plan.Tell(e.Job.Task, e.Success)
		t.good.add(e, t.c.Tuning.Keep, t.c.Tuning.PPO.Gamma)
		p.Reward += e.Reward
		p.Length += float64(len(e.Steps))
		if e.Success {
			p.Success++
		}
	}
	p.Steps = t.steps
	if n > 0 {
		p.Success, p.Reward, p.Length = p.Success/n, p.Reward/n, p.Length/n
	}
	for i := range t.c.Tasks {
		r := t.plan.Recent(i)
		p.Rates = append(p.Rates, r)
		p.Smooth += r / float64(len(t.c.Tasks))
	}
	return p
}

// prepare turns episodes into steps with advantages.
func (t *Trainer) prepare(episodes []batch.Episode) []ppo.Step {
	var all []ppo.Step
	for i := range episodes {
		e := &episodes[i]
		if e.Lost != nil {
			continue
		}
		steps := append([]ppo.Step(nil), e.Steps...)
		t.pay(e, steps)
		ppo.Estimate(steps, e.Last, t.c.Tuning.PPO)
		all = append(all, steps...)
	}
	return all
}

// pay adds to the rewards what training pays beside the judge: a cost for each step, and
// for each kind of page that an episode reaches a bonus that shrinks with the root of how
// often it was reached, as in Strehl & Littman, "An analysis of model-based Interval Estimation
// for Markov Decision Processes", 2008, and Bellemare et al., "Unifying Count-Based Exploration
// and Intrinsic Motivation", 2016, arXiv:1606.01868.
func (t *Trainer) pay(e *batch.Episode, steps []ppo.Step) {
	seen := map[string]bool{}
	for i := range steps {
		steps[i].Reward -= t.c.Tuning.StepCost
		if e.Spots[i] == "" || seen[e.Spots[i]] {
			continue
		}
		seen[e.Spots[i]] = true
		spot := e.Job.Task + " " + e.Spots[i]
		t.visits[spot]++
		steps[i].Reward += t.c.Tuning.Curiosity / math.Sqrt(float64(t.visits[spot]))
	}
}

// improve makes a few epochs of clipped policy updates over the steps of a batch. It returns
// means of the gradient's norm and of the policy's entropy.
func (t *Trainer) improve(steps []ppo.Step, rng *rand.Rand) (norm, entropy float64) {
	if len(steps) == 0 {
		return 0, 0
	}
	targets := make([]float64, len(steps))
	for i := range steps {
		targets[i] = steps[i].Advantage + steps[i].Value
	}
	ppo.Normalise(steps)
	n := 0
	for range t.c.Tuning.Epochs {
		order := rng.Perm(len(steps))
		for from := 0; from < len(order); from += t.c.Tuning.Mini {
			part := order[from:min(from+t.c.Tuning.Mini, len(order))]
			t.learn.Grad.Reset()
			for _, i := range part {
				entropy += t.learn.Improve(&steps[i], targets[i], t.c.Tuning.PPO, 1/float64(len(part)))
			}
			norm += t.apply()
			n++
		}
	}
	return norm / float64(n), entropy / float64(t.c.Tuning.Epochs*len(steps))
}

func (t *Trainer) apply() float64 {
	return t.adam.Step(t.net, t.learn.Grad, t.c.Tuning.Rates, t.c.Tuning.Norm)
}

// relive imitates the best episodes so far.
func (t *Trainer) relive(rng *rand.Rand, updates int) {
	u := t.c.Tuning
	for range updates {
		t.learn.Grad.Reset()
		for range u.Mini {
			st := t.good.draw(rng)
			if st == nil {
				return
			}
			t.learn.Relive(st, u.Share, u.PPO.ValueWeight, 1/float64(u.Mini))
		}
		t.apply()
	}
}

func jobsOf(lessons []curriculum.Lesson) []batch.Job {
	jobs := make([]batch.Job, len(lessons))
	for i, l := range lessons {
		jobs[i] = batch.Job{Task: l.Task, Seed: l.Seed, Limit: l.Limit, Profile: l.Profile}
	}
	return jobs
}

// show has oracles play, and keeps their episodes among the good ones.
func (t *Trainer) show(ctx context.Context, jobs []batch.Job) error {
	episodes, err := batch.Each(ctx, t.envs, len(jobs), func(ctx context.Context, env batch.Env, i int) batch.Episode {
		return batch.Demonstrate(ctx, env, t.net, jobs[i])
	}, t.watch.Episode)
	if err != nil {
		return err
	}
	for i := range episodes {
		e := &episodes[i]
		t.steps += len(e.Steps)
		if e.Lost != nil {
			t.lost++
			continue
		}
		t.good.add(e, t.c.Tuning.Keep, t.c.Tuning.PPO.Gamma)
	}
	return nil
}

// demonstrate has the oracles play, and imitates them: behavioural cloning, as in Pomerleau,
// "Efficient Training of Artificial Neural Networks for Autonomous Navigation", 1991.
func (t *Trainer) demonstrate(ctx context.Context) error {
	t.stage("demonstrate")
	jobs := make([]batch.Job, 0, t.c.Demos*len(t.c.Tasks))
	for d := range t.c.Demos {
		for _, task := range t.c.Tasks {
			jobs = append(jobs, batch.Job{Task: task.ID, Seed: t.plan.Seed(d), Limit: t.c.Tuning.Stretch})
		}
	}
	if err := t.show(ctx, jobs); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(mix(t.c.Seed, forShuffle, math.MaxUint64), 0))
	t.relive(rng, t.c.Tuning.DemoUpdates)
	return nil
}
