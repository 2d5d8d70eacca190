package cdp

import (
	"bytes"
	"fmt"
	"io"
)

// frames cuts a stream at NUL bytes.
type frames struct {
	r          io.Reader
	buf        []byte
	start, end int // unread bytes are buf[start:end]
}

// next returns one frame without its NUL. It is valid until the next call.
func (f *frames) next() ([]byte, error) {
	scanned := f.start
	for {
		if i := bytes.IndexByte(f.buf[scanned:f.end], 0); i >= 0 {
			b := f.buf[f.start : scanned+i]
			f.start = scanned + i + 1
			return b, nil
		}
		scanned = f.end
		if f.end == len(f.buf) {
			if err := f.grow(); err != nil {
				return nil, err
			}
			scanned = f.end
		}
		n, err := f.r.Read(f.buf[f.end:])
		f.end += n
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// grow makes room: it moves the unread bytes to the front, or doubles the buffer
// when they fill it. A buffer that one huge message blew up is given back.
func (f *frames) grow() error {
	unread := f.buf[f.start:f.end]
	switch {
	case len(unread) > maxMessage:
		return fmt.Errorf("message is longer than %d bytes", maxMessage)
	case len(unread) > len(f.buf)/2:
		bigger := make([]byte, 2*len(f.buf))
		copy(bigger, unread)
		f.buf = bigger
	case len(f.buf) > 16*readBuffer && len(unread) < readBuffer/2:
		smaller := make([]byte, readBuffer)
		copy(smaller, unread)
		f.buf = smaller
	default:
		copy(f.buf, unread)
	}
	f.start, f.end = 0, len(unread)
	return nil
}
