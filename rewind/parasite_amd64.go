package rewind

import (
	"encoding/binary"
	"fmt"

	"github.com/pommelgym/pommel/internal/uapi"
)

// The machine code that runs inside a traced process. It uses no stack, so it runs on
// any thread at any point, and ends in a breakpoint that hands control back.
//
// With rbx set it opens all memory protection keys before it copies: browsers keep some
// of their memory behind keys that are closed most of the time. (The register is part of
// the vector state, which is set anew before a thread goes on.)
//
// It first makes r13 system calls from an array of {nr, six arguments, result} at r12,
// then works off r15 entries of {destination, source or 0, length} at r14: it copies, or
// clears where there is no source.
//
//	calls: test r13, r13
//	       jz   copies
//	       mov  rax, [r12]
//	       mov  rdi, [r12+8]
//	       mov  rsi, [r12+16]
//	       mov  rdx, [r12+24]
//	       mov  r10, [r12+32]
//	       mov  r8,  [r12+40]
//	       mov  r9,  [r12+48]
//	       syscall
//	       mov  [r12+56], rax
//	       add  r12, 64
//	       dec  r13
//	       jmp  calls
//	copies: cld
//	       test rbx, rbx
//	       jz   loop
//	       xor  eax, eax
//	       xor  ecx, ecx
//	       xor  edx, edx
//	       wrpkru
//	loop:  test r15, r15
//	       jz   done
//	       mov  rdi, [r14]
//	       mov  rsi, [r14+8]
//	       mov  rcx, [r14+16]
//	       test rsi, rsi
//	       jz   zero
//	       rep movsb
//	       jmp  next
//	zero:  xor  eax, eax
//	       rep stosb
//	next:  add  r14, 24
//	       dec  r15
//	       jmp  loop
//	done:  int3
var parasiteCode = [...]byte{
	0x4d, 0x85, 0xed, // 00 test r13,r13
	0x74, 0x32, // 03 jz 0x37
	0x49, 0x8b, 0x04, 0x24, // 05
	0x49, 0x8b, 0x7c, 0x24, 0x08, // 09
	0x49, 0x8b, 0x74, 0x24, 0x10, // 0e
	0x49, 0x8b, 0x54, 0x24, 0x18, // 13
	0x4d, 0x8b, 0x54, 0x24, 0x20, // 18
	0x4d, 0x8b, 0x44, 0x24, 0x28, // 1d
	0x4d, 0x8b, 0x4c, 0x24, 0x30, // 22
	0x0f, 0x05, // 27 syscall
	0x49, 0x89, 0x44, 0x24, 0x38, // 29
	0x49, 0x83, 0xc4, 0x40, // 2e
	0x49, 0xff, 0xcd, // 32
	0xeb, 0xc9, // 35 jmp 0x00
	0xfc,             // 37 cld
	0x48, 0x85, 0xdb, // 38 test rbx,rbx
	0x74, 0x09, // 3b jz 0x46
	0x31, 0xc0, // 3d xor eax,eax
	0x31, 0xc9, // 3f xor ecx,ecx
	0x31, 0xd2, // 41 xor edx,edx
	0x0f, 0x01, 0xef, // 43 wrpkru
	0x4d, 0x85, 0xff, // 46 test r15,r15
	0x74, 0x22, // 49 jz 0x6d
	0x49, 0x8b, 0x3e, // 4b
	0x49, 0x8b, 0x76, 0x08, // 4e
	0x49, 0x8b, 0x4e, 0x10, // 52
	0x48, 0x85, 0xf6, // 56 test rsi,rsi
	0x74, 0x04, // 59 jz 0x5f
	0xf3, 0xa4, // 5b rep movsb
	0xeb, 0x04, // 5d jmp 0x63
	0x31, 0xc0, // 5f xor eax,eax
	0xf3, 0xaa, // 61 rep stosb
	0x49, 0x83, 0xc6, 0x18, // 63 add r14,24
	0x49, 0xff, 0xcf, // 67 dec r15
	0xeb, 0xda, // 6a jmp 0x46
	0x90, // 6c nop
	0xcc, // 6d int3
}

const callSyscallAt = 0x27 // the syscall instruction

// syscallInsn is the instruction that makes a system call.
var syscallInsn = []byte{0x0f, 0x05}

const trapFlag = 0x100

// work is what the machine code is to do: calls and copies, by their place in the process.
type work struct {
	calls, copies   uint64
	nCalls, nCopies int
	keys            bool // open the memory protection keys
}

// enterParasite points a thread's registers at the machine code.
func enterParasite(r *uapi.Regs, code uint64, w work) {
	r.Rip, r.R12, r.R13, r.R14, r.R15 = code, w.calls, uint64(w.nCalls), w.copies, uint64(w.nCopies)
	r.Rax, r.Orig_rax = 0, noSyscall
	r.Rbx = 0
	if w.keys {
		r.Rbx = 1
	}
	r.Eflags &^= trapFlag
}

// hasKeys says whether a vector state, as ptrace gives it, has memory protection keys.
// The kernel's mask of state components stands in the area reserved for software.
func hasKeys(xstate []byte) bool {
	const maskAt, pkru = 464, 1 << 9
	return len(xstate) >= maskAt+8 && binary.LittleEndian.Uint64(xstate[maskAt:])&pkru != 0
}

// enterSyscall points a thread's registers at a syscall instruction, with arguments.
func enterSyscall(r *uapi.Regs, insn, nr uint64, a [6]uint64) {
	r.Rip, r.Rax, r.Orig_rax = insn, nr, ^uint64(0)
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	r.Eflags &^= trapFlag
}

func syscallResult(r *uapi.Regs) int64 { return int64(r.Rax) }

// describeFault tells what the machine code was at when it failed.
func describeFault(r *uapi.Regs) string {
	return fmt.Sprintf("at %#x, copying to %#x from %#x, %#x bytes left", r.Rip, r.Rdi, r.Rsi, r.Rcx)
}
