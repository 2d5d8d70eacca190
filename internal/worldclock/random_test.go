//go:build amd64

package worldclock_test

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRandomness: random bytes of all kinds are a function of the seed.
func TestRandomness(t *testing.T) {
	t.Parallel()
	fromGo := goBinary(t, `package main

import (
	"crypto/rand"
	"fmt"
)

func main() { fmt.Println(rand.Text(), rand.Text()) }
`)
	inC := build(t, `
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/random.h>
int main(void) {
	unsigned char b[40], *r = (unsigned char *)getauxval(AT_RANDOM);
	for (int i = 0; i < 16; i++) printf("%02x", r[i]);
	if (getrandom(b, sizeof b, 0) != sizeof b) return 1;
	for (unsigned i = 0; i < sizeof b; i++) printf("%02x", b[i]);
	return 0;
}`)
	for name, argv := range map[string][]string{
		"go": {fromGo}, "c": {inC},
		"python": {"/usr/bin/python3", "-c", "import os,uuid,random,secrets;print(os.urandom(8).hex(), uuid.uuid4(), random.random(), secrets.token_hex(), hash('a'), list({'a','b','c'}))"},
		"shell":  {"sh", "-c", "mktemp -u; " + inC + "; " + inC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(argv[0], "/usr") {
				if _, err := os.Stat(argv[0]); err != nil {
					t.Skip("unsupported: " + err.Error())
				}
			}
			outcome := map[uint64]string{}
			for _, seed := range []uint64{1, 2, 1, 2, 1} {
				c := newClock(t)
				c.source.Reseed("episode", seed)
				got := c.run(argv...)
				if want, ok := outcome[seed]; ok && got != want {
					t.Errorf("seed %d: %s, before %s", seed, got, want)
				}
				outcome[seed] = got
			}
			if outcome[1] == outcome[2] {
				t.Errorf("two seeds give one outcome: %s", outcome[1])
			}
		})
	}
}

// TestProcessesHaveStreamsOfTheirOwn: what one process draws does not move what another gets.
func TestProcessesHaveStreamsOfTheirOwn(t *testing.T) {
	t.Parallel()
	program := []string{"/usr/bin/python3", "-c", `
import os, sys, time
n = int(sys.argv[1])
r, w = os.pipe()
if os.fork() == 0:
    for i in range(n): os.urandom(16)
    os._exit(0)
os.wait()
print(os.urandom(8).hex())
`}
	if _, err := os.Stat(program[0]); err != nil {
		t.Skip("unsupported: " + err.Error())
	}
	one, many := newClock(t).run(append(program, "1")...), newClock(t).run(append(program, "50")...)
	if one != many {
		t.Errorf("%s and %s", one, many)
	}
}

// TestWorkersShareAStream: which of the workers that were there when an episode began serves a
// request does not tell in what it draws, and neither do processes that come later.
func TestWorkersShareAStream(t *testing.T) {
	t.Parallel()
	program := []string{"/usr/bin/python3", "-c", `
import os, sys
def worker():
    ask, told = os.pipe()
    answer, said = os.pipe()
    if os.fork() == 0:
        while os.read(ask, 1): os.write(said, os.urandom(8).hex().encode() + b'\n')
    return told, answer
crew = [worker() for _ in range(3)]
print('ready', flush=True)
for line in sys.stdin:
    if line == 'new\n': crew.append(worker()); os.urandom(4); at = -1
    else: at = int(line)
    os.write(crew[at][0], b'x')
    print(os.read(crew[at][1], 100).decode(), end='', flush=True)
`}
	if _, err := os.Stat(program[0]); err != nil {
		t.Skip("unsupported: " + err.Error())
	}
	play := func(asked ...string) (drawn []string) {
		c := newClock(t)
		p := c.start(program...)
		defer p.end()
		c.source.SetRoot("test", p.pid)
		_ = p.out.SetReadDeadline(time.Now().Add(15 * time.Second))
		in := bufio.NewScanner(p.out)
		next := func() string {
			if !in.Scan() {
				t.Fatalf("the program says no more: %v", in.Err())
			}
			return in.Text()
		}
		next()
		c.source.Reseed("episode", 1)
		for _, a := range asked {
			if _, err := io.WriteString(p.stdin, a+"\n"); err != nil {
				t.Fatal(err)
			}
			if got := next(); a != "new" {
				drawn = append(drawn, got)
			}
		}
		return drawn
	}
	first, other, later := play("0", "1", "1", "0"), play("2", "0", "2", "2"), play("1", "new", "2", "0", "1")
	if !slices.Equal(first, other) || !slices.Equal(first, later) {
		t.Errorf("drawn were %q, %q, %q; expected the same three times", first, other, later)
	}
	if slices.Sort(first); len(slices.Compact(first)) != 4 {
		t.Errorf("two draws are equal: %q", first)
	}
}
