//go:build amd64

package worldclock_test

import (
	"os"
	"strings"
	"testing"
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
