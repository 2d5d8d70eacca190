// Package sandbox runs a world's processes where they can reach nothing but each other.
//
// Start re-executes this program as the keeper: PID 1 of new pid, mount, network, IPC and
// UTS namespaces, on a root file system in memory that shows the host's programs
// read-only. The keeper starts processes as unprivileged users, reaps them and reports
// their ends over a control socket. Two rules make sure that nothing is left behind: when
// the keeper dies the kernel ends every process of the namespace and drops its file
// systems, and the keeper dies when the control socket closes, that is when its owner
// does. No host folder, port or interface is involved.
//
// A program that uses the package calls MaybeKeeper first thing in main (a test binary
// in TestMain).
package sandbox
