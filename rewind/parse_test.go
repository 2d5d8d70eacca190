package rewind

import (
	"os"
	"testing"
)

// TestParseMaps reads this process's own maps and lines with hard spots.
func TestParseMaps(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	areas := parseMaps(b, nil)
	if len(areas) < 10 {
		t.Fatalf("%d areas", len(areas))
	}
	for _, a := range areas {
		if a.start < last || a.end <= a.start || a.start%pageSize != 0 {
			t.Errorf("area %#x-%#x after %#x", a.start, a.end, last)
		}
		last = a.end
	}
	got := parseMaps([]byte("7f00-8f00 rw-s 00001000 fe:0a 12345      /dev/shm/a b (deleted)\nnonsense\n9000-a000 ---p 00000000 00:00 0 \n"), nil)
	if len(got) != 2 || got[0].name != "/dev/shm/a b (deleted)" || !got[0].shared || got[0].prot != protRead|protWrite ||
		got[0].off != 0x1000 || got[0].dev != 0xfe<<20|0x0a || got[0].ino != 12345 || got[1].prot != 0 || got[1].name != "" {
		t.Errorf("got %+v", got)
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add([]byte("7f00-8f00 rw-s 00001000 fe:0a 12345      /x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, a := range parseMaps(b, nil) {
			if a.end <= a.start {
				t.Fatalf("empty area from %q", b)
			}
		}
	})
}

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte("pos:\t0\ntfd:        5 events:       19 data:                5  pos:0 ino:3b sdev:8\n"))
	f.Add([]byte("ID: 0\nsignal: 14/00007ffe\nnotify: signal/tid.77\nClockID: 1\n"))
	f.Add([]byte("inotify wd:1 ino:5 sdev:8 mask:fff\nit_value: (1, 2)\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		parseEpoll(b)
		parseTimers(b)
		watches(b)
		d := descriptor{kind: kindTimerfd, info: b}
		d.parseInfo()
	})
}

func TestParseTimers(t *testing.T) {
	t.Parallel()
	got := parseTimers([]byte("ID: 3\nsignal: 14/00000000000000ff\nnotify: signal/pid.77\nClockID: 1\nID: 4\nsignal: 34/0000000000000001\nnotify: signal/tid.78\nClockID: -6\n"))
	if len(got) != 2 || got[0].id != 3 || got[0].event.Signo != 14 || got[0].event.Value != 0xff || got[0].event.Notify != 0 ||
		got[1].clock != -6 || got[1].event.Notify != 4 || got[1].event.Tid != 78 {
		t.Errorf("got %+v", got)
	}
}

func TestParseEpoll(t *testing.T) {
	t.Parallel()
	got := parseEpoll([]byte("pos:\t0\nflags:\t02\ntfd:       15 events: 80000019 data: ffff00000000000f  pos:0 ino:3b sdev:8\n"))
	want := epollItem{fd: 15, events: 0x80000019, data: 0xffff00000000000f, ino: 0x3b}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDiffRuns holds the difference of two states against one made page by page.
func TestDiffRuns(t *testing.T) {
	t.Parallel()
	a := []run{{0x1000, 3, 10}, {0x8000, 2, 20}, {0xf000, 1, 30}}
	b := []run{{0x1000, 1, 10}, {0x2000, 1, 40}, {0x3000, 1, 12}, {0x9000, 1, 21}, {0xf000, 2, 30}}
	at := func(runs []run, p uint64) int {
		for _, r := range runs {
			if r.addr <= p && p < r.end() {
				return int(r.first) + int((p-r.addr)>>pageShift)
			}
		}
		return -1
	}
	differs := map[uint64]bool{}
	for _, s := range diffRuns(a, b, nil) {
		for p := s.start; p < s.end; p += pageSize {
			differs[p] = true
		}
	}
	for p := uint64(0); p < 0x20000; p += pageSize {
		if want := at(a, p) != at(b, p); differs[p] != want {
			t.Errorf("page %#x: differs %v, want %v", p, differs[p], want)
		}
	}
}

// TestArena: pages come back when the last snapshot that uses them is gone.
func TestArena(t *testing.T) {
	t.Parallel()
	a, err := newArena("test")
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	r, err := a.alloc(10)
	if err != nil || r.n != 10 {
		t.Fatal(r, err)
	}
	for i := range a.bytes(r) {
		a.bytes(r)[i] = 7
	}
	a.hold(pageRun{r.first + 2, 3}, 1) // a second snapshot shares three of them
	a.release(r)
	if a.page(r.first + 3)[0] != 7 {
		t.Fatal("a page that is in use was given back")
	}
	if a.page(r.first)[0] != 0 {
		t.Fatal("a page that nobody uses was kept")
	}
	a.release(pageRun{r.first + 2, 3})
	for got := uint32(0); got < 10; {
		n, err := a.alloc(10)
		if err != nil {
			t.Fatal(err)
		}
		if n.first >= 10 {
			t.Fatalf("freed pages are not used again: %+v", n)
		}
		got += n.n
	}
}
