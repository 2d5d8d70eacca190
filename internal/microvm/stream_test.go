package microvm

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// A stream that is closed ends its reader and leaves the connection to the next one.
func TestStreamIsUsedAgain(t *testing.T) {
	t.Parallel()
	a, b, err := sys.Streampair()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := streamOf(a)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer b.Close()
	first := &stream{UnixConn: ours}
	ended := make(chan error, 1)
	go func() {
		_, err := first.Read(make([]byte, 8))
		ended <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a reader of a closed stream has read")
	}
	if _, err := first.Write([]byte("late")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write to a closed stream: %v", err)
	}
	if err := errors.Join(first.Close(), ours.SetDeadline(time.Time{})); err != nil {
		t.Fatal(err)
	}
	if err := first.SetDeadline(time.Unix(1, 0)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed stream bounds its successor: %v", err)
	}
	second := &stream{UnixConn: ours}
	if _, err := b.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if n, err := second.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("%q %v", buf[:n], err)
	}
}

// What was said to a machine and lies unread would be read again by no state of it.
func TestMachineHasReadBeforeItIsSaved(t *testing.T) {
	t.Parallel()
	a, b, err := sys.Streampair()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ours, err := streamOf(a)
	if err != nil {
		t.Fatal(err)
	}
	l := &serial{ports: []*net.UnixConn{ours}}
	defer l.close()
	if err := l.taken(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write([]byte("how far I am")); err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := l.taken(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unread, and yet: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- l.taken(t.Context()) }()
	if _, err := b.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
