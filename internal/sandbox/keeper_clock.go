package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/worldclock"
)

// clockPath is where processes inside find their clock.
const clockPath = "/dev/worldclock"

// clock is the keeper's side of a clock. All its methods work on nil, where there is none.
type clock struct {
	sup    *worldclock.Supervisor
	source *worldclock.Source

	page *worldclock.Page
	// atRest, if set, is called whenever the processes are about to go on: what they ask for
	// is answered after it. Whoever snapshots or rewinds sets it; rewinding.mu guards it.
	atRest func()

	mu    sync.Mutex
	lent  []string           // guarded by mu: services with real random bytes until the first reseed
	last  error              // guarded by mu: why a program could not be put under the clock
	saved map[int]clockState // guarded by mu: by number of a saved state
}

// clockState is what a clock was at when the processes were saved.
type clockState struct {
	at     time.Time
	source *worldclock.SourceState
}

// startClock makes the clock and puts a program under it, to see that this host can. The
// answer is the file of the page, for the owner, who sets it.
func (k *keeper) startClock(c Clock) (_ *os.File, err error) {
	if err := worldclock.Probe(); err != nil {
		return nil, err
	}
	file, err := worldclock.CreatePage(clockPath, c.Start)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			k.clock = nil
			_ = file.Close()
			_ = os.Remove(clockPath)
		}
	}()
	page, err := worldclock.OpenPage(file, true)
	if err != nil {
		return nil, err
	}
	cl := &clock{source: worldclock.NewSource(c.Label), page: page, saved: map[int]clockState{}}
	cl.sup = worldclock.New(worldclock.Options{
		Page: page, Path: clockPath, Source: cl.source, Report: cl.failed,
		Ended: func(pid, status int) { k.ended(pid, syscall.WaitStatus(status)) },
	})
	k.clock = cl
	return file, k.tryClock(page.Now())
}

// tryClock asks a program under the clock what time it is.
func (k *keeper) tryClock(want time.Time) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("try the clock: %w", err)
	}
	defer r.Close()
	c := &child{key: -1 << 30, exited: make(chan syscall.WaitStatus, 1)}
	p := Process{Name: "date", Argv: []string{"date", "-u", "+%s"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", UID: nobody}
	_, err = k.spawn(p, []*os.File{w}, c)
	_ = w.Close()
	if err != nil {
		return err
	}
	// It ends: a program that cannot be put under the clock is killed.
	<-c.exited
	var b [64]byte
	n, _ := r.Read(b[:])
	if got := string(b[:n]); got != fmt.Sprintf("%d\n", want.Unix()) {
		k.clock.mu.Lock()
		defer k.clock.mu.Unlock()
		if k.clock.last != nil {
			return k.clock.last
		}
		return fmt.Errorf("a program under the clock reads %q at %d", got, want.Unix())
	}
	return nil
}

// nobody is the user without rights.
const nobody = 65534

// failed notes why a program was killed. Who waits for the program sees its end, and this
// in the keeper's output.
func (c *clock) failed(err error) {
	c.mu.Lock()
	c.last = err
	c.mu.Unlock()
	fmt.Fprintln(os.Stderr, "keeper:", err)
}

// serve is what is to be done with the listener of a process that starts.
func (c *clock) serve(p Process) func(int) {
	if c == nil || p.RealClock {
		return nil
	}
	if p.RealRandom {
		c.source.SetReal(p.Name, true)
		c.mu.Lock()
		c.lent = append(c.lent, p.Name)
		c.mu.Unlock()
	}
	return func(listener int) { c.sup.Serve(listener, p.Name) }
}

// again is called when the first process of a service was given up for another.
func (c *clock) again(p Process) {
	if c != nil && !p.RealClock {
		c.source.Again(p.Name)
	}
}

func (c *clock) started(p Process, pid int) {
	if c != nil && !p.RealClock {
		c.source.SetRoot(p.Name, pid)
	}
}

// gate is held while processes are stopped or waited for.
func (c *clock) gate() sync.Locker {
	if c == nil {
		return noGate{}
	}
	return c.sup.Gate()
}

type noGate struct{}

func (noGate) Lock()   {}
func (noGate) Unlock() {}

// stopLock is held while the processes are stopped.
type stopLock struct {
	reaping *sync.Mutex
	clock   *clock
}

func (l stopLock) Lock() {
	l.reaping.Lock()
	l.clock.gate().Lock()
}

func (l stopLock) Unlock() {
	if l.clock != nil && l.clock.atRest != nil {
		l.clock.atRest()
	}
	l.clock.gate().Unlock()
	l.reaping.Unlock()
}

// saving is called before the processes are saved, and saved when they were. The state is
// noted with them at rest: each time before they go on, as more than one try may be needed.
// The first state makes those before it void.
func (c *clock) saving() (saved func(number int)) {
	if c == nil {
		return func(int) {}
	}
	var st clockState
	c.atRest = func() { st = clockState{at: c.page.Now(), source: c.source.Save()} }
	return func(number int) {
		c.sup.Pin()
		c.mu.Lock()
		defer c.mu.Unlock()
		if number == 0 {
			clear(c.saved)
		}
		c.saved[number], c.atRest = st, nil
	}
}

// restoring is called before the processes are put back to a state, and the function that
// it returns after. What they see of the instant before they are stopped is undone with
// everything else, and when they go on it is right. The randomness is put back with them at rest.
func (c *clock) restoring(number int) (done func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	st, ok := c.saved[number]
	c.mu.Unlock()
	if ok {
		_ = c.page.Set(st.at) // it came from there
		c.atRest = func() { c.source.Restore(st.source) }
	}
	return func() { c.atRest = nil }
}

// forget is called when a saved state was given up.
func (c *clock) forget(number int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.saved, number)
}

// reseedRequest asks for other random bytes from now on.
type reseedRequest struct {
	Label string `json:"label"`
	Seed  uint64 `json:"seed"`
}

func (k *keeper) reseed(r reseedRequest) error {
	c := k.clock
	if c == nil {
		return errors.New("there is no clock")
	}
	c.mu.Lock()
	for _, service := range c.lent {
		c.source.SetReal(service, false)
	}
	c.lent = nil
	c.mu.Unlock()
	c.source.Reseed(r.Label, r.Seed)
	return nil
}
