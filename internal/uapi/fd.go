package uapi

import "golang.org/x/sys/unix"

// Open, Close and their like are the kernel's, on plain numbers: the descriptors
// here are kept for the life of a tree, and wrapping each in an *os.File would put
// them into the runtime's poller.
func Open(path string, flags int) (int, error) {
	return unix.Open(path, flags|unix.O_CLOEXEC, 0)
}

// Flags of Open.
const (
	ORdonly    = unix.O_RDONLY
	ORdwr      = unix.O_RDWR
	OWronly    = unix.O_WRONLY
	ODirectory = unix.O_DIRECTORY
	OPath      = unix.O_PATH
	ONonblock  = unix.O_NONBLOCK
	OCloexec   = unix.O_CLOEXEC
	OAppend    = unix.O_APPEND
	OAccmode   = unix.O_ACCMODE
	ONofollow  = unix.O_NOFOLLOW
)

// Close closes a descriptor if it is one.
func Close(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// Pread, Pwrite, Read and Write are the kernel's.
func Pread(fd int, b []byte, off uint64) (int, error)  { return unix.Pread(fd, b, int64(off)) }
func Pwrite(fd int, b []byte, off uint64) (int, error) { return unix.Pwrite(fd, b, int64(off)) }
func Read(fd int, b []byte) (int, error)               { return unix.Read(fd, b) }
func Write(fd int, b []byte) (int, error)              { return unix.Write(fd, b) }

// Seek positions.
const (
	SeekSet  = 0
	SeekCur  = 1
	SeekData = 3
	SeekHole = 4
)

// Seek moves an open file's offset. Like the other calls of which each rewind makes hundreds, it
// is not announced to the scheduler, which would take longer than the call.
func Seek(fd int, off int64, whence int) (int64, error) {
	n, _, e := unix.RawSyscall(unix.SYS_LSEEK, uintptr(fd), uintptr(off), uintptr(whence))
	if e != 0 {
		return -1, e
	}
	return int64(n), nil
}

// Dirents reads raw directory entries from the beginning of an open folder.
func Dirents(fd int, b []byte, first bool) (int, error) {
	if first {
		if _, err := unix.Seek(fd, 0, 0); err != nil {
			return 0, err
		}
	}
	return unix.Getdents(fd, b)
}

// Fstat, Lstat and Readlink are the kernel's.
func Fstat(fd int, st *Stat_t) error              { return unix.Fstat(fd, st) }
func Stat(path string, st *Stat_t) error          { return unix.Stat(path, st) }
func Lstat(path string, st *Stat_t) error         { return unix.Lstat(path, st) }
func Readlink(path string, b []byte) (int, error) { return unix.Readlink(path, b) }

// Kinds of a file, from its mode.
func IsRegular(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFREG }
func IsFifo(mode uint32) bool    { return mode&unix.S_IFMT == unix.S_IFIFO }
func IsSocket(mode uint32) bool  { return mode&unix.S_IFMT == unix.S_IFSOCK }
func IsDir(mode uint32) bool     { return mode&unix.S_IFMT == unix.S_IFDIR }
func IsSymlink(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFLNK }

// Unread is the number of bytes that wait in a pipe or socket.
func Unread(fd int) int {
	n, err := unix.IoctlGetInt(fd, fionread)
	if err != nil {
		return 0
	}
	return n
}

// StatusFlags are an open file's flags (O_APPEND, O_NONBLOCK, access mode).
func StatusFlags(fd int) int {
	f, _, e := unix.RawSyscall(unix.SYS_FCNTL, uintptr(fd), unix.F_GETFL, 0)
	if e != 0 {
		return 0
	}
	return int(f)
}

// SetStatusFlags sets an open file's flags.
func SetStatusFlags(fd, flags int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
	return err
}

// SockOpt reads an integer option at the level SOL_SOCKET; 0 when there is none.
func SockOpt(fd, opt int) int {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, opt)
	if err != nil {
		return 0
	}
	return v
}

