package gym

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pommelgym/pommel/internal/episode"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/own"
	"github.com/pommelgym/pommel/internal/task"
	"github.com/pommelgym/pommel/internal/trace"
	"github.com/pommelgym/pommel/internal/version"
	"github.com/pommelgym/pommel/internal/world"
)

// Options say which world to open and how.
type Options struct {
	// World is a name or a folder with a world.yaml.
	World string
	// Worlds is how many episodes can run at once; 0 means 1.
	Worlds int
	// Spares are worlds kept ready beyond those, so that a Reset need not wait for the
	// world of the episode before it; negative means none. 0 means 1, or none where a driver
	// puts worlds back in milliseconds.
	Spares int
	// Driver resets worlds: "auto" (default) or the name of one.
	Driver string
	// VerifyEvery, if positive, has each Nth reset in place compared byte for byte.
	VerifyEvery int
	// Starts is how many starts of episodes a world keeps, where the driver can: an episode
	// with a task and a seed that came before begins with one rewind. 0 means 16, negative none.
	Starts int
	// CheckpointMB bounds the memory that one world's checkpoints and kept starts take; 0 is 1024.
	CheckpointMB int
	// Traces is the folder for recorded episodes: "" is DefaultTraceDir, "off" records nothing.
	Traces string
	// KeepTraces is how many recorded episodes stay; 0 keeps all.
	KeepTraces int
	// Log receives what worlds do. Nil is silence.
	Log *slog.Logger
	// Progress, if set, is told what the boot is doing.
	Progress func(stage string)
}

// Gym is an open world with its tasks and a pool of running copies.
type Gym struct {
	spec   *world.Spec
	image  *world.Image
	suite  *task.Suite
	pool   *world.Pool
	traces *trace.Store
	log    *slog.Logger
	driver string
	worlds int
	// kinds are the perturbations that the world brings.
	kinds []kind.Kind
	// seats holds one token for each episode that runs.
	seats chan struct{}
}

