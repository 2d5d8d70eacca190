package uapi

import "golang.org/x/sys/unix"

// SysTime is the call that newer architectures do not have.
const SysTime = unix.SYS_TIME