// Options of SockOpt and what they answer.
const (
	SoAcceptConn = unix.SO_ACCEPTCONN
	SoDomain     = unix.SO_DOMAIN
	SoType       = unix.SO_TYPE
	AfInet       = unix.AF_INET
	AfInet6      = unix.AF_INET6
	AfUnix       = unix.AF_UNIX
	SockStream   = unix.SOCK_STREAM
	SockDgram    = unix.SOCK_DGRAM
	SockCloexec  = unix.SOCK_CLOEXEC
)

// PeerPid is the process that made the other end of a Unix socket, 0 when unknown.
func PeerPid(fd int) int {
	u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(u.Pid)
}

// Connected says whether a socket has a peer.
func Connected(fd int) bool {
	_, err := unix.Getpeername(fd)
	return err == nil
}

// SendFds sends descriptors over a Unix socket.
func SendFds(sock int, fds []int) error {
	return unix.Sendmsg(sock, []byte{'x'}, unix.UnixRights(fds...), nil, unix.MSG_DONTWAIT)
}

// Recv takes bytes from a socket without waiting.
func Recv(fd int, b []byte) (int, error) {
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	return n, err
}

// AcceptAndDrop takes one connection off a listener and closes it.
func AcceptAndDrop(fd int) bool {
	c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return false
	}
	_ = unix.Close(c)
	return true
}

// PollFd is struct pollfd.
type PollFd = unix.PollFd

// PollIn asks for readability.
const PollIn = unix.POLLIN

// Poll waits up to ms milliseconds.
func Poll(p []PollFd, ms int) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return unix.Poll(p, ms)
}

// PidfdOpen opens a handle of a process.
func PidfdOpen(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// PidfdKill ends the process that a handle stands for, whoever has its number now.
func PidfdKill(pidfd int) error { return unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) }

// Kill sends a signal to a process.
func Kill(pid int, sig int) error { return unix.Kill(pid, unix.Signal(sig)) }

// Memfd makes a file in memory of the given size.
func Memfd(name string, size int64) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Punch gives a range of a file in memory back to the kernel.
func Punch(fd int, off, length int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, length)
}

// Truncate sets the size of an open file.
func Truncate(fd int, size int64) error { return unix.Ftruncate(fd, size) }

// FsMagic is the type number of the file system that holds path.
func FsMagic(path string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	return st.Type, err
}

// FsMagicFd is the same for an open file.
func FsMagicFd(fd int) (int64, error) {
	var st unix.Statfs_t
	err := unix.Fstatfs(fd, &st)
	return st.Type, err
}

// TmpfsMagic is the type number of tmpfs (and of memfd and shared anonymous memory).
const TmpfsMagic = unix.TMPFS_MAGIC

// EOFSocket makes a connected stream socket whose peer has closed, of the given family.
func EOFSocket(family int) (int, error) {
	if family == unix.AF_UNIX {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		_ = unix.Close(p[1])
		return p[0], nil
	}
	return eofTCP()
}

func eofTCP() (int, error) {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, err
	}
	if err := unix.Listen(l, 1); err != nil {
		return -1, err
	}
	at, err := unix.Getsockname(l)
	if err != nil {
		return -1, err
	}
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(c, at); err != nil {
		_ = unix.Close(c)
		return -1, err
	}
	s, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		_ = unix.Close(c)
		return -1, err
	}
	return c, unix.Close(s)
}

// Link, Unlink, Rename, Mkdir, Chmod, Chown and SetTimes are the kernel's; Link and
// Chown do not follow a last symbolic link.
func Link(from, to string) error               { return unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, 0) }
func Unlink(path string) error                 { return unix.Unlink(path) }
func Rename(from, to string) error             { return unix.Rename(from, to) }
func Mkdir(path string, mode uint32) error     { return unix.Mkdir(path, mode) }
func Chmod(path string, mode uint32) error     { return unix.Chmod(path, mode&0o7777) }
func Chown(path string, uid, gid uint32) error { return unix.Lchown(path, int(uid), int(gid)) }
func SetTimes(path string, at, mt Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, mt}, unix.AT_SYMLINK_NOFOLLOW)
}

// SealedAgainstWrites says that nobody can change the content of a file in memory any more.
func SealedAgainstWrites(fd int) bool {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil && seals&unix.F_SEAL_WRITE != 0
}
