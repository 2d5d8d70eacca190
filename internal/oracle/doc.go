// Package oracle runs the scripted solution of a task, to prove that it can be solved.
//
// A script is Starlark, a small dialect of Python. The actions of the agent are its
// functions, p holds the task's parameters, obs() is the latest observation. It has
// no files, no clock, no network and no randomness: the same world gives the same run.
package oracle
