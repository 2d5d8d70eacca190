package dashboard

import (
	"slices"
	"sync"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/wire"
	"github.com/pommelgym/pommel/internal/trace"
)

const (
	// maxEnded is how many episodes that are over a Book keeps.
	maxEnded = 100
	// maxDetails bounds the texts and verdicts that a Book keeps, in bytes; the oldest go
	// first. Recorded episodes have them on disk.
	maxDetails = 64 << 20
	// maxRows is how many rows of one episode a Book keeps.
	maxRows = 2000
)

// Book holds what the server's callers were told lately. Writing into it takes
// microseconds, whether somebody reads or not.
type Book struct {
	mu      sync.Mutex
	live    map[string]*page // guarded by mu: all that are kept, also ended ones
	order   []string         // guarded by mu: by age
	kept    []keptDetail     // guarded by mu: oldest first
	bytes   int              // guarded by mu: in kept
	changed chan struct{}    // guarded by mu: closed and replaced by each change
	slow    slowest          // guarded by mu
}

// page is one episode.
type page struct {
	head    head
	rows    []row
	marks   []mark
	totals  map[string]float64 // by checkpoint
	details map[int]detail
	last    *gym.Result
	// screen is the last picture and which row it belongs to.
	screen      *gym.Image
	screenIndex int
	looked      bool // screen was taken for an onlooker
	// doing is the action that is under way.
	doing string
	since time.Time
}

type keptDetail struct {
	id    string
	index int
	size  int
}

func newBook() *Book { return &Book{live: map[string]*page{}, changed: make(chan struct{})} }

// Changed is closed at the next change.
func (b *Book) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// touch tells readers. Preconditions: b.mu is held.
func (b *Book) touch() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Began writes down that an episode began. A repeated answer changes nothing.
func (b *Book) Began(r gym.Request, res *gym.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live[res.EpisodeID] != nil {
		return
	}
	p := &page{
		head: head{
			ID: res.EpisodeID, Task: r.Task, Seed: r.Seed, Split: res.Info.Split, Instruction: res.Instruction, Client: r.Client,
			Profile: r.Profile, Started: trace.Now(), Live: true, Limit: r.MaxSteps,
		},
		totals: map[string]float64{}, details: map[int]detail{}, screenIndex: -1,
	}
	b.live[res.EpisodeID] = p
	b.order = append(b.order, res.EpisodeID)
	b.add(p, res)
	b.touch()
}

// Doing writes down that a step has begun.
func (b *Book) Doing(id, action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.live[id]; p != nil && p.head.Live {
		p.doing, p.since = action, time.Now()
		b.touch()
	}
}

// Did writes down what came of it. A repeated answer changes nothing.
func (b *Book) Did(id string, res *gym.Result, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.live[id]
	if p == nil {
		return
	}
	p.doing = ""
	switch {
	case err == nil && res != p.last:
		b.add(p, res)
	case err != nil && wire.ErrorOf(err).Void():
		e := wire.ErrorOf(err)
		b.end(p, string(e.Kind), e.Message)
	}
	b.touch()
}

// Saved writes down a checkpoint, Restored that the episode was put back to one.
func (b *Book) Saved(id, checkpoint string) {
	b.mark(id, checkpoint, nil)
}

// Restored writes down that the episode was put back to a checkpoint.
func (b *Book) Restored(id, checkpoint string, res *gym.Result) {
	b.mark(id, checkpoint, res)
}

func (b *Book) mark(id, checkpoint string, res *gym.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.live[id]
	if p == nil || res != nil && res == p.last {
		return
	}
	m := mark{Kind: trace.KindCheckpoint, Checkpoint: checkpoint, Step: p.head.Steps, Before: len(p.rows)}
	if res == nil {
		if n := len(p.marks); n > 0 && p.marks[n-1] == m {
			return // the call was repeated
		}
		p.totals[checkpoint] = p.head.Reward
	} else {
		m.Kind, m.Step = trace.KindRestore, res.Step
		p.head.Steps, p.head.Reward, p.head.Success, p.head.End, p.last = res.Step, p.totals[checkpoint], false, "", res
	}
	p.marks = append(p.marks, m)
	b.touch()
}

