// Package episode is the state machine of one episode: reset, step, close; and
// the table of leases that holds many of them for callers who may vanish.
//
// # Failure
//
// A bad action is part of the observation. The end of the task is terminated, a
// limit is truncated. A fault of the infrastructure is an error of kind
// world_lost and never a reward: the episode is void.
//
// # Concurrency
//
// An Episode and a Table may be used by many goroutines; calls on one episode
// are carried out one after the other.
package episode
