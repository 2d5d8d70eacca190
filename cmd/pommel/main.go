// Command pommel is the whole of Pommel: worlds, tasks, episodes, server and tools.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pommelgym/pommel/internal/cli"
	"github.com/pommelgym/pommel/internal/microvm/guest"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func main() {
	sandbox.MaybeKeeper() // inside a world's namespaces this process is the keeper
	guest.MaybeInit()     // inside a world's machine it is process 1
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, &cli.State{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: isTerminal(os.Stderr), Getenv: os.Getenv,
	})
	stop()
	os.Exit(code)
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
