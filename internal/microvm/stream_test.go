package microvm

import (
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
