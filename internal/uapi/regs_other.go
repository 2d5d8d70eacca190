//go:build !amd64

package uapi

import "golang.org/x/sys/unix"

// Regs are the general registers of a thread, as this architecture has them.
type Regs = unix.PtraceRegs

// NTXState is the register set of the floating point state.
const NTXState = 2
