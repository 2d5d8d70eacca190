package sys

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// WaitFolder calls done each time something in the folder was made or written, until
// done says true or fails, or ctx ends. done is called once before the first event.
func WaitFolder(ctx context.Context, folder string, done func() (bool, error)) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch %s: %w", folder, err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_ATTRIB); err != nil {
		return fmt.Errorf("watch %s: %w", folder, err)
	}
	// A read deadline in the past ends a blocked read when ctx does.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 4096)
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if _, err := f.Read(buf); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("watch %s: %w", folder, err)
		}
	}
}
