package rewind

import "github.com/pommelgym/pommel/internal/uapi"

// The machine code that runs inside a traced process. It uses no stack, so it runs on
// any thread at any point, and ends in a breakpoint that hands control back.
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
	0x4d, 0x85, 0xff, // 38 test r15,r15
	0x74, 0x22, // 3b jz 0x5f
	0x49, 0x8b, 0x3e, // 3d
	0x49, 0x8b, 0x76, 0x08, // 40
	0x49, 0x8b, 0x4e, 0x10, // 44
	0x48, 0x85, 0xf6, // 48 test rsi,rsi
	0x74, 0x04, // 4b jz 0x51
	0xf3, 0xa4, // 4d rep movsb
	0xeb, 0x04, // 4f jmp 0x55
	0x31, 0xc0, // 51 xor eax,eax
	0xf3, 0xaa, // 53 rep stosb
	0x49, 0x83, 0xc6, 0x18, // 55 add r14,24
	0x49, 0xff, 0xcf, // 59 dec r15
	0xeb, 0xda, // 5c jmp 0x38
	0x90, // 5e nop
	0xcc, // 5f int3
}

const callSyscallAt = 0x27 // the syscall instruction

// syscallInsn is the instruction that makes a system call.
var syscallInsn = []byte{0x0f, 0x05}

const trapFlag = 0x100

// work is what the machine code is to do: calls and copies, by their place in the process.
type work struct {
	calls, copies   uint64
	nCalls, nCopies int
}

// enterParasite points a thread's registers at the machine code.
func enterParasite(r *uapi.Regs, code uint64, w work) {
	r.Rip, r.R12, r.R13, r.R14, r.R15 = code, w.calls, uint64(w.nCalls), w.copies, uint64(w.nCopies)
	r.Rax, r.Orig_rax = 0, noSyscall
	r.Eflags &^= trapFlag
}

// enterSyscall points a thread's registers at a syscall instruction, with arguments.
func enterSyscall(r *uapi.Regs, insn, nr uint64, a [6]uint64) {
	r.Rip, r.Rax, r.Orig_rax = insn, nr, ^uint64(0)
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	r.Eflags &^= trapFlag
}

func syscallResult(r *uapi.Regs) int64 { return int64(r.Rax) }