// Closed writes down that a caller gave the episode's world back.
func (b *Book) Closed(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.live[id]; p != nil && p.head.Live {
		b.end(p, "closed", "")
		b.touch()
	}
}

// Sweep ends what is not held any more: leases that ran out tell nobody. held is asked
// after the book was read, so that an episode which begins meanwhile is not missed.
func (b *Book) Sweep(held func() map[string]bool) {
	live := b.liveIDs()
	if len(live) == 0 {
		return
	}
	still := held()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range live {
		if p := b.live[id]; p != nil && p.head.Live && !still[id] {
			b.end(p, "lease_expired", "")
		}
	}
}

func (b *Book) liveIDs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for id, p := range b.live {
		if p.head.Live {
			ids = append(ids, id)
		}
	}
	return ids
}

// end keeps the page as one of an episode that is over. Preconditions: b.mu is held.
func (b *Book) end(p *page, reason, detail string) {
	p.head.Live, p.doing = false, ""
	if p.head.End == "" {
		p.head.End, p.head.Detail, p.head.Ended = reason, detail, trace.Now()
	}
	ended := 0
	for _, id := range b.order {
		if !b.live[id].head.Live {
			ended++
		}
	}
	for i := 0; ended > maxEnded && i < len(b.order); {
		if id := b.order[i]; !b.live[id].head.Live {
			delete(b.live, id)
			b.order = slices.Delete(b.order, i, i+1)
			ended--
			continue
		}
		i++
	}
}

// add appends a result. Preconditions: b.mu is held.
func (b *Book) add(p *page, res *gym.Result) {
	line := rowOf(len(p.rows), res, p.head.Reward)
	line.At = trace.Now()
	if p.last != nil && p.last.Observation != nil {
		line.Target = target(line.Action, p.last.Observation.Text)
	}
	p.last = res
	p.head.Steps, p.head.Reward, p.head.Success = res.Step, line.Total, res.Info.Success
	if res.Done() {
		p.head.End, p.head.Ended = endOf(res), line.At
	}
	if o := res.Observation; o != nil && o.Screenshot != nil {
		p.screen, p.screenIndex, p.looked = o.Screenshot, line.Index, false
	}
	if len(p.rows) < maxRows {
		p.rows = append(p.rows, line)
		b.keep(p, detailOf(line.Index, res))
	}
	if res.Step > 0 {
		b.slow.add(p.head.ID, line)
	}
}

func endOf(r *gym.Result) string {
	if r.Terminated {
		return "terminated"
	}
	return "truncated"
}

// keep keeps a detail and lets go of the oldest. Preconditions: b.mu is held.
func (b *Book) keep(p *page, d detail) {
	d.Elements = nil // many times as long as the text, which names them all
	k := keptDetail{id: p.head.ID, index: d.Index, size: len(d.Text) + len(d.Verdict) + 1<<10}
	p.details[d.Index] = d
	b.kept, b.bytes = append(b.kept, k), b.bytes+k.size
	for b.bytes > maxDetails {
		old := b.kept[0]
		b.kept, b.bytes = b.kept[1:], b.bytes-old.size
		if p := b.live[old.id]; p != nil {
			delete(p.details, old.index)
		}
	}
}

// film is an episode that the book holds.
func (b *Book) film(id string) (*film, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.live[id]
	if p == nil {
		return nil, false
	}
	return &film{Head: p.head, Rows: slices.Clone(p.rows), Marks: append([]mark{}, p.marks...)}, true
}

// detail is a step that the book holds. ok says that the episode is one of its own.
func (b *Book) detail(id string, index int) (d detail, kept, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.live[id]
	if p == nil {
		return d, false, false
	}
	d, kept = p.details[index]
	return d, kept, index >= 0 && index < len(p.rows)
}

// picture is the last picture of an episode.
func (b *Book) picture(id string) *gym.Image {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.live[id]; p != nil {
		return p.screen
	}
	return nil
}

// lookedAt keeps a picture that was taken for an onlooker, unless the episode went on.
func (b *Book) lookedAt(id string, o *gym.Observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.live[id]; p != nil && o.Screenshot != nil {
		p.screen, p.screenIndex, p.looked = o.Screenshot, len(p.rows)-1, true
		b.touch()
	}
}
