//go:build amd64

package worldclock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// deadlineWays waits until an instant of the wall clock that is 200 ms away, by every way
// there is, and prints how long it took by the monotonic clock. The last one asks the
// clock after each wait, with one timespec, as careful programs do.
const deadlineWays = `
#define _GNU_SOURCE
#include <stdio.h>
#include <errno.h>
#include <time.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>
#include <stdint.h>
#include <poll.h>
#include <sys/timerfd.h>
static long mono(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
static struct timespec in(long ms) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += ms / 1000; t.tv_nsec += ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; } return t; }
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void *holder(void *p) { pthread_mutex_lock(&held); pause(); return p; }
int main(void) {
	struct timespec d; long a; setvbuf(stdout, 0, _IONBF, 0);
	sigset_t set; sigemptyset(&set); sigaddset(&set, SIGALRM); sigprocmask(SIG_BLOCK, &set, 0);
	sem_t s; sem_init(&s, 0, 0); d = in(200); a = mono(); sem_timedwait(&s, &d); printf("sem %ld\n", mono() - a);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	pthread_mutex_lock(&m); d = in(200); a = mono(); pthread_cond_timedwait(&c, &m, &d); printf("cond %ld\n", mono() - a);
	pthread_t p; pthread_create(&p, 0, holder, 0); usleep(50000);
	d = in(200); a = mono(); pthread_mutex_timedlock(&held, &d); printf("mutex %ld\n", mono() - a);
	d = in(200); a = mono(); clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &d, 0); printf("nanosleep %ld\n", mono() - a);
	int fd = timerfd_create(CLOCK_REALTIME, 0); struct itimerspec it = {{0, 0}, in(200)}; uint64_t n;
	a = mono(); timerfd_settime(fd, TFD_TIMER_ABSTIME, &it, 0); read(fd, &n, 8); printf("timerfd %ld\n", mono() - a);
	timer_t id;
	timer_create(CLOCK_REALTIME, 0, &id); it.it_value = in(200); a = mono(); timer_settime(id, TIMER_ABSTIME, &it, 0); sigwaitinfo(&set, 0); printf("timer %ld\n", mono() - a);
	timer_create(CLOCK_MONOTONIC, 0, &id); clock_gettime(CLOCK_MONOTONIC, &it.it_value); it.it_value.tv_nsec += 200000000;
	if (it.it_value.tv_nsec >= 1000000000) { it.it_value.tv_nsec -= 1000000000; it.it_value.tv_sec++; }
	a = mono(); timer_settime(id, TIMER_ABSTIME, &it, 0); sigwaitinfo(&set, 0); printf("monotonic %ld\n", mono() - a);
	pthread_mutexattr_t at; pthread_mutexattr_init(&at); pthread_mutexattr_setprotocol(&at, PTHREAD_PRIO_INHERIT);
	d = in(200); a = mono(); int waits = 0;
	do { pthread_cond_timedwait(&c, &m, &d); waits++; } while (mono() - a < 150 && waits < 1000);
	printf("loop %ld\n", waits < 1000 ? mono() - a : -1);
	return 0;
}`

// TestDeadlines: a deadline on a clock that stands still is as far away as it was meant to
// be, whether the world lies in the past or in the future.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	program := build(t, deadlineWays)
	for _, at := range []time.Time{t0, time.Now().AddDate(30, 0, 0)} {
		t.Run(at.Format("2006"), func(t *testing.T) {
			t.Parallel()
			c := newClock(t)
			c.set(at)
			got := c.run(program)
			for _, line := range strings.Split(got, "\n") {
				var way string
				var ms int
				if _, err := fmt.Sscan(line, &way, &ms); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if ms < 195 || ms > 30_000 {
					t.Errorf("%s took %d ms", way, ms)
				}
			}
			if n := strings.Count(got, "\n") + 1; n != 8 {
				t.Errorf("%d ways: %s", n, got)
			}
		})
	}
}
