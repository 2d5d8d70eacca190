package cli_test

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pommelgym/pommel/internal/cli"
	"github.com/pommelgym/pommel/internal/microvm/guest"
	"github.com/pommelgym/pommel/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeKeeper()
	guest.MaybeInit()
	testscript.Main(m, map[string]func(){"pommel": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Main(ctx, &cli.State{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
	}})
}

// TestScripts runs the transcripts in testdata/script: what a user types, and what comes back.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("POMMEL_WORLDS", filepath.Join(root, "worlds")+":"+filepath.Join(root, "internal", "world", "testdata", "worlds"))
			e.Setenv("PROOF", filepath.Join(root, "internal", "check", "testdata", "worlds", "proof"))
			// The image cache and the module cache are shared with the user's own: building a world takes a while.
			e.Setenv("HOME", os.Getenv("HOME"))
			e.Setenv("POMMEL_TRACES", filepath.Join(e.WorkDir, "traces"))
			return nil
		},
	})
}
