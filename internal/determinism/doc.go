// Package determinism plays the same episodes again and again and counts how many
// different ones came of it.
//
// A group is a task, a seed and an agent; all its episodes should be one episode. They are
// played in turns with those of other groups, on all worlds at once, so that each follows
// another kind of episode in another world.
package determinism
