package rewind

import (
	"fmt"
	"slices"

	"github.com/pommelgym/pommel/internal/uapi"
)

// mostSent is how many open files go into a process with one message. The kernel's limit is 253.
const mostSent = 128

// putFiles puts open files that were closed back under their numbers: a database closes
// and opens dozens in an episode. They are sent in one message. The kernel gives each
// the lowest number that is free, so it is known beforehand where they will be, and receiving and
// moving them is left in the batch.
func (t *Tree) putFiles(p *process, tk *task, st *processState, b *batch) error {
	g := &p.now
	g.gone = g.gone[:0]
	for i := range st.files {
		if g.files[i] == fileGone {
			g.gone = append(g.gone, &st.files[i])
		}
	}
	taken := slices.DeleteFunc(g.fds, func(fd int) bool {
		_, found := slices.BinarySearch(g.extra, fd)
		return found
	})
	for first := true; len(g.gone) > 0; first = false {
		if !first || len(b.calls) > maxCalls-2*mostSent-8 {
			if err := t.flush(tk, b); err != nil {
				return err
			}
		}
		chunk := g.gone[:min(len(g.gone), mostSent)]
		g.gone = g.gone[len(chunk):]
		for _, d := range chunk {
			if err := t.reopen(p, d); err != nil {
				return err
			}
		}
		if err := p.putChunk(chunk, taken, b); err != nil {
			return err
		}
		for _, d := range chunk {
			taken = append(taken, d.fd)
		}
		slices.Sort(taken)
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

// putChunk puts some back, which ascend; taken are the numbers that are not free, which
// ascend too. None gets a number above its own, and as a rule each gets just that. Those that do
// not are moved, the last one first: so none lands where another one still is.
func (p *process) putChunk(chunk []*descriptor, taken []int, b *batch) error {
	g := &p.now
	g.sent, g.landing = g.sent[:0], g.landing[:0]
	for next := 0; len(g.landing) < len(chunk); next++ {
		for len(taken) > 0 && taken[0] < next {
			taken = taken[1:]
		}
		if len(taken) == 0 || taken[0] != next {
			g.landing = append(g.landing, int32(next))
		}
	}
	for _, d := range chunk {
		g.sent = append(g.sent, d.current())
	}
	if err := p.send(g.sent, filesAt, b); err != nil {
		return err
	}
	for i := len(chunk) - 1; i >= 0; i-- {
		d, at := chunk[i], int(g.landing[i])
		switch {
		case at == d.fd:
			b.add(uapi.SysFcntl, uint64(d.fd), fSetfd, flag(d.cloexec, 1))
		case at < d.fd:
			b.add(uapi.SysDup3, uint64(at), uint64(d.fd), flag(d.cloexec, uapi.OCloexec))
			b.add(uapi.SysClose, uint64(at))
		default:
			return fail(ReasonDescriptor, "descriptor %d of process %d was closed and its number is not free", d.fd, p.pid)
		}
	}
	return nil
}

// Places in the scratch memory: of a message with open files that were closed, which keeps its
// content until the batch has run, and of one with a single descriptor. Then the parts of a message.
const (
	filesAt  = 96 << 10
	singleAt = 0

	iovAt, byteAt, ctlAt, ctlHead = 64, 96, 128, 16
)

// send sends descriptors of ours to a process and leaves the call that receives them in a batch.
func (p *process) send(fds []int, at int, b *batch) error {
	if err := uapi.SendFds(p.channel, fds); err != nil {
		return fail(ReasonDescriptor, "send %d descriptors to process %d: %v", len(fds), p.pid, err)
	}
	mem := p.scratch()[at:]
	room := uint64(ctlHead+4*len(fds)+7) &^ 7
	uapi.View[uapi.Msghdr](mem, 1)[0] = uapi.Msghdr{Iov: p.scratchAddr(at + iovAt), Iovlen: 1, Control: p.scratchAddr(at + ctlAt), Controllen: room}
	uapi.View[uapi.Iovec](mem[iovAt:], 1)[0] = uapi.Iovec{Base: p.scratchAddr(at + byteAt), Len: 1}
	const cmsgCloexec, dontWait = 0x40000000, 0x40
	b.add(uapi.SysRecvmsg, uint64(p.remoteChannel), p.scratchAddr(at), cmsgCloexec|dontWait)
	return nil
}

// received gives the numbers under which a process has received n descriptors.
func (p *process) received(n, at int) ([]int32, error) {
	mem := p.scratch()[at:]
	if got := uapi.View[uint64](mem[ctlAt:], 1)[0]; got != uint64(ctlHead+4*n) {
		return nil, fail(ReasonDescriptor, "process %d has received %d bytes about %d descriptors", p.pid, got, n)
	}
	return uapi.View[int32](mem[ctlAt+ctlHead:], n), nil
}

// landed makes sure that open files have got the numbers that they were expected to get.
func (p *process) landed() error {
	got, err := p.received(len(p.now.landing), filesAt)
	if err != nil {
		return err
	}
	if !slices.Equal(got, p.now.landing) {
		return fail(ReasonDescriptor, "process %d has received descriptors as %v, not as %v", p.pid, got, p.now.landing)
	}
	return nil
}

// sendFd puts a descriptor of ours into the process and gives its number there.
func (t *Tree) sendFd(p *process, tk *task, fd int) (int, error) {
	b := p.batch()
	if err := p.send([]int{fd}, singleAt, b); err != nil {
		return -1, err
	}
	if err := t.flush(tk, b); err != nil {
		return -1, err
	}
	got, err := p.received(1, singleAt)
	if err != nil {
		return -1, err
	}
	return int(got[0]), nil
}
