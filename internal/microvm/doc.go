// Package microvm runs a world's services in a machine of their own, with a kernel, two read-only disks
// and all else in memory. What runs it is an [Engine]: QEMU, which emulates the processor or uses KVM,
// or Firecracker.
//
//	t, err := microvm.BuildTemplate(ctx, cache, spec, progress)  // booted once, kept
//	m, err := microvm.Start(ctx, box, t, lost)                   // a copy, within a tenth of a second
//
// A template is a machine that was stopped when its services were ready: its memory and the
// state of its devices. Each machine starts as a copy of it and shares what it does not write.
//
// An emulated machine, all of whose state is in its process, can be put back like any other
// process. Package rewind does that; the machine must be stopped ([Machine.Stop]) while it is
// saved, since only then does it hold its clock in memory, and it is stopped when it has been
// put back: [Machine.Resumed] lets it go on. Of machines on KVM a part lies in the host's kernel:
// they are replaced by another copy.
package microvm
