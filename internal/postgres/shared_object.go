package postgres

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Places in the smallest shared object that a loader takes: one page that can be run, with
// the tables before the code, and one that can be written, as the loader writes addresses
// into the dynamic section.
const (
	soPage    = 0x1000
	soHeaders = 4 // of the program
	soSymbols = 64 + soHeaders*56
	soHash    = soSymbols + 2*24
	soNames   = soHash + 5*4
)

// sharedObject makes a library that has one function; see the System V ABI, chapters 4 and 5.
func sharedObject(name string, code []byte) ([]byte, error) {
	names := "\x00" + name + "\x00"
	at := uint64(soNames+len(names)+15) &^ 15
	dynamic := []elf.Dyn64{
		{Tag: int64(elf.DT_HASH), Val: soHash}, {Tag: int64(elf.DT_SYMTAB), Val: soSymbols}, {Tag: int64(elf.DT_STRTAB), Val: soNames},
		{Tag: int64(elf.DT_STRSZ), Val: uint64(len(names))}, {Tag: int64(elf.DT_SYMENT), Val: 24}, {Tag: int64(elf.DT_NULL)},
	}
	size := uint64(len(dynamic) * 16)
	load := func(kind elf.ProgType, flags elf.ProgFlag, at, size, align uint64) elf.Prog64 {
		return elf.Prog64{Type: uint32(kind), Flags: uint32(flags), Off: at, Vaddr: at, Paddr: at, Filesz: size, Memsz: size, Align: align}
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(randomMachine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: soHeaders, Shentsize: 64,
	}
	programs := [soHeaders]elf.Prog64{
		load(elf.PT_LOAD, elf.PF_R|elf.PF_X, 0, at+uint64(len(code)), soPage),
		load(elf.PT_LOAD, elf.PF_R|elf.PF_W, soPage, size, soPage),
		load(elf.PT_DYNAMIC, elf.PF_R|elf.PF_W, soPage, size, 8),
		load(elf.PT_GNU_STACK, elf.PF_R|elf.PF_W, 0, 0, 16),
	}
	symbols := [2]elf.Sym64{1: {Name: 1, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Value: at, Size: uint64(len(code))}}
	hash := [5]uint32{1, 2, 1, 0, 0} // one bucket of two symbols that begins with the second

	var b bytes.Buffer
	for _, part := range []any{header, programs, symbols, hash, []byte(names)} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	b.Write(make([]byte, int(at)-b.Len()))
	b.Write(code)
	b.Write(make([]byte, soPage-b.Len()))
	if err := binary.Write(&b, binary.LittleEndian, dynamic); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
