// Package rewind puts a running tree of processes back to an earlier state, in place and
// within milliseconds. Nothing is restarted: the same processes, threads and open files
// go on from where they were when a snapshot was taken, as if nothing had happened since.
// It knows nothing of what the programs do.
//
// # Usage
//
//	tree, err := rewind.Attach(rewind.Options{Roots: []int{pid}, Dirs: []string{"/run/world"}})
//	base, err := tree.Snapshot(ctx)          // waits until the tree is quiet
//	...                                      // let it work
//	report, err := tree.Rewind(ctx, base)    // and nothing of that has happened
//
// [Tree.Checkpoint] saves a further state as what has changed since another, so that a
// tree of states exists of which any can be gone back to. [Tree.Verify] is a rewind with
// a proof: everything is compared with the snapshot before the programs go on.
//
// # What is rewound
//
// Registers and vector state of all threads; threads and processes that came or went;
// memory, private and shared (anonymous, memfd, System V, files on a tmpfs), its areas,
// protections and the break; descriptors, their offsets and flags, epoll sets, eventfd,
// timerfd and signalfd; signal handlers, masks, pending signals, interval and POSIX
// timers; working folder and umask; content, names, owners, modes and times of the files
// in Options.Dirs; bytes on their way in pipes and sockets.
//
// A connection to something outside the tree stays as it is while it is open. If the
// program closed it in the meantime, its peer has seen that; after the rewind the
// program finds it at its end, as if the peer had hung up. The bytes that the peer had
// sent or received are its own affair: rewind between requests.
//
// # What is not
//
// Time goes on: timers get back what they had left, clocks do not. Files outside Dirs,
// mounts, namespaces, credentials, resource limits, file locks, protection keys of areas
// that had to be mapped again, removed inotify watches. Stores through a mapping that is
// made and removed within one episode of a file that nobody had mapped at the snapshot.
//
// # Refusals and failures
//
// What cannot be rewound is refused by Snapshot with a [RefusedError] before anything is
// done. A rewind that cannot be done answers a [NeedsRespawnError], which says why and
// whether the tree is untouched (it goes on) or was ended: a tree is never handed back
// half rewound. A thread that does not stop is noticed within Options.StopTimeout.
//
// # Requirements
//
// Linux with PAGEMAP_SCAN and asynchronous write protection (6.7 or later), the right to
// ptrace (root, or CAP_SYS_PTRACE with CAP_SYS_ADMIN), amd64. [Probe] finds out by
// trying. Let the tree have a pid namespace of its own: numbers of processes and threads
// must be free when they are needed again.
//
// # Living with it
//
// One thread of this program traces the tree while it is stopped, and another one helps it
// with what needs no tracing; in between nothing is attached, and the only cost to the
// programs is a page fault at the first write to each page. From the first stop on this
// program is sent no SIGCHLD for children that stop (SA_NOCLDSTOP), or each thread would
// have it sent one; ends are told as before.
//
// The caller may be the parent of the tree or unrelated to it. If it is the parent,
// a wait for any child would take the stops of traced threads, and so would a blocked
// os.Process.Wait for a root: hold Options.ReapLock around waits that do not block, and
// learn from a pidfd when one is due. Ends that are noticed here are told to Options.OnExit.
//
// Programs get two pieces of memory mapped at addresses that the kernel gives to nobody
// (their own saved pages, read-only, and a page of code with its arguments) and a
// descriptor from 512 on. The generators of random numbers inside programs are rewound
// like everything else and will repeat themselves.
package rewind
