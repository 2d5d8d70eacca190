package rewind

import "encoding/binary"

// epollEventSize: struct epoll_event is packed on this architecture.
const epollEventSize = 12

func putEpollEvent(b []byte, events uint32, data uint64) {
	binary.NativeEndian.PutUint32(b, events)
	binary.NativeEndian.PutUint64(b[4:], data)
}
