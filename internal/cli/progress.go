package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how far long work has come: a bar on a terminal, else a line now and then.
type progress struct {
	bar   *mpb.Bar
	pool  *mpb.Progress
	out   io.Writer
	label string
	total int

	mu     sync.Mutex
	done   int       // guarded by mu
	note   string    // guarded by mu
	spoken time.Time // guarded by mu
}

// speakEvery is how often progress is told where no bar can be drawn.
const speakEvery = 10 * time.Second

func (s *State) progress(label string, total int) *progress {
	p := &progress{out: s.Stderr, label: label, total: total, spoken: time.Now()}
	if !s.Terminal {
		return p
	}
	p.pool = mpb.New(mpb.WithOutput(s.Stderr), mpb.WithWidth(32))
	p.bar = p.pool.AddBar(int64(total), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(label+" "), decor.CountersNoUnit("%d/%d ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.text() }), decor.Name("  "), decor.Elapsed(decor.ET_STYLE_GO)))
	return p
}

func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.note
}

// step tells that one more is done, with a word on how it goes.
func (p *progress) step(note string) {
	p.mu.Lock()
	p.done++
	p.note = note
	speak := p.bar == nil && (time.Since(p.spoken) > speakEvery || p.done == p.total)
	if speak {
		p.spoken = time.Now()
	}
	done := p.done
	p.mu.Unlock()
	if p.bar != nil {
		p.bar.Increment()
	} else if speak {
		fmt.Fprintf(p.out, "%s %d/%d %s\n", p.label, done, p.total, note)
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.pool.Wait()
	}
}

// say prints a line of what is being done.
func (s *State) say(format string, args ...any) { fmt.Fprintf(s.Stderr, format+"\n", args...) }
