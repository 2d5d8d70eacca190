package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
)

const (
	// eventGap is the least time between two events: nobody reads faster.
	eventGap = 250 * time.Millisecond
	// eventPulse is the most: leases run down without a change.
	eventPulse = 5 * time.Second
	// lookTime bounds the taking of a screen.
	lookTime = 10 * time.Second
)

// liveNow is what runs at this moment.
type liveNow struct {
	Worlds   int         `json:"worlds"`
	Free     int         `json:"free"`
	Episodes []liveState `json:"episodes"` // running first, then the last that ended
}

// liveState is one episode on the live page.
type liveState struct {
	head
	// Doing is the action that is under way, since DoingMS.
	Doing   string  `json:"doing,omitempty"`
	DoingMS float64 `json:"doing_ms,omitempty"`
	Last    *row    `json:"last,omitempty"`
	// Path is the potential after each of the last steps.
	Path []float64 `json:"path"`
	// Screen says that there is a picture, of row Screen.Index.
	Screen  *screenState `json:"screen,omitempty"`
	LeaseMS int64        `json:"lease_ms,omitempty"`
	LeftMS  int64        `json:"left_ms,omitempty"`
	// Rows is how many there are: a reader asks for more when it grows.
	Rows int `json:"rows"`
}

type screenState struct {
	Index  int  `json:"index"`
	Looked bool `json:"looked"`
}

const pathLength = 60

// endedShown is how many ended episodes the live page tells of.
const endedShown = 12

func (h *Handler) live() liveNow {
	now := liveNow{Episodes: []liveState{}}
	if h.cfg.Sessions == nil {
		return now
	}
	d := h.cfg.Sessions.Describe()
	now.Worlds, now.Free = d.Worlds, d.Free
	leases := map[string]gym.Held{}
	h.book.Sweep(func() map[string]bool {
		ids := map[string]bool{}
		for _, l := range h.cfg.Sessions.Held() {
			ids[l.EpisodeID], leases[l.EpisodeID] = true, l
		}
		return ids
	})
	now.Episodes = h.book.states(leases)
	limits := h.limits()
	for i := range now.Episodes {
		if e := &now.Episodes[i]; e.Limit == 0 {
			e.Limit = limits[e.Task]
		}
		now.Episodes[i].World, now.Episodes[i].Driver = d.World, d.Driver
	}
	return now
}

// limits are the step limits of the tasks.
func (h *Handler) limits() map[string]int {
	tasks, err := h.cfg.Sessions.Tasks("", "")
	if err != nil {
		return nil // a number that is not shown
	}
	out := map[string]int{}
	for _, t := range tasks {
		out[t.ID] = t.MaxSteps
	}
	return out
}

func (b *Book) states(leases map[string]gym.Held) []liveState {
	b.mu.Lock()
	defer b.mu.Unlock()
	live, ended := []liveState{}, []liveState{}
	for i := len(b.order) - 1; i >= 0; i-- {
		p := b.live[b.order[i]]
		switch {
		case p.head.Live:
			live = append(live, p.state(leases))
		case len(ended) < endedShown:
			ended = append(ended, p.state(leases))
		}
	}
	return append(live, ended...)
}

func (p *page) state(leases map[string]gym.Held) liveState {
	s := liveState{head: p.head, Doing: p.doing, Rows: len(p.rows), Path: []float64{}}
	if p.doing != "" {
		s.DoingMS = float64(time.Since(p.since).Milliseconds())
	}
	if n := len(p.rows); n > 0 {
		s.Last = &p.rows[n-1]
		for _, r := range p.rows[max(0, n-pathLength):] {
			s.Path = append(s.Path, r.Potential)
		}
	}
	if p.screen != nil {
		s.Screen = &screenState{Index: p.screenIndex, Looked: p.looked}
	}
	if l, ok := leases[p.head.ID]; ok {
		s.LeaseMS, s.LeftMS = l.Lease.Milliseconds(), max(0, time.Until(l.Expires).Milliseconds())
	}
	return s
}

// events sends the live page's state whenever it changes.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	pulse := time.NewTicker(eventPulse)
	defer pulse.Stop()
	for {
		changed := h.book.Changed()
		data, err := json.Marshal(h.live())
		if err != nil {
			h.cfg.Log.Error("dashboard", "events", err)
			return
		}
		if _, err := fmt.Fprintf(w, "event: live\ndata: %s\n\n", data); err != nil || out.Flush() != nil {
			return
		}
		if !h.pause(r.Context(), eventGap) {
			return
		}
		select {
		case <-changed:
		case <-pulse.C:
		case <-r.Context().Done():
			return
		case <-h.cfg.Stopping:
			return
		}
	}
}

// pause waits unless the reader leaves or the server stops.
func (h *Handler) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-h.cfg.Stopping:
	}
	return false
}

// screen serves the last picture of a live episode.
func (h *Handler) screen(w http.ResponseWriter, r *http.Request) {
	img := h.book.picture(r.PathValue("id"))
	if img == nil {
		h.refuse(w, r, fault.New(fault.NotFound, "no picture of this episode was taken").WithHint("ask for a look"))
		return
	}
	picture(w, img.Format, img.Data)
}

func picture(w http.ResponseWriter, format string, data []byte) {
	w.Header().Set("Content-Type", "image/"+format)
	_, _ = w.Write(data) // a reader that has gone needs no answer
}

// look takes a picture of a live episode and serves it. An episode that is in a step is
// not disturbed: the answer is a conflict then.
func (h *Handler) look(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Sessions == nil {
		h.refuse(w, r, fault.New(fault.NotFound, "no episodes run here"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	id := r.PathValue("id")
	o, err := h.cfg.Sessions.Look(ctx, id, gym.View{Screenshot: "jpeg", MaxText: 1})
	if err == nil && o.Screenshot == nil {
		err = fault.New(fault.NotFound, "the browser gave no picture")
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.book.lookedAt(id, o)
	picture(w, o.Screenshot.Format, o.Screenshot.Data)
}
