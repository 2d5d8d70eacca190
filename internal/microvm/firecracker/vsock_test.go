package firecracker

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// listenVsock plays the second socket: answers maps a line to what is said to it; others are hung up on.
func listenVsock(t *testing.T, answers func(line string) string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "vsock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, err := bufio.NewReader(c).ReadString('\n')
			if say := answers(line); err == nil && say != "" {
				_, _ = io.WriteString(c, say)
			}
			_ = c.Close()
		}
	}()
	return socket
}

func TestDial(t *testing.T) {
	t.Parallel()
	var knocked atomic.Int32
	socket := listenVsock(t, func(line string) string {
		switch line {
		case "CONNECT 1024\n":
			return "OK 1073741824\nhello\n"
		case "CONNECT 7\n":
			return "NO\n"
		case "CONNECT 8\n":
			return strings.Repeat("x", 100)
		case "CONNECT 9\n":
			if knocked.Add(1) > 3 {
				return "OK 1\n"
			}
		}
		return ""
	})
	ctx := testContext(t)
	c, err := Dial(ctx, socket, 1024)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Nothing that the guest says is lost with the greeting.
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := Dial(ctx, socket, 5); !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "port 5") {
		t.Errorf("got %v", err)
	}
	for _, port := range []uint32{7, 8} {
		if _, err := Dial(ctx, socket, port); err == nil || errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "greeted") {
			t.Errorf("got %v", err)
		}
	}
	late, err := DialAgain(ctx, socket, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if n := knocked.Load(); n != 4 {
		t.Errorf("knocked %d times", n)
	}
	given, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := DialAgain(given, socket, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Dial(ctx, socket+"2", 1); err == nil {
		t.Error("reached a machine that is not there")
	}
}
