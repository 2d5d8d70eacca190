// Package worldclock gives a tree of processes a wall clock and random numbers of its own,
// whatever the programs are written in and however they are linked. Their monotonic
// clocks stay real.
//
// # How
//
// Programs ask for the time through the vDSO, code that the kernel maps into each of them.
// A program that begins is given a copy of it, in which the functions for the wall clock
// read one word of memory instead: the [Page], which whoever owns the world sets. The
// kernel tells programs where their vDSO is in a table on their first stack, and there the
// copy takes the original's place; the original stays where it is and goes on to serve the
// monotonic clocks. Children inherit all of it.
//
// What the copy does not see is passed on by a filter of system calls to a [Supervisor]:
// every execve (the new program needs a copy), clocks that are asked for by system calls,
// deadlines at an instant of the wall clock (they are turned into real ones, as far away
// as they are in the world's time), and random bytes, which come from a [Source].
//
// # Limits
//
// It is an aid for repeatable worlds, no wall against hostile programs: one that wants to
// know the real time finds it (rdtsc, or by changing the arguments of a call under way).
package worldclock
