package sandbox_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/rewind"
)

// counter answers each line with how many there were, and notes that in a file.
const counter = `n=0; while read -r line; do n=$((n+1)); echo $n > /home/u/n; echo $n >&4; done <&3`

// What runs inside goes back to where it was, in memory and in files, again and again;
// what was started and ended meanwhile is reported as ever.
func TestRewind(t *testing.T) {
	t.Parallel()
	for _, f := range rewind.Probe() {
		if f.Required && f.State == rewind.No {
			t.Skipf("unsupported: %s: %s", f.Name, f.Reason)
		}
	}
	ctx := t.Context()
	s, err := sandbox.Start(ctx, sandbox.Config{Hostname: "rewind", FilesBytes: 64 << 20, Users: []sandbox.User{{Name: "u", UID: 62009, Home: "/home/u"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	proc, err := s.Run(ctx, sandbox.Process{Name: "counter", UID: 62009, Dir: "/", Argv: []string{"/bin/sh", "-c", counter}}, inR, outW)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		if _, err := inW.WriteString("x\n"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 16)
		n, err := outR.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(s.Path("/home/u/n"))
		if err != nil {
			t.Fatal(err)
		}
		if string(file) != string(b[:n]) {
			t.Errorf("the file says %q, the program %q", file, b[:n])
		}
		return strings.TrimSpace(string(b[:n]))
	}
	if _, err := s.Rewind(ctx, 0); err == nil {
		t.Error("rewound without a snapshot")
	}
	if got := ask(); got != "1" {
		t.Fatalf("first answer %s", got)
	}
	if saved, err := s.Snapshot(ctx, sandbox.SnapshotOptions{}); err != nil || saved.Stats.Processes != 1 {
		t.Fatalf("snapshot: %+v %v", saved, err)
	}
	for range 20 {
		for _, want := range []string{"2", "3"} {
			if got := ask(); got != want {
				t.Fatalf("answer %s, want %s", got, want)
			}
		}
		if _, proof, err := s.Verify(ctx, 0); err != nil || !proof.OK() {
			t.Fatalf("verify: %+v %v", proof, err)
		}
		if _, err := s.Rewind(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := proc.Signal(ctx, 9); err != nil {
		t.Fatal(err)
	}
	<-proc.Ended()
	var needs *rewind.NeedsRespawnError
	if _, err := s.Rewind(ctx, 0); !errors.As(err, &needs) || needs.Reason != rewind.ReasonRootGone {
		t.Errorf("after the end of the process: %v", err)
	}
	if err := s.Check(context.Background()); err != nil {
		t.Errorf("the keeper: %v", err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}
