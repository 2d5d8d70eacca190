package sys

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// ListenIn listens on a TCP address of the network that another process lives in.
func ListenIn(ctx context.Context, pid int, address string) (net.Listener, error) {
	ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("find the network of process %d: %w", pid, err)
	}
	defer unix.Close(ns)
	var l net.Listener
	// A socket stays in the network that its thread was in when it was made.
	onThreadOfItsOwn(func() {
		if err = unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter the network of process %d: %w", pid, err)
			return
		}
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}
