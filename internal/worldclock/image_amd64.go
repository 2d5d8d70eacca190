package worldclock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The functions of the copy. They use no stack and only registers that a C function may
// change, and stand in the place of what they replace, which is longer. The word at
// wordAt is seconds<<30 | nanoseconds.

// asm collects machine code.
type asm struct{ bytes.Buffer }

func (a *asm) code(b ...byte) { a.Write(b) }

func (a *asm) quad(v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	a.Write(b[:])
}

// loadWord puts the seconds into rdx and the nanoseconds into rax.
func (a *asm) loadWord(wordAt uint64) {
	a.code(0x48, 0xb8) // mov rax, wordAt
	a.quad(wordAt)
	a.code(0x48, 0x8b, 0x00)             // mov rax, [rax]
	a.code(0x48, 0x89, 0xc2)             // mov rdx, rax
	a.code(0x48, 0xc1, 0xea, 30)         // shr rdx, 30
	a.code(0x25, 0xff, 0xff, 0xff, 0x3f) // and eax, 1<<30-1
}

// jump goes to an address that may be anywhere.
func (a *asm) jump(to uint64) {
	a.code(0xff, 0x25, 0, 0, 0, 0) // jmp [rip+0]
	a.quad(to)
}

// clockGettime serves CLOCK_REALTIME (0), its coarse form (5) and CLOCK_TAI (11, which is
// 37 seconds ahead); the original serves all others.
func clockGettime(wordAt, original uint64) []byte {
	var a asm
	a.code(0x85, 0xff)       // test edi, edi
	a.code(0x74, 0x18)       // je realtime
	a.code(0x83, 0xff, 0x05) // cmp edi, 5
	a.code(0x74, 0x13)       // je realtime
	a.code(0x83, 0xff, 0x0b) // cmp edi, 11
	a.code(0x74, 0x33)       // je tai
	a.jump(original)
	// realtime:
	a.loadWord(wordAt)
	a.code(0x48, 0x89, 0x16)       // mov [rsi], rdx
	a.code(0x48, 0x89, 0x46, 0x08) // mov [rsi+8], rax
	a.code(0x31, 0xc0)             // xor eax, eax
	a.code(0xc3)                   // ret
	a.code(0xcc, 0xcc)
	// tai:
	a.loadWord(wordAt)
	a.code(0x48, 0x83, 0xc2, 37)   // add rdx, 37
	a.code(0x48, 0x89, 0x16)       // mov [rsi], rdx
	a.code(0x48, 0x89, 0x46, 0x08) // mov [rsi+8], rax
	a.code(0x31, 0xc0)             // xor eax, eax
	a.code(0xc3)                   // ret
	return a.Bytes()
}

// getTimeOfDay divides by 1000 with a multiplication: n*0x10624dd3>>38 for n below 2^30.
func getTimeOfDay(wordAt, _ uint64) []byte {
	var a asm
	a.code(0x48, 0x85, 0xff) // test rdi, rdi
	a.code(0x74, 0x2d)       // jz zone
	a.loadWord(wordAt)
	a.code(0x48, 0x69, 0xc0, 0xd3, 0x4d, 0x62, 0x10) // imul rax, rax, 0x10624dd3
	a.code(0x48, 0xc1, 0xe8, 38)                     // shr rax, 38
	a.code(0x48, 0x89, 0x17)                         // mov [rdi], rdx
	a.code(0x48, 0x89, 0x47, 0x08)                   // mov [rdi+8], rax
	a.code(0x90, 0x90)
	// zone:
	a.code(0x48, 0x85, 0xf6)                // test rsi, rsi
	a.code(0x74, 0x07)                      // jz done
	a.code(0x48, 0xc7, 0x06, 0x00, 0, 0, 0) // mov qword [rsi], 0
	a.code(0x31, 0xc0)                      // done: xor eax, eax
	a.code(0xc3)                            // ret
	return a.Bytes()
}

func timeInSeconds(wordAt, _ uint64) []byte {
	var a asm
	a.code(0x48, 0xb8) // mov rax, wordAt
	a.quad(wordAt)
	a.code(0x48, 0x8b, 0x00)     // mov rax, [rax]
	a.code(0x48, 0xc1, 0xe8, 30) // shr rax, 30
	a.code(0x48, 0x85, 0xff)     // test rdi, rdi
	a.code(0x74, 0x03)           // jz done
	a.code(0x48, 0x89, 0x07)     // mov [rdi], rax
	a.code(0xc3)                 // done: ret
	return a.Bytes()
}

// noRandom answers ENOSYS, whereupon C libraries and Go make the system call.
func noRandom(_, _ uint64) []byte {
	return []byte{
		0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, // mov rax, -38
		0xc3, // ret
	}
}

// elsewhere hands over to the original: the code addresses data relative to its place.
func elsewhere(_, original uint64) []byte {
	var a asm
	a.jump(original)
	return a.Bytes()
}

var replacements = map[string]func(wordAt, original uint64) []byte{
	"clock_gettime": clockGettime, "gettimeofday": getTimeOfDay, "time": timeInSeconds, "getrandom": noRandom,
}

// copyImage makes of a vDSO that is mapped at base the image that serves in its place.
func copyImage(vdso []byte, base, wordAt uint64) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(vdso))
	if err != nil {
		return nil, fmt.Errorf("read vDSO: %w", err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("read vDSO: %w", err)
	}
	out := bytes.Clone(vdso)
	seen := map[string]bool{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF {
			continue
		}
		name := strings.TrimPrefix(s.Name, "__vdso_")
		make := replacements[name]
		if make == nil {
			make = elsewhere
		}
		code := make(wordAt, base+s.Value)
		if uint64(len(code)) > s.Size || s.Value+s.Size > uint64(len(out)) {
			return nil, fmt.Errorf("the kernel's vDSO is not like those that are known: %s has %d bytes, %d are needed", s.Name, s.Size, len(code))
		}
		copy(out[s.Value:], code)
		seen[name] = true
	}
	if !seen["clock_gettime"] || !seen["gettimeofday"] || !seen["time"] {
		return nil, errors.New("the kernel's vDSO is not like those that are known: it lacks a clock function")
	}
	return out, nil
}

// syscallIn finds an instruction that makes a system call.
func syscallIn(vdso []byte) (uint64, bool) {
	const header = 0x400 // no code before it
	if len(vdso) < header {
		return 0, false
	}
	k := bytes.Index(vdso[header:], []byte{0x0f, 0x05})
	return uint64(header + k), k >= 0
}
