// Package cli is the command line: one file a subcommand. It reads the world
// outside through one State, so that the whole of it runs inside a test.
package cli

import (
	"io"
)

// State is all that the command line uses of the process it runs in.
type State struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal says that Stderr is one: progress is drawn in place.
	Terminal bool
	Getenv   func(string) string
}

// Exit codes: a contract that scripts rely on.
const (
	ExitOK             = 0   // done, and good
	ExitNotGood        = 1   // done, and not good: a check failed, success below what was asked
	ExitUsage          = 2   // wrong use
	ExitHostCannot     = 3   // this host cannot do it; `pommel doctor` says why
	ExitInfrastructure = 4   // a fault of the infrastructure
	ExitInterrupted    = 130 // interrupted by a signal
)
