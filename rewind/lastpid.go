package rewind

import (
	"bytes"
	"strconv"
	"time"

	"github.com/pommelgym/pommel/internal/uapi"
)

const lastPidFile = "/proc/sys/kernel/ns_last_pid"

// lastPid is the number that the namespace gave out last.
func lastPid() int {
	var b [32]byte
	v, err := strconv.Atoi(string(bytes.TrimSpace(readSmall(lastPidFile, b[:]))))
	if err != nil {
		return 0
	}
	return v
}

func setLastPid(v int) error {
	fd, err := uapi.Open(lastPidFile, uapi.OWronly)
	if err != nil {
		return err
	}
	defer uapi.Close(fd)
	_, err = uapi.Write(fd, strconv.AppendInt(nil, int64(v), 10))
	return err
}

// cloneAs makes a task under a wanted number. The first way names the number in the
// call, for which the caller inside the tree needs a capability; the second sets the
// namespace's last number beforehand, for which the tracer needs it. With the number
// still being released by a task that has just ended, both are tried again.
func (t *Tree) cloneAs(want int, by *task, option uint64, named, plain func() (int64, error)) (int, error) {
	if e := uapi.Ptrace(uapi.PtraceSetOptions, by.tid, t.seizeOptions|option); e != 0 {
		return 0, fail(ReasonUnexpected, "ask for the event of a new task: %v", e)
	}
	defer func() { _ = uapi.Ptrace(uapi.PtraceSetOptions, by.tid, t.seizeOptions) }()
	deadline := time.Now().Add(t.opt.StopTimeout)
	makeOne := named
	for {
		if makeOne == nil {
			_ = setLastPid(want - 1)
		}
		var ret int64
		var err error
		if makeOne != nil {
			ret, err = makeOne()
		} else {
			ret, err = plain()
		}
		switch {
		case err != nil:
			return 0, err
		case !isErr(ret):
			return int(ret), nil
		case makeOne != nil && (uapi.Errno(-ret) == uapi.EPERM || uapi.Errno(-ret) == uapi.ENOSYS || uapi.Errno(-ret) == uapi.EINVAL):
			makeOne = nil
			old := lastPid()
			defer func() { _ = setLastPid(old) }() // else later numbers run into ones that may be needed again
		case uapi.Errno(-ret) == uapi.EEXIST || uapi.Errno(-ret) == uapi.EAGAIN:
			if time.Now().After(deadline) {
				return 0, fail(ReasonProcess, "number %d is taken", want)
			}
			uapi.Nap(100_000)
		default:
			return 0, fail(ReasonProcess, "make a task again: %v", uapi.Errno(-ret))
		}
	}
}
