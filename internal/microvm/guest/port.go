package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/sys"
)

// port is one of the serial device's.
type port struct{ *os.File }

// portPatience is how long the kernel may take to make the file of a port.
const portPatience = 5 * time.Second

// openPort opens a port of the serial device: 0 is the agent's own, the others are streams.
func openPort(n int) (*port, error) {
	// The device's own number depends on what else is in the machine. Port 0 of the device is
	// the kernel's console.
	pattern := fmt.Sprintf("/dev/vport*p%d", n+1)
	ctx, cancel := context.WithTimeout(context.Background(), portPatience)
	defer cancel()
	var found []string
	err := sys.WaitFolder(ctx, "/dev", func() (ok bool, err error) {
		found, err = filepath.Glob(pattern)
		return len(found) == 1, err
	})
	if err != nil {
		return nil, fmt.Errorf("find port: %d files like %s: %w", len(found), pattern, err)
	}
	f, err := os.OpenFile(found[0], os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &port{f}, nil
}

// Read waits for bytes, also for somebody to be at the other end. A port reads as ended while nobody
// is there; the driver wakes who waits for the port when that changes, which Go's poller, being told
// of changes only, hands on.
func (p *port) Read(b []byte) (n int, err error) {
	raw, err := p.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, failed = syscall.Read(int(fd), b)
			if !errors.Is(failed, syscall.EINTR) {
				return n > 0 || failed != nil && !errors.Is(failed, syscall.EAGAIN)
			}
		}
	})
	if err == nil {
		err = failed
	}
	return max(n, 0), err
}
