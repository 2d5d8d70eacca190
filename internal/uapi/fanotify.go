package uapi

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Events of fanotify that are looked at.
const (
	FanQOverflow = unix.FAN_Q_OVERFLOW
	FanCreate    = unix.FAN_CREATE
	FanDelete    = unix.FAN_DELETE
	FanOnDir     = unix.FAN_ONDIR
)

// FanotifyOpen watches a whole file system for changes of content and names.
// Events name the folder by its handle and the entry by its name.
func FanotifyOpen(path string) (int, error) {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_DFID_NAME|unix.FAN_NONBLOCK|
		unix.FAN_UNLIMITED_QUEUE|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		return -1, err
	}
	const what = unix.FAN_MODIFY | unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_MOVED_FROM | unix.FAN_MOVED_TO | unix.FAN_ATTRIB | unix.FAN_ONDIR
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, what, unix.AT_FDCWD, path); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// FanotifyNext takes the first event off b, as read from the descriptor, and gives the rest.
func FanotifyNext(b []byte) (ev FanEvent, rest []byte, ok bool) {
	const head = 24 // struct fanotify_event_metadata
	if len(b) < head {
		return ev, nil, false
	}
	n := int(binary.NativeEndian.Uint32(b))
	meta := int(binary.NativeEndian.Uint16(b[6:]))
	if n < head || n > len(b) || meta > n {
		return ev, nil, false
	}
	ev.Mask = binary.NativeEndian.Uint64(b[8:])
	info := b[meta:n]
	// struct fanotify_event_info_fid: header 4, fsid 8, then struct file_handle: bytes 4, type 4, handle, name.
	const fixed = 4 + 8 + 8
	if len(info) >= fixed {
		hl := int(binary.NativeEndian.Uint32(info[12:]))
		if fixed+hl <= len(info) {
			ev.Dir = info[fixed : fixed+hl]
			name := info[fixed+hl:]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			ev.Name, ev.Parsed = name, true
		}
	}
	return ev, b[n:], true
}