// Open builds the world's image if need be and boots its copies. The first episode
// can start as soon as one is up; the others come up behind it.
func Open(ctx context.Context, o Options) (*Gym, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	g := &Gym{log: o.Log, worlds: max(1, o.Worlds)}
	g.seats = make(chan struct{}, g.worlds)
	if err := g.load(o.World); err != nil {
		return nil, err
	}
	if err := g.boot(ctx, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// load reads the world's and its tasks' files.
func (g *Gym) load(name string) error {
	dir, err := world.Find(name)
	if err != nil {
		return err
	}
	if g.spec, g.suite, err = read(dir); err != nil {
		return err
	}
	g.kinds, err = kindsOf(dir)
	return err
}

func (g *Gym) boot(ctx context.Context, o Options) error {
	if (o.Driver == "" || o.Driver == "auto") && g.spec.Driver != "" {
		o.Driver = g.spec.Driver
	}
	driver, err := world.DriverByName(o.Driver)
	if err != nil {
		return err
	}
	g.driver = driver.Name()
	switch d := driver.(type) {
	case world.Rewind:
		d.VerifyEvery, d.Starts, d.CheckpointBytes = o.VerifyEvery, o.Starts, int64(o.CheckpointMB)<<20
		d.Rehearse = g.rehearse
		driver = d
	default:
		if o.Spares == 0 {
			o.Spares = 1
		}
		g.sayWhy(ctx, o)
	}
	if g.image, err = world.BuildImage(ctx, g.spec, o.Progress); err != nil {
		return fmt.Errorf("build the image of world %s: %w", g.spec.Name, err)
	}
	if o.Traces != "off" {
		dir := o.Traces
		if dir == "" {
			dir = DefaultTraceDir()
		}
		if g.traces, err = trace.Open(dir, trace.Options{Keep: o.KeepTraces}); err != nil {
			return err
		}
	}
	g.pool, err = world.NewPool(ctx, g.image, driver, world.PoolOptions{Size: g.worlds + max(0, o.Spares), Log: g.log, Progress: o.Progress})
	if err != nil {
		return err
	}
	return g.checkTasks(ctx)
}

// DriverNames are the names that Options.Driver may have beside "auto".
func DriverNames() []string {
	var names []string
	for _, d := range world.Drivers() {
		names = append(names, d.Name())
	}
	return names
}

// sayWhy tells the reason when the host is not able to use the best driver.
func (g *Gym) sayWhy(ctx context.Context, o Options) {
	best := world.Drivers()[0]
	if o.Driver != "" && o.Driver != "auto" {
		return
	}
	if err := best.Available(ctx); err != nil {
		g.log.Warn("worlds are started afresh after each episode", "driver", g.driver, "instead_of", best.Name(), "reason", err)
		o.Progress("driver " + g.driver + ": this host cannot use " + best.Name() + ", `pommel doctor` says why")
	}
}

// checkTasks tries the task files on the world's database: what is wrong with them is
// said before the first episode, not in the middle of training. What was found good is
// remembered by content.
func (g *Gym) checkTasks(ctx context.Context) error {
	sum, err := g.taskSum()
	if err != nil {
		return err
	}
	mark := filepath.Join(g.image.Dir(), "tasks-"+sum+".ok")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	problems, err := g.Problems(ctx)
	if err != nil {
		return err
	}
	if err := g.checkKinds(ctx); err != nil {
		return err
	}
	var bad []error
	for _, s := range g.suite.Tasks {
		for _, p := range problems[s.ID] {
			bad = append(bad, errors.New(p))
		}
	}
	if len(bad) > 0 {
		return fault.Wrap(fault.InvalidArgument, errors.Join(bad...), "the tasks of world %s do not fit its database", g.spec.Name)
	}
	// Only a saving of time: without the mark the check is made again.
	_ = os.WriteFile(mark, nil, 0o644)
	return nil
}

// taskSum is a hash over the files of tasks and perturbations and over the version that reads them.
func (g *Gym) taskSum() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, version.String())
	files, err := own.Files(g.spec.Dir)
	if err != nil {
		return "", err
	}
	for _, t := range g.suite.Tasks {
		files = append(files, t.File())
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read file: %w", err)
		}
		fmt.Fprintln(h, file, len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// Problems tries every task on the world's database and returns what is wrong, by task.
func (g *Gym) Problems(ctx context.Context) (map[string][]string, error) {
	w, err := g.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer g.pool.Release(w)
	found, err := g.suite.CheckAgainst(ctx, w.Reader())
	if err != nil {
		return nil, fault.Wrap(fault.WorldLost, err, "try the tasks on the database")
	}
	out := map[string][]string{}
	for _, p := range found {
		if p.Warning {
			g.log.Warn("task", "problem", p.Text)
			continue
		}
		out[p.Task] = append(out[p.Task], p.Text)
	}
	return out, nil
}

// Close ends all worlds and writes what is left of the traces.
func (g *Gym) Close() error {
	var err error
	if g.pool != nil {
		err = g.pool.Close()
	}
	if g.traces != nil {
		err = errors.Join(err, g.traces.Close())
	}
	return err
}

// Describe tells what is open.
func (g *Gym) Describe() Description {
	b := g.spec.Browser
	return Description{
		Version: version.String(), World: g.spec.Name, WorldTitle: g.spec.Title, Driver: g.driver, Image: g.image.ID(),
		Worlds: g.worlds, Free: min(g.pool.Stats().Ready, g.worlds-len(g.seats)),
		Viewport: Viewport{Width: b.Viewport.Width, Height: b.Viewport.Height, Scale: b.Scale},
	}
}

// Select lists tasks; empty filters mean all. Asking for an unknown one is an error.
func (g *Gym) Select(split, difficulty string, ids []string) ([]TaskInfo, error) {
	specs, err := g.suite.Select(split, difficulty, ids)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "choose tasks")
	}
	var out []TaskInfo
	for _, s := range specs {
		out = append(out, infoOf(s))
	}
	if len(out) == 0 {
		return nil, fault.New(fault.NotFound, "no task of world %s matches", g.spec.Name)
	}
	return out, nil
}

