package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// VsockListener takes connections that the host makes to a port of this machine, without a network.
type VsockListener struct{ f *os.File }

// ListenVsock listens on a port of the machine's own.
func ListenVsock(port uint32) (*VsockListener, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("listen for the host: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: port})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("listen for the host on port %d: %w", port, err)
	}
	// Not blocking, so Go waits for it as for any socket.
	return &VsockListener{os.NewFile(uintptr(fd), fmt.Sprintf("vsock:%d", port))}, nil
}

// Accept waits for the next connection.
func (l *VsockListener) Accept() (*os.File, error) {
	raw, err := l.f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	var conn int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			conn, _, failed = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			switch failed {
			case unix.EINTR, unix.ECONNABORTED: // who asked has gone again
			case unix.EAGAIN:
				return false
			default:
				return true
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	return os.NewFile(uintptr(conn), "vsock"), nil
}

// Close ends it.
func (l *VsockListener) Close() error { return l.f.Close() }
