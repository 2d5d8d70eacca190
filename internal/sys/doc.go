// Package sys is the only door to raw kernel interfaces: bound child processes,
// file locks, pidfds, tree copies. What it offers is small and typed; the
// packages above it never call the kernel themselves.
package sys