func infoOf(s *task.Spec) TaskInfo {
	t := TaskInfo{ID: s.ID, Title: s.Title, Difficulty: s.Difficulty, Split: s.Split, MaxSteps: s.Limits.Steps}
	if t.MaxSteps == 0 {
		t.MaxSteps = task.DefaultSteps
	}
	for _, st := range s.Reward.Stages {
		t.Stages = append(t.Stages, st.Name)
	}
	return t
}

// begin acquires a world and starts an episode in it. wait < 0 does not wait for a world.
func (g *Gym) begin(ctx context.Context, r Request, wait time.Duration) (*episode.Episode, *Result, error) {
	spec := g.suite.Find(r.Task)
	if spec == nil {
		return nil, nil, fault.New(fault.NotFound, "world %s has no task %q", g.spec.Name, r.Task).
			WithHint("`pommel world list --tasks` names them")
	}
	if r.Seed < 0 || r.MaxSteps < 0 {
		return nil, nil, fault.New(fault.InvalidArgument, "seed %d, max_steps %d: both take 0 or more", r.Seed, r.MaxSteps)
	}
	p, err := g.profile(r.Profile)
	if err != nil {
		return nil, nil, err
	}
	// The start of an episode with perturbations is not kept: they begin with its first page.
	key := ""
	if p == nil {
		if key, err = startKey(r); err != nil {
			return nil, nil, err
		}
	}
	w, release, err := g.acquire(ctx, key, wait)
	if err != nil {
		return nil, nil, err
	}
	return episode.Begin(ctx, episode.Deps{
		World: episodeWorld{w, g}, Spec: spec, Profile: p, Traces: g.traces, StartKey: key,
		Header:  trace.Header{Pommel: version.String(), World: g.spec.Name, Image: g.image.ID(), Driver: g.driver},
		Release: release,
	}, r)
}

// startKey names everything in a request that the start of its episode depends on.
func startKey(r Request) (string, error) {
	r.Client, r.MaxSteps = "", 0
	key, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("name the start of the episode: %w", err)
	}
	return string(key), nil
}

// acquire takes a seat and a world. wait < 0 takes a seat only if one is free.
func (g *Gym) acquire(ctx context.Context, key string, wait time.Duration) (*world.World, func(), error) {
	if wait < 0 {
		select {
		case g.seats <- struct{}{}:
		default:
			return nil, nil, g.full()
		}
		wait = 0
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait+spareTime, g.full())
	defer cancel()
	if wait > 0 {
		select {
		case g.seats <- struct{}{}:
		case <-time.After(wait):
			return nil, nil, g.full()
		case <-ctx.Done():
			return nil, nil, fault.Wrap(fault.Canceled, context.Cause(ctx), "wait for a free world")
		}
	}
	w, err := g.pool.AcquireAt(ctx, key)
	if err != nil {
		<-g.seats
		return nil, nil, err
	}
	return w, func() { g.pool.Release(w); <-g.seats }, nil
}

// spareTime is how long a caller that has a seat waits for a world that is being put back.
const spareTime = time.Minute

func (g *Gym) full() error {
	return fault.New(fault.ResourceExhausted, "all %d worlds of %s are taken", g.worlds, g.spec.Name).
		WithHint("try again, wait longer, or start more worlds")
}

// episodeWorld is a world as an episode sees it.
type episodeWorld struct {
	*world.World
	g *Gym
}

func (w episodeWorld) StartURL() string { return w.g.spec.Browser.StartURL }
func (w episodeWorld) Epoch() time.Time { return w.g.spec.Clock }

// DefaultTraceDir is where episodes are recorded unless another folder is named:
// $POMMEL_TRACES, or pommel/traces below the user's state folder.
func DefaultTraceDir() string {
	if d := os.Getenv("POMMEL_TRACES"); d != "" {
		return d
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir()
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "pommel", "traces")
}
