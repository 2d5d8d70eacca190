package rewind

import "time"

// Report says what a rewind did and where its time went.
type Report struct {
	Total time.Duration
	Split Split

	Processes, IdleProcesses      int // in the tree; of those, the ones that had not run
	Threads, Areas                int
	PagesWritten, PagesZeroed     int // private pages written back; pages that did not exist, overwritten with zeroes
	PagesDropped, PagesShared     int // pages given back to the kernel; pages of shared memory written back
	PagesTracked                  int // of the pages written back or cleared, those whose first write since the last rewind has surely cost a page fault
	AreasChanged                  int
	DescriptorsClosed             int
	DescriptorsRestored           int
	ConnectionsEnded              int // connections that were gone: the program sees the end of the stream
	ThreadsEnded, ThreadsCreated  int
	ProcessesEnded, ProcessesMade int
	SignalsDropped                int
	FilesTouched, FileBlocks      int
	ObjectsCompared               int // shared objects that were compared completely
	Injected                      int // system calls made inside the tree
}

// Split is the time of each part. Parts that ran at the same time are added up, so their sum may exceed the total.
type Split struct {
	Stop, Processes, Threads, Descriptors, Areas, Scan, Write, Rearm, Files, Drain, Resume time.Duration
}

// Verification is the outcome of comparing a rewound tree with its snapshot, byte for byte.
type Verification struct {
	Pages       int      // private and shared pages that were compared
	Files       int      // files that were compared
	Descriptors int      // descriptors that were compared
	Threads     int      // threads whose registers were compared
	Differences []string // one line each; at most 100 are kept
	Count       int      // how many differences there were
}

// manyDifferences is how many are described.
const manyDifferences = 100

// OK says that nothing differed.
func (v *Verification) OK() bool { return v.Count == 0 }

// join adds what was found in a part.
func (v *Verification) join(part *Verification) {
	v.Pages += part.Pages
	room := manyDifferences - len(v.Differences)
	v.Differences = append(v.Differences, part.Differences[:min(len(part.Differences), room)]...)
	v.Count += part.Count
}

func (v *Verification) add(line string) {
	v.Count++
	if len(v.Differences) < manyDifferences {
		v.Differences = append(v.Differences, line)
	}
}
