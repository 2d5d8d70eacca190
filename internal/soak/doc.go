// Package soak plays episodes over the stream RPC with clients that die, stand still and
// lose their connections, and holds each answer against the same episode played undisturbed.
//
// An episode is decided by its task, its seed and its actions. So each is played once in
// this process, and what came of it (rewards, the chain of hashes over all that was seen and
// all rows that were changed) is what every client must get later, whatever happened
// to its calls. A step that was carried out twice has changed the chain, the count of
// steps, and as a rule the reward.
//
// It also begins episodes over and over, plays them at random, and holds each start, all that
// is seen and all rows, against the first one of its kind.
package soak
