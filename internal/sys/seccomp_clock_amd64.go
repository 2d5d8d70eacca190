package sys

import "golang.org/x/sys/unix"

// clockRules pass on what a world's clock and randomness have to see: a new program, which
// gets a vDSO of its own; the wall clock asked for by a system call; deadlines on it; and
// random bytes. The program before has loaded the call's number.
func clockRules() []unix.SockFilter {
	const (
		load     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		anyBit   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		mask     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ret      = unix.BPF_RET | unix.BPF_K
		allow    = unix.SECCOMP_RET_ALLOW
		notify   = unix.SECCOMP_RET_USER_NOTIF
		dataArg1 = dataArg0 + 8

		futexRealtime = 256
		futexCommand  = 127
		futexLockPI   = 6 // has no flag: its deadline is on the wall clock always
		absolute      = unix.TIMER_ABSTIME
		tai           = 11
	)
	var p []unix.SockFilter
	always := []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_GETTIMEOFDAY, unix.SYS_TIME, unix.SYS_GETRANDOM}
	for _, nr := range always {
		p = append(p, unix.SockFilter{Code: equal, K: nr, Jf: 1}, unix.SockFilter{Code: ret, K: notify})
	}
	p = append(p,
		unix.SockFilter{Code: equal, K: unix.SYS_CLOCK_GETTIME, Jf: 6},
		unix.SockFilter{Code: load, K: dataArg0},
		unix.SockFilter{Code: equal, K: unix.CLOCK_REALTIME, Jt: 2},
		unix.SockFilter{Code: equal, K: unix.CLOCK_REALTIME_COARSE, Jt: 1},
		unix.SockFilter{Code: equal, K: tai, Jf: 1},
		unix.SockFilter{Code: ret, K: notify},
		unix.SockFilter{Code: ret, K: allow},

		unix.SockFilter{Code: equal, K: unix.SYS_FUTEX, Jf: 6},
		unix.SockFilter{Code: load, K: dataArg1},
		unix.SockFilter{Code: anyBit, K: futexRealtime, Jt: 2},
		unix.SockFilter{Code: mask, K: futexCommand},
		unix.SockFilter{Code: equal, K: futexLockPI, Jf: 1},
		unix.SockFilter{Code: ret, K: notify},
		unix.SockFilter{Code: ret, K: allow},

		unix.SockFilter{Code: equal, K: unix.SYS_CLOCK_NANOSLEEP, Jf: 7},
		unix.SockFilter{Code: load, K: dataArg0},
		unix.SockFilter{Code: equal, K: unix.CLOCK_REALTIME, Jt: 1},
		unix.SockFilter{Code: equal, K: tai, Jf: 3},
		unix.SockFilter{Code: load, K: dataArg1},
		unix.SockFilter{Code: anyBit, K: absolute, Jf: 1},
		unix.SockFilter{Code: ret, K: notify},
		unix.SockFilter{Code: ret, K: allow},
	)
	for _, nr := range []uint32{unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMER_SETTIME} {
		p = append(p,
			unix.SockFilter{Code: equal, K: nr, Jf: 4},
			unix.SockFilter{Code: load, K: dataArg1},
			unix.SockFilter{Code: anyBit, K: absolute, Jf: 1},
			unix.SockFilter{Code: ret, K: notify},
			unix.SockFilter{Code: ret, K: allow},
		)
	}
	return p
}
