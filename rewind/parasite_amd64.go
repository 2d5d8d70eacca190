package rewind

import "github.com/pommelgym/pommel/internal/uapi"

// The machine code that runs inside a traced process. It uses no stack, so it runs on
// any thread at any point, and ends in a breakpoint that hands control back.
//
// callLoop makes r13 system calls from an array of {nr, six arguments, result} at r12:
//
//	loop: test r13, r13
//	      jz   done
//	      mov  rax, [r12]
//	      mov  rdi, [r12+8]
//	      mov  rsi, [r12+16]
//	      mov  rdx, [r12+24]
//	      mov  r10, [r12+32]
//	      mov  r8,  [r12+40]
//	      mov  r9,  [r12+48]
//	      syscall
//	      mov  [r12+56], rax
//	      add  r12, 64
//	      dec  r13
//	      jmp  loop
//	done: int3
//
// copyLoop works off r13 entries of {destination, source or 0, length} at r12: it
// copies, or clears where there is no source.
//
//	      cld
//	loop: test r13, r13
//	      jz   done
//	      mov  rdi, [r12]
//	      mov  rsi, [r12+8]
//	      mov  rcx, [r12+16]
//	      test rsi, rsi
//	      jz   zero
//	      rep movsb
//	      jmp  next
//	zero: xor  eax, eax
//	      rep stosb
//	next: add  r12, 24
//	      dec  r13
//	      jmp  loop
//	done: int3
var (
	callLoop = [...]byte{
		0x4d, 0x85, 0xed, // 00 test r13,r13
		0x74, 0x33, // 03 jz 0x38
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
		0x90, // 37 nop
		0xcc, // 38 int3
	}
	copyLoop = [...]byte{
		0xfc,             // 00 cld
		0x4d, 0x85, 0xed, // 01 test r13,r13
		0x74, 0x26, // 04 jz 0x2c
		0x49, 0x8b, 0x3c, 0x24, // 06
		0x49, 0x8b, 0x74, 0x24, 0x08, // 0a
		0x49, 0x8b, 0x4c, 0x24, 0x10, // 0f
		0x48, 0x85, 0xf6, // 14 test rsi,rsi
		0x74, 0x04, // 17 jz 0x1d
		0xf3, 0xa4, // 19 rep movsb
		0xeb, 0x04, // 1b jmp 0x21
		0x31, 0xc0, // 1d xor eax,eax
		0xf3, 0xaa, // 1f rep stosb
		0x49, 0x83, 0xc4, 0x18, // 21 add r12,24
		0x49, 0xff, 0xcd, // 25 dec r13
		0xeb, 0xd7, // 28 jmp 0x01
		0x90, 0x90, // 2a nop
		0xcc, // 2c int3
	}
)

const (
	callSyscallAt = 0x27 // the syscall instruction in callLoop
	copyLoopAt    = 256  // where copyLoop lies in the code page
)

// syscallInsn is the instruction that makes a system call.
var syscallInsn = []byte{0x0f, 0x05}

const trapFlag = 0x100

// enterLoop points a thread's registers at one of the loops.
func enterLoop(r *uapi.Regs, code, list uint64, n int) {
	r.Rip, r.R12, r.R13 = code, list, uint64(n)
	r.Rax, r.Orig_rax = 0, ^uint64(0)
	r.Eflags &^= trapFlag
}

// enterSyscall points a thread's registers at a syscall instruction, with arguments.
func enterSyscall(r *uapi.Regs, insn, nr uint64, a [6]uint64) {
	r.Rip, r.Rax, r.Orig_rax = insn, nr, ^uint64(0)
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	r.Eflags &^= trapFlag
}

func syscallResult(r *uapi.Regs) int64 { return int64(r.Rax) }
