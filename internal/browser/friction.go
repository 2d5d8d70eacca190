package browser

import (
	"context"
	"errors"
	"time"
)

// Friction decides what becomes of requests and of documents. Its methods are called from
// one goroutine at a time, must not block and must not call the Browser.
type Friction interface {
	// Patterns are the requests that it wants to hear of. All others are untouched.
	Patterns() []Pattern
	// Request decides about one of them, in the order in which they are made.
	Request(r Request) Fate
	// Shown is told of each document that a tab shows, and says what to do to it.
	Shown(p Shown) []Change
}

// Pattern chooses requests by address (* is any text, ? any character) and by type as
// DevTools names it; "" is any type.
type Pattern struct{ URL, Type string }

// Request is a request that a page makes.
type Request struct {
	Method, URL string
	// Type is document, fetch, script, stylesheet, image, font, media or other.
	Type string
	// Accept is the header of that name.
	Accept string
	// At is the virtual time since the episode began.
	At time.Duration
}

// Fate is what becomes of a request. The zero Fate lets it go.
type Fate struct {
	// Hold is how long, in virtual time, it is held before anything else.
	Hold time.Duration
	// Fail makes it fail with a reason of DevTools: ConnectionReset, ConnectionRefused, TimedOut. In the
	// place of a document stands a page that says so.
	Fail string
	// Answer is given instead of asking the server.
	Answer *Answer
	// Rewrite gets the server's answer and gives another one, or how it fails. Returning
	// nil and "" leaves it.
	Rewrite func(Answer) (*Answer, string)
}

// Answer is a response.
type Answer struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// Shown is a document that has come to rest in a tab.
type Shown struct {
	URL string
	At  time.Duration
}

// Change is something to do to a document or its window.
type Change struct {
	// Script runs in the page's own world. Done, if set, is given its value, a string.
	Script string
	Done   func(value string)
	// Width and Height, if not 0, are the window's new size.
	Width, Height int
	// Scheme, if not "", is what prefers-color-scheme says.
	Scheme string
}

// SetFriction puts a Friction in charge, or with nil takes the one away that is. The
// document that is shown counts as the first.
func (b *Browser) SetFriction(ctx context.Context, f Friction) error {
	ctx, unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := b.tab(ctx)
	if err != nil {
		return lost(err, "set friction")
	}
	b.update(func() { b.friction = f })
	if f == nil {
		for _, q := range b.pages() {
			q.s.Send("Fetch.disable", nil)
		}
		return nil
	}
	go b.decide(f)
	if len(f.Patterns()) > 0 {
		for _, q := range b.pages() {
			if _, err := q.await(ctx, q.intercept(f)); err != nil && !errors.Is(err, errDialog) {
				return lost(err, "set friction")
			}
		}
	}
	p.seen = -1
	var out Settle
	return lost(b.meet(ctx, p, &out), "set friction")
}

func (b *Browser) pages() (out []*page) {
	b.read(func() {
		for _, p := range b.tabs {
			if p.number > 0 && p.trouble() == nil {
				out = append(out, p)
			}
		}
	})
	return out
}
