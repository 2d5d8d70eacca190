// Package cdp speaks the Chrome DevTools Protocol over two pipes
// (--remote-debugging-pipe): JSON messages, each ended by a NUL byte.
//
// It knows ids, flattened sessions and events, and nothing of pages. Somebody
// else starts the browser and hands over the ends of the pipes.
//
// # Usage
//
//	conn := cdp.New(w, r)
//	defer conn.Close()
//	page := conn.Session(sessionID)
//	page.Handle(func(ev cdp.Event) { ... })
//	err := page.Call(ctx, "Page.enable", nil, nil)
//
// # Concurrency
//
// All methods may be called from any goroutine. One goroutine reads; it calls
// event handlers in the order of arrival and must never be held up, since a
// browser that cannot write stops answering. So a handler must return quickly
// and must not send: it records what it saw and leaves the work to others.
//
// # Failure
//
// When the pipe ends, every pending and later call fails at once with an error
// for which errors.Is(err, ErrClosed) holds. Every wait ends with its context.
package cdp
