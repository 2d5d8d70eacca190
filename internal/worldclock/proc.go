package worldclock

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// groupOf is the process that a thread belongs to.
func groupOf(tid int) (int, error) { return field(tid, "Tgid:") }

// field reads a number from /proc/TID/status.
func field(tid int, name string) (int, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("look at thread %d: %w", tid, err)
	}
	_, rest, ok := bytes.Cut(text, []byte("\n"+name))
	if !ok {
		return 0, fmt.Errorf("look at thread %d: it has no %s", tid, name)
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil {
		return 0, fmt.Errorf("look at thread %d: %w", tid, err)
	}
	return n, nil
}

// realtimeTimerfd says whether a descriptor is a timerfd on the wall clock.
func realtimeTimerfd(tid, fd int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", tid, fd))
	return err == nil && bytes.Contains(text, []byte("\nclockid: 0\n"))
}

// realtimeTimer says whether a POSIX timer is on the wall clock.
func realtimeTimer(tid int, id int32) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timers", tid))
	if err != nil {
		return false
	}
	found := false
	for _, line := range bytes.Split(text, []byte("\n")) {
		if n, ok := bytes.CutPrefix(line, []byte("ID: ")); ok {
			found = string(n) == strconv.Itoa(int(id))
		}
		if n, ok := bytes.CutPrefix(line, []byte("ClockID: ")); ok && found {
			return string(n) == "0"
		}
	}
	return false
}
