package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pommelgym/pommel/internal/cli"
)

// TestActionsPageIsFresh: docs/actions.md is what the command prints; `make gen` writes it anew.
func TestActionsPageIsFresh(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join("..", "..", "docs", "actions.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if code := cli.Main(context.Background(), &cli.State{Args: []string{"actions", "--markdown"}, Stdout: &got, Stderr: os.Stderr, Getenv: os.Getenv}); code != cli.ExitOK {
		t.Fatalf("exit code %d", code)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/actions.md is not what `pommel actions --markdown` prints; run make gen")
	}
}
