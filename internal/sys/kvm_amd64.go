package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of the kernel's API for virtual machines (virt/kvm/api of the kernel's documentation).
const (
	kvmGetAPIVersion = 0xae00
	kvmCreateVM      = 0xae01
	kvmRunSize       = 0xae04
	kvmCreateVCPU    = 0xae41
	kvmSetTSSAddress = 0xae47
	kvmSetMemory     = 0x4020ae46
	kvmRun           = 0xae80
	kvmSetRegs       = 0x4090ae82
	kvmGetSregs      = 0x8138ae83
	kvmSetSregs      = 0x4138ae84

	kvmVersion = 12 // has been so since Linux 2.6.22
	kvmExitHLT = 5
)

type kvmMemory struct {
	slot, flags          uint32
	guest, size, address uint64
}

// ErrKVMSlow says that the device is there, and that what runs on it is played by the kernel.
var ErrKVMSlow = errors.New("a virtual processor did not get through a short loop: it is emulated, one instruction at a time")

// TryKVM has the processor run a loop as a kernel in a machine, up to limit. That the device can be
// opened says little: inside some virtual machines (kvm_pvm) a kernel that is not made for them is
// emulated by the host's, thousands of times slower than a processor and far slower than QEMU.
func TryKVM(device string, limit time.Duration) error {
	dev, err := os.OpenFile(device, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	if v, err := kvmCall(int(dev.Fd()), kvmGetAPIVersion, 0); err != nil || v != kvmVersion {
		return errors.Join(fmt.Errorf("%s is no door to virtual machines: version %d, want %d", device, v, kvmVersion), err)
	}
	vm, err := kvmCall(int(dev.Fd()), kvmCreateVM, 0)
	if err != nil {
		return fmt.Errorf("make a virtual machine: %w", err)
	}
	defer unix.Close(vm)
	p, err := newProbe(int(dev.Fd()), vm)
	if err != nil {
		return fmt.Errorf("make a virtual machine: %w", err)
	}
	return p.run(limit)
}

// probe is a machine with four pages of memory: one of code, three that map it.
type probe struct {
	vcpu           int
	memory, shared []byte
}

// probeCode counts down from twenty millions, which takes a processor some milliseconds, and halts.
var probeCode = []byte{0xb9, 0x00, 0x2d, 0x31, 0x01, 0xff, 0xc9, 0x75, 0xfc, 0xf4}

// kernelHalf is where kernels have themselves mapped.
const kernelHalf = 0xffffffff80000000

// Where the probe's tables are, and the bits of their entries.
const (
	probePage   = 0x1000
	probePML4   = 1 * probePage
	probePDPT   = 2 * probePage
	probePD     = 3 * probePage
	probeMemory = 4 * probePage

	present  = 1 | 2 // and writable
	hugePage = 0x80
)

func newProbe(dev, vm int) (*probe, error) {
	// Intel's processors without "unrestricted guest" need three pages of their own; others ignore it.
	_, _ = kvmCall(vm, kvmSetTSSAddress, 0xfffbd000)
	memory, err := unix.Mmap(-1, 0, probeMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	p := &probe{vcpu: -1, memory: memory}
	copy(memory, probeCode)
	for at, entry := range map[int]uint64{
		probePML4 + 8*(kernelHalf>>39&511): probePDPT | present, probePDPT + 8*(kernelHalf>>30&511): probePD | present,
		probePD: present | hugePage,
	} {
		binary.LittleEndian.PutUint64(memory[at:], entry)
	}
	region := kvmMemory{size: uint64(len(memory)), address: uint64(uintptr(unsafe.Pointer(&memory[0])))}
	if _, err := kvmCall(vm, kvmSetMemory, uintptr(unsafe.Pointer(&region))); err != nil {
		return nil, errors.Join(err, p.free())
	}
	if p.vcpu, err = kvmCall(vm, kvmCreateVCPU, 0); err != nil {
		p.vcpu = -1
		return nil, errors.Join(err, p.free())
	}
	size, err := kvmCall(dev, kvmRunSize, 0)
	if err == nil {
		p.shared, err = unix.Mmap(p.vcpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		err = p.place()
	}
	if err != nil {
		return nil, errors.Join(err, p.free())
	}
	return p, nil
}

// kvmSegment and kvmSregs are the kernel's structures of the same names.
type kvmSegment struct {
	base                                                    uint64
	limit                                                   uint32
	selector                                                uint16
	kind, present, dpl, db, s, l, g, avl, unusable, padding uint8
}

type kvmSregs struct {
	cs, ds, es, fs, gs, ss, tr, ldt     kvmSegment
	gdt, idt                            [2]uint64
	cr0, cr2, cr3, cr4, cr8, efer, apic uint64
	interrupts                          [4]uint64
}

// Bits of control registers that a kernel of 64 bits runs with.
const (
	protectedPaged = 1 | 1<<4 | 1<<31 // of CR0: PE, ET, PG
	extendedPages  = 1 << 5           // of CR4: PAE
	longMode       = 1<<8 | 1<<10     // of EFER: LME, LMA
)

// place has the processor begin at the code, with 64 bits, as a kernel.
func (p *probe) place() error {
	var r kvmSregs
	if _, err := kvmCall(p.vcpu, kvmGetSregs, uintptr(unsafe.Pointer(&r))); err != nil {
		return err
	}
	r.cs = kvmSegment{limit: ^uint32(0), selector: 8, kind: 11, present: 1, s: 1, l: 1, g: 1}
	data := kvmSegment{limit: ^uint32(0), selector: 16, kind: 3, present: 1, db: 1, s: 1, g: 1}
	r.ds, r.es, r.fs, r.gs, r.ss = data, data, data, data, data
	r.cr0, r.cr3, r.cr4, r.efer = protectedPaged, probePML4, extendedPages, longMode
	if _, err := kvmCall(p.vcpu, kvmSetSregs, uintptr(unsafe.Pointer(&r))); err != nil {
		return err
	}
	var regs [18]uint64
	regs[16], regs[17] = kernelHalf, 2 // rip, and rflags, whose second bit is always set
	_, err := kvmCall(p.vcpu, kvmSetRegs, uintptr(unsafe.Pointer(&regs)))
	return err
}

// run is up to limit. A machine that does not come back from there, not even when it is called,
// is left alone: nothing of it may be freed.
func (p *probe) run(limit time.Duration) error {
	thread, done := make(chan int, 1), make(chan error, 1)
	go onThreadOfItsOwn(func() {
		thread <- unix.Gettid()
		_, err := kvmCall(p.vcpu, kvmRun, 0)
		done <- err
	})
	tid := <-thread
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return errors.Join(p.outcome(err), p.free())
	case <-timer.C:
	}
	p.shared[immediateExit] = 1
	_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // which Go programs take for nothing
	timer.Reset(limit)
	select {
	case _ = <-done:
		return errors.Join(ErrKVMSlow, p.free())
	case <-timer.C:
		return ErrKVMSlow
	}
}

// Places in what kernel and program share of a virtual processor (struct kvm_run).
const (
	immediateExit = 1
	exitReason    = 8
)

func (p *probe) outcome(err error) error {
	switch reason := p.shared[exitReason]; {
	case err != nil:
		return fmt.Errorf("run a virtual processor: %w", err)
	case reason != kvmExitHLT:
		return fmt.Errorf("run a virtual processor: it stopped for reason %d, want %d", reason, kvmExitHLT)
	}
	return nil
}

func (p *probe) free() error {
	var errs []error
	if p.shared != nil {
		errs = append(errs, unix.Munmap(p.shared))
	}
	if p.vcpu >= 0 {
		errs = append(errs, unix.Close(p.vcpu))
	}
	return errors.Join(append(errs, unix.Munmap(p.memory))...)
}

// kvmCall is an ioctl. A signal that the runtime sends to a thread of its own ends it early.
func kvmCall(fd int, request, arg uintptr) (int, error) {
	for {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, arg)
		switch {
		case errno == unix.EINTR && request != kvmRun:
		case errno != 0:
			return 0, errno
		default:
			return int(n), nil
		}
	}
}
