package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/pommelgym/pommel/internal/sys"
)

// maxMessage bounds one message of the control socket: a command line and an environment.
const maxMessage = 128 << 10

// request is what the owner asks of the keeper.
type request struct {
	ID     int            `json:"id"`
	Setup  *Config        `json:"setup,omitempty"`
	Start  *startRequest  `json:"start,omitempty"`
	Signal *signalRequest `json:"signal,omitempty"`
	Probe  *Probe         `json:"probe,omitempty"`
	Copy   *copyRequest   `json:"copy,omitempty"`
	Check  bool           `json:"check,omitempty"`
	Reseed *reseedRequest `json:"reseed,omitempty"`

	Snapshot   *snapshotRequest `json:"snapshot,omitempty"`
	Checkpoint *snapshotRequest `json:"checkpoint,omitempty"`
	Rewind     *rewindRequest   `json:"rewind,omitempty"`
	Forget     *forgetRequest   `json:"forget,omitempty"`
}

type startRequest struct {
	Process
	// Key names the process in later requests and in its exit event.
	Key int `json:"key"`
}

type signalRequest struct {
	Key    int            `json:"key"`
	Signal syscall.Signal `json:"signal"`
}

type copyRequest struct {
	From string `json:"from"`
	To   string `json:"to"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
}

// message is an answer (ID set) or an event.
type message struct {
	ID   int        `json:"id,omitempty"`
	Err  string     `json:"err,omitempty"`
	Pid  int        `json:"pid,omitempty"`
	Exit *exitEvent `json:"exit,omitempty"`
	// NoClock is why a sandbox that asked for a clock lives by the real one.
	NoClock string `json:"no_clock,omitempty"`

	Rewind *rewindReply `json:"rewind,omitempty"`
}

type exitEvent struct {
	Key    int            `json:"key"`
	Code   int            `json:"code"`
	Signal syscall.Signal `json:"signal,omitempty"`
}

// channel sends and receives messages with descriptors. One reader, any number of writers.
type channel struct {
	conn     *net.UnixConn
	buf, oob []byte // the reader's
}

func newChannel(f *os.File) (*channel, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("control socket: it is a %T", c)
	}
	return &channel{conn: u, buf: make([]byte, maxMessage), oob: make([]byte, syscall.CmsgSpace(16*4))}, nil
}

func (c *channel) send(v any, files ...*os.File) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("control message: %d bytes, at most %d are possible (arguments or environment too large)", len(data), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	if _, _, err := c.conn.WriteMsgUnix(data, rights, nil); err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	return nil
}

// receive fills v and returns the descriptors that came along; they are the caller's.
func (c *channel) receive(v any) ([]*os.File, error) {
	n, oobn, _, _, err := c.conn.ReadMsgUnix(c.buf, c.oob)
	if err != nil {
		return nil, fmt.Errorf("control message: %w", err)
	}
	files, err := descriptors(c.oob[:oobn])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(c.buf[:n], v); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("control message: %w", err)
	}
	return files, nil
}

func descriptors(oob []byte) ([]*os.File, error) {
	parts, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control message: %w", err)
	}
	var files []*os.File
	for i := range parts {
		fds, err := syscall.ParseUnixRights(&parts[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			sys.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
