package gym

import (
	"context"
	"time"
)

// Sessions is what a server needs of a Gym: episodes by id, held by leases, safe
// to retry. Table implements it over a Gym.
type Sessions interface {
	// Reset starts an episode. A repeated requestID (if not "") returns the first answer.
	Reset(ctx context.Context, r SessionRequest) (*Result, error)
	// Step performs an action as call number n (0: the next one). Step, Checkpoint and Restore
	// share one row of numbers, of which none is used twice. A repeated n with the same call returns
	// the first answer; with another one it is invalid_argument; an older n is stale_episode.
	Step(ctx context.Context, episodeID string, n int, action string, view View) (*Result, error)
	// Checkpoint saves the state of the episode as call number n, and names it.
	Checkpoint(ctx context.Context, episodeID string, n int) (string, error)
	// Restore puts the episode back to a checkpoint as call number n; its answer is what the
	// agent saw then. Steps are counted from there again, calls are not.
	Restore(ctx context.Context, episodeID string, n int, checkpoint string) (*Result, error)
	// Forget frees a checkpoint. One that is not held is no error.
	Forget(ctx context.Context, episodeID, checkpoint string) error
	// Observe looks again without a step.
	Observe(ctx context.Context, episodeID string, view View) (*Observation, error)
	// Status tells how far an episode is: what a caller that took it over goes on from.
	Status(ctx context.Context, episodeID string) (*Status, error)
	// Held lists the episodes that are held, and Look observes one for an onlooker: neither
	// renews a lease or waits for a call, and Look leaves an episode alone that is in one.
	Held() []Held
	Look(ctx context.Context, episodeID string, view View) (*Observation, error)
	// Heartbeat renews the lease and returns how long it is.
	Heartbeat(ctx context.Context, episodeID string) (time.Duration, error)
	// CloseEpisode frees the episode's world. Closing twice, or an unknown id, is no error.
	CloseEpisode(ctx context.Context, episodeID string) error
	// Tasks lists the tasks; empty filters mean all.
	Tasks(split, difficulty string) ([]TaskInfo, error)
	// Describe tells what the server runs.
	Describe() Description
}

// SessionRequest is a Request with what a remote caller adds.
type SessionRequest struct {
	Request
	RequestID string
	// Previous is closed first, so that one caller needs only one world.
	Previous string
	// Wait bounds the wait for a free world: 0 is the default, negative is not at all.
	Wait time.Duration
	// Lease is how long the caller may be silent: 0 is the default.
	Lease time.Duration
}

// Description is what a server says of itself.
type Description struct {
	Version    string
	World      string
	WorldTitle string
	Driver     string
	// Image names the content that the world was built from.
	Image  string
	Worlds int
	Free   int
	Lease  time.Duration
	// Viewport is the browser's window.
	Viewport Viewport
}

// Viewport is the window of a world's browser: its size in CSS pixels, and image pixels per
// CSS pixel in screenshots.
type Viewport struct {
	Width, Height int
	Scale         float64
}
