// Package replay plays recorded episodes again and says where they differ.
//
// An episode is a function of the world's snapshot, the task, the seed, the profile and
// the actions; a record holds all of them. What is compared is all that a trainer is told
// of a step but its wall time: the observation, the reward, the changed rows, the verdict
// with its evidence, and whatever else stands in info.
package replay
