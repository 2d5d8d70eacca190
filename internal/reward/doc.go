// Package reward is the judge: it decides from rows, row changes, the agent's answer
// and, where a task asks for it, the page, which stages of a task hold.
//
// # Reward
//
// The potential is the weighted sum of the stages that hold. A step's reward is the
// change of the value v = (potential - start) / (1 - start), where start is the
// potential when the episode began: rewards telescope, a stage that is lost is paid
// back, nothing can be earned twice, doing nothing earns 0 and success sums to 1. While
// rows are changed that the task does not allow, v is at most 0: what was paid is
// taken back until the damage is undone.
//
// # Failure
//
// A fault of the database or the page is an error of kind world_lost, never a reward.
package reward
