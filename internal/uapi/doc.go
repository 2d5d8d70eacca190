// Package uapi is the kernel interface of package rewind: constants, structures and
// typed calls for ptrace, PAGEMAP_SCAN, userfaultfd, pidfd, kcmp, fanotify and the
// small calls around them. It holds no policy.
//
// golang.org/x/sys/unix does not have the newer half of these interfaces; the older
// half is offered here too, so that the package above needs one door only. Structures
// are checked against the kernel's sizes in the tests. Pointers are taken in the files
// whose names end in _unsafe.go and nowhere else.
package uapi
