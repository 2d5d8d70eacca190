package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// message is one as the RPC library frames it.
func message(size int) []byte {
	b := make([]byte, prefixSize+size)
	binary.BigEndian.PutUint32(b[1:], uint32(size))
	for i := range size {
		b[prefixSize+i] = byte(i)
	}
	return b
}

// TestMessagesAreWhole: what is written in two pieces is read in one, and big ones in order.
func TestMessagesAreWhole(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	broken := errors.New("broken")
	sizes := []int{7, 0, 100_000, 3}
	go func() {
		for _, size := range sizes {
			m := message(size)
			_, _ = w.Write(m[:prefixSize])
			if size > 0 {
				_, _ = w.Write(m[prefixSize:])
			}
		}
		w.CloseWithError(broken)
	}()
	m := &messages{ReadCloser: r}
	buf := make([]byte, 16<<10)
	for _, size := range sizes {
		want := message(size)
		var got []byte
		for reads := 0; len(got) < len(want); reads++ {
			n, err := m.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, buf[:n]...); reads == 0 && n != min(len(want), len(buf)) {
				t.Errorf("message of %d bytes: the first read gives %d", size, n)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("message of %d bytes came as another one", size)
		}
	}
	if _, err := m.Read(buf); !errors.Is(err, broken) {
		t.Errorf("at the end: %v", err)
	}
}

// TestMessagesThatEndEarly: nothing is lost, whatever the room and wherever the end.
func TestMessagesThatEndEarly(t *testing.T) {
	t.Parallel()
	whole := append(message(300), message(20)...)
	for _, room := range []int{1, 4, 5, 6, 64, 4096} {
		for end := 0; end <= len(whole); end += 3 {
			m := &messages{ReadCloser: io.NopCloser(bytes.NewReader(whole[:end]))}
			got, err := io.ReadAll(readInto{m, room})
			if err != nil || !bytes.Equal(got, whole[:end]) {
				t.Fatalf("room %d, end %d: %d bytes, %v", room, end, len(got), err)
			}
		}
	}
}

// readInto reads with little room.
type readInto struct {
	io.Reader
	room int
}

func (r readInto) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.room)]) }
