package sys

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Somebody who waits for the host is told when the listener is closed. That a host connects can be
// tried in a machine only.
func TestVsockListenerCloses(t *testing.T) {
	t.Parallel()
	l, err := ListenVsock(unix.VMADDR_PORT_ANY)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Skipf("unsupported: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("somebody has connected")
	}
}
