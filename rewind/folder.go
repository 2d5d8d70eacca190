package rewind

import "github.com/pommelgym/pommel/internal/uapi"

// undoCwd brings a process back to the folder that it was in.
func (t *Tree) undoCwd(p *process, tk *task, st *processState, b *batch) error {
	if st.cwdFd < 0 || !p.now.moved {
		return nil
	}
	if err := t.flush(tk, b); err != nil {
		return err
	}
	fd, err := t.sendFd(p, tk, st.cwdFd)
	if err != nil {
		return err
	}
	ch := b.add(uapi.SysFchdir, uint64(fd))
	b.add(uapi.SysClose, uint64(fd))
	if err := t.run(tk, b); err != nil {
		return err
	}
	if ret := b.calls[:2][ch].ret; ret != 0 {
		return fail(ReasonFile, "bring process %d back to its folder: %v", p.pid, uapi.Errno(-ret))
	}
	return nil
}
