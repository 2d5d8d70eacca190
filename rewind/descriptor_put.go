package rewind

import (
	"fmt"
	"slices"

	"github.com/pommelgym/pommel/internal/uapi"
)

// mostSent is how many open files go into a process with one message. The kernel's limit is 253.
const mostSent = 128

// putFiles puts open files that were closed back under their numbers: a database closes
// and opens dozens in an episode. They are sent in one message, and what moves them to
// their places is left in the batch.
func (t *Tree) putFiles(p *process, tk *task, st *processState, b *batch) error {
	gone := p.now.gone[:0]
	for i := range st.files {
		if p.now.files[i] == fileGone {
			gone = append(gone, &st.files[i])
		}
	}
	p.now.gone = gone
	for chunk := range slices.Chunk(gone, mostSent) {
		for _, d := range chunk {
			if err := t.reopen(p, d); err != nil {
				return err
			}
		}
		if err := t.putChunk(p, tk, chunk, b); err != nil {
			return err
		}
	}
	return nil
}

// reopen sees to it that there is an open file of ours to be given to a process.
func (t *Tree) reopen(p *process, d *descriptor) error {
	switch {
	case d.held():
	case d.kind == kindPipe:
		fd, err := uapi.Open(fmt.Sprintf("/proc/self/fd/%d", d.path), d.status&uapi.OAccmode|uapi.ONonblock)
		if err != nil {
			return fail(ReasonDescriptor, "open the pipe of descriptor %d of process %d again: %v", d.fd, p.pid, err)
		}
		d.now = fd
		_ = uapi.SetStatusFlags(fd, d.status)
	case d.kind == kindSocket:
		// The connection is gone for good. The program finds one whose peer has closed, as if that had hung up.
		fd, err := uapi.EOFSocket(d.family)
		if err != nil {
			return fail(ReasonDescriptor, "make a closed connection: %v", err)
		}
		var st uapi.Stat_t
		if err := uapi.Fstat(fd, &st); err != nil {
			return fail(ReasonDescriptor, "look at a closed connection: %v", err)
		}
		_ = uapi.SetStatusFlags(fd, d.status)
		d.now, d.id = fd, identity{st.Dev, st.Ino}
		d.ready = true
		t.report.ConnectionsEnded++
	default:
		return fail(ReasonDescriptor, "descriptor %d of process %d (%s) was closed and is not kept", d.fd, p.pid, d.link)
	}
	t.report.DescriptorsRestored++
	return nil
}

// putChunk puts some back, which ascend. The kernel gives each the lowest number that is free, so
// none gets one above its own, and as a rule just that. Those that did not are moved,
// the last one first: so none lands where another one still is.
func (t *Tree) putChunk(p *process, tk *task, chunk []*descriptor, b *batch) error {
	fds := p.now.sent[:0]
	for _, d := range chunk {
		fds = append(fds, d.current())
	}
	p.now.sent = fds
	got, err := t.sendFds(p, tk, fds, b)
	if err != nil {
		return err
	}
	for i := len(chunk) - 1; i >= 0; i-- {
		d, at := chunk[i], int(got[i])
		switch {
		case at == d.fd:
			if !d.cloexec {
				b.add(uapi.SysFcntl, uint64(d.fd), fSetfd, 0)
			}
		case at < d.fd:
			b.add(uapi.SysDup3, uint64(at), uint64(d.fd), flag(d.cloexec, uapi.OCloexec))
			b.add(uapi.SysClose, uint64(at))
		default:
			return fail(ReasonDescriptor, "put descriptor %d of process %d back: the kernel gave it number %d", d.fd, p.pid, at)
		}
	}
	return nil
}

// sendFds gives descriptors of ours to a process and answers their numbers there. Calls
// that are in the batch are made before.
func (t *Tree) sendFds(p *process, tk *task, fds []int, b *batch) ([]int32, error) {
	if err := uapi.SendFds(p.channel, fds); err != nil {
		return nil, fail(ReasonDescriptor, "send %d descriptors to process %d: %v", len(fds), p.pid, err)
	}
	const iovAt, byteAt, ctlAt, headLen = 64, 96, 128, 16
	mem := p.scratch()
	size := uint64(headLen + 4*len(fds))
	uapi.View[uapi.Msghdr](mem, 1)[0] = uapi.Msghdr{Iov: p.scratchAddr(iovAt), Iovlen: 1, Control: p.scratchAddr(ctlAt), Controllen: (size + 7) &^ 7}
	uapi.View[uapi.Iovec](mem[iovAt:], 1)[0] = uapi.Iovec{Base: p.scratchAddr(byteAt), Len: 1}
	const cmsgCloexec, dontWait = 0x40000000, 0x40
	k := b.add(uapi.SysRecvmsg, uint64(p.remoteChannel), p.scratchAddr(0), cmsgCloexec|dontWait)
	calls := b.calls
	if err := t.flush(tk, b); err != nil {
		return nil, err
	}
	if ret := calls[k].ret; isErr(ret) {
		return nil, fail(ReasonDescriptor, "receive a descriptor in process %d: %v", p.pid, uapi.Errno(-ret))
	}
	if n := uapi.View[uint64](mem[ctlAt:], 1)[0]; n != size {
		return nil, fail(ReasonDescriptor, "process %d has received %d descriptors of %d", p.pid, (n-headLen)/4, len(fds))
	}
	return uapi.View[int32](mem[ctlAt+headLen:], len(fds)), nil
}

// sendFd puts a descriptor of ours into the process and gives its number there.
func (t *Tree) sendFd(p *process, tk *task, fd int) (int, error) {
	got, err := t.sendFds(p, tk, []int{fd}, p.batch())
	if err != nil {
		return -1, err
	}
	return int(got[0]), nil
}
