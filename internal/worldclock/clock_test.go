//go:build amd64

package worldclock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// askAll prints what every way to ask for the time answers.
const askAll = `
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/time.h>
#include <sys/syscall.h>
int main(void) {
	struct timespec t; struct timeval v; time_t s;
	clock_gettime(CLOCK_REALTIME, &t); printf("realtime %ld.%09ld\n", (long)t.tv_sec, t.tv_nsec);
	clock_gettime(CLOCK_REALTIME_COARSE, &t); printf("coarse %ld.%09ld\n", (long)t.tv_sec, t.tv_nsec);
	clock_gettime(CLOCK_TAI, &t); printf("tai %ld.%09ld\n", (long)t.tv_sec - 37, t.tv_nsec);
	gettimeofday(&v, 0); printf("gettimeofday %ld.%06ld\n", (long)v.tv_sec, (long)v.tv_usec);
	s = time(0); printf("time %ld\n", (long)s);
	time(&s); printf("time %ld\n", (long)s);
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t); printf("call %ld.%09ld\n", (long)t.tv_sec, t.tv_nsec);
	syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &t); printf("call %ld.%09ld\n", (long)t.tv_sec, t.tv_nsec);
	syscall(SYS_clock_gettime, CLOCK_TAI, &t); printf("call %ld.%09ld\n", (long)t.tv_sec - 37, t.tv_nsec);
	syscall(SYS_gettimeofday, &v, 0); printf("call %ld.%06ld\n", (long)v.tv_sec, (long)v.tv_usec);
	printf("call %ld\n", (long)syscall(SYS_time, 0));
	struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a); usleep(20000); clock_gettime(CLOCK_MONOTONIC, &b);
	long ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	printf("monotonic %s\n", ms >= 20 && ms < 20000 ? "goes" : "stands");
	return 0;
}`

func TestEveryWayToAsk(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"-dynamic", "-static"} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			c := newClock(t)
			got := c.run(build(t, askAll, strings.ReplaceAll(link, "-dynamic", "-O2")))
			for _, line := range strings.Split(got, "\n") {
				name, at, _ := strings.Cut(line, " ")
				want := fmt.Sprintf("%d.%09d", t0.Unix(), t0.Nanosecond())
				if name == "monotonic" {
					if at != "goes" {
						t.Error(line)
					}
				} else if !strings.HasPrefix(want, at) {
					t.Errorf("%s, expected %s", line, want)
				}
			}
			if n := strings.Count(got, "\n"); n != 11 {
				t.Errorf("%d lines: %s", n+1, got)
			}
		})
	}
}

const goProgram = `package main

import (
	"fmt"
	"os/exec"
	"time"
)

func main() {
	out, err := exec.Command("date", "-u", "+%s").Output()
	fmt.Println(time.Now().UnixNano(), string(out[:len(out)-1]), err)
	a := time.Now()
	time.Sleep(5 * time.Millisecond)
	fmt.Println(time.Since(a) >= 5*time.Millisecond)
}
`

func goBinary(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-o", out, filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	nano, sec, ms := fmt.Sprint(t0.UnixNano()), fmt.Sprint(t0.Unix()), fmt.Sprint(t0.UnixMilli())
	for _, l := range []struct {
		name string
		argv []string
		want string
	}{
		{"go", []string{goBinary(t, goProgram)}, nano + " " + sec + " <nil>\ntrue"},
		{"python", []string{"/usr/bin/python3", "-c", "import time,datetime;print(time.time_ns(), datetime.datetime.now(datetime.timezone.utc).isoformat())"}, nano + " 2023-11-14T22:13:20.123456+00:00"},
		{"perl", []string{"perl", "-e", "print time"}, sec},
		{"node", []string{"node", "-e", "console.log(Date.now()); setTimeout(() => console.log(new Date().toISOString()), 10)"}, ms + "\n2023-11-14T22:13:20.123Z"},
		{"shell", []string{"sh", "-c", "date -u +%s; exec env -i /bin/sh -c 'exec date -u +%s.%N'"}, sec + "\n" + sec + ".123456789"},
		{"pipes", []string{"sh", "-c", "for i in 1 2 3 4 5 6; do date +%s & done | sort -u; wait"}, sec},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(l.argv[0]); err != nil {
				t.Skip("unsupported: " + err.Error())
			}
			if got := newClock(t).run(l.argv...); got != l.want {
				t.Errorf("%s, expected %s", got, l.want)
			}
		})
	}
}

// TestExec: a program that another one becomes, from any thread, is under the clock; an
// execve that fails leaves the caller as it was.
func TestExec(t *testing.T) {
	t.Parallel()
	program := build(t, `
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
#include <sys/syscall.h>
static char **args;
static void *other(void *p) { for (;;) usleep(1000); return p; }
static void *becomes(void *p) { execv(args[0], args); perror("execv"); exit(1); return p; }
int main(int n, char **v) {
	int left = atoi(v[1]);
	struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
	printf("%ld %d\n", (long)t.tv_sec, left); fflush(stdout);
	execl("/no/such/program", "x", NULL);
	clock_gettime(CLOCK_REALTIME, &t);
	printf("%ld\n", (long)t.tv_sec); fflush(stdout);
	if (!left) return 0;
	sprintf(v[1], "%d", left - 1); args = v;
	pthread_t p; for (int i = 0; i < 3; i++) pthread_create(&p, 0, other, 0);
	if (left & 1) becomes(0);
	pthread_create(&p, 0, becomes, 0);
	for (;;) pause();
}`)
	got := newClock(t).run(program, "9")
	var want []string
	for i := 9; i >= 0; i-- {
		want = append(want, fmt.Sprintf("%d %d\n%d", t0.Unix(), i, t0.Unix()))
	}
	if got != strings.Join(want, "\n") {
		t.Errorf("got %s", got)
	}
}

// TestSetIsSeen: a running program sees a new instant at its next look.
func TestSetIsSeen(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	p := c.start("/usr/bin/python3", "-u", "-c", "import sys,time\nfor line in sys.stdin: print(time.time_ns())")
	out := bufio.NewReader(p.out)
	for i := range 50 {
		at := t0.Add(time.Duration(i*i) * time.Minute)
		if i%2 == 1 {
			at = t0.Add(-time.Duration(i) * time.Hour)
		}
		c.set(at)
		if _, err := p.stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		got, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if got = strings.TrimSpace(got); got != fmt.Sprint(at.UnixNano()) {
			t.Fatalf("%s, expected %d", got, at.UnixNano())
		}
	}
}
