package client

import (
	"context"
	"time"
)

// heartbeat renews one lease in the background. It is used by the holder of its
// Session's turn.
type heartbeat struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// start renews the lease of an episode three times in each of its lengths.
func (h *heartbeat) start(c *Client, episode string, lease time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.ended = cancel, make(chan struct{})
	go func() {
		defer close(h.ended)
		every := max(lease/3, 10*time.Millisecond)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			call, done := context.WithTimeout(ctx, every)
			_, err := c.Heartbeat(call, episode)
			done()
			switch KindOf(err) {
			case NotFound, LeaseExpired, StaleEpisode, WorldLost, EpisodeOver, Unauthenticated:
				return // the next call on the Session gets the error
			}
		}
	}()
}

// stop ends the heartbeat and waits for its goroutine.
func (h *heartbeat) stop() {
	if h.cancel == nil {
		return
	}
	h.cancel()
	<-h.ended
	h.cancel = nil
}
