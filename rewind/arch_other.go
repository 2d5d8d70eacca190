//go:build !amd64

package rewind

import "github.com/pommelgym/pommel/internal/uapi"

// There is no machine code for this architecture: Attach refuses, Probe says so, and nothing
// of what stands here is ever called.

const (
	supported      = false
	callSyscallAt  = 0
	epollEventSize = 16
)

var (
	parasiteCode = [...]byte{0}
	syscallInsn  = []byte{0}
)

type work struct {
	calls, copies   uint64
	nCalls, nCopies int
	keys            bool
}

func enterParasite(*uapi.Regs, uint64, work)              {}
func enterSyscall(_ *uapi.Regs, _, _ uint64, _ [6]uint64) {}
func syscallResult(*uapi.Regs) int64                      { return -int64(uapi.ENOSYS) }
func describeFault(*uapi.Regs) string                     { return "" }
func hasKeys([]byte) bool                                 { return false }
func blockedIn(*uapi.Regs) bool                           { return false }
func normalise(*uapi.Regs)                                {}
func native(*uapi.Regs) bool                              { return false }
func waitsOnly(*uapi.Regs) bool                           { return false }
func threadPointer(*uapi.Regs) uint64                     { return 0 }
func stackPointer(*uapi.Regs) uint64                      { return 0 }
func putEpollEvent(_ []byte, _ uint32, _ uint64)          {}
