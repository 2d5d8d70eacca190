// Threads that end and are joined, thread-local counters, condition variables, two kinds
// of timers, a signal handler: the parts of a process that hang together most.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { N = 8 };
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int order[N], done[N], alarms, usr;
static long sum;
static pthread_t th[N];
static __thread int id;
static __thread long calls;
static char *area;

static void on_alarm(int s) { (void)s; alarms++; }
static void on_usr(int s) { (void)s; usr++; }

static void *worker(void *arg) {
  id = (int)(long)arg;
  char name[16];
  snprintf(name, sizeof name, "worker%d", id);
  prctl(PR_SET_NAME, name);
  pthread_mutex_lock(&mu);
  for (;;) {
    while (!order[id]) pthread_cond_wait(&wake, &mu);
    int what = order[id];
    order[id] = 0;
    if (what == 1) sum += ++calls * 1000 + id;
    done[id] = 1;
    pthread_cond_broadcast(&answered);
    if (what == 2) break;
  }
  pthread_mutex_unlock(&mu);
  return (void *)(long)(id + 100);
}

static void tell(int i, int what) {
  pthread_mutex_lock(&mu);
  done[i] = 0;
  order[i] = what;
  pthread_cond_broadcast(&wake);
  while (!done[i]) pthread_cond_wait(&answered, &mu);
  pthread_mutex_unlock(&mu);
}

static void arm(void) {
  struct itimerval it = {{0, 4000}, {0, 4000}};
  setitimer(ITIMER_REAL, &it, 0);
  timer_t t;
  struct sigevent ev;
  memset(&ev, 0, sizeof ev);
  ev.sigev_notify = SIGEV_SIGNAL;
  ev.sigev_signo = SIGALRM;
  timer_create(CLOCK_MONOTONIC, &ev, &t);
  struct itimerspec ts = {{0, 3000000}, {0, 3000000}};
  timer_settime(t, 0, &ts, 0);
}

static void churn(void) {
  munmap(area + 4 * 4096, 4 * 4096);                       // a hole
  mprotect(area + 16 * 4096, 4096, PROT_READ);             // a split
  madvise(area + 20 * 4096, 4 * 4096, MADV_DONTNEED);      // pages given back
  void *p = mmap(area + 32 * 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  memset(p, 'x', 4096);                                    // mapped anew in place
  for (int i = 0; i < 10; i++) memset(mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1 << 16);
  memset(sbrk(1 << 20), 7, 1 << 20);
  signal(SIGUSR1, SIG_IGN);
}

static long checksum(void) {
  long s = 0;
  for (int i = 0; i < 64; i++)
    if (i < 4 || i >= 8) s = s * 31 + area[i * 4096 + i]; // churn leaves a hole there
  return s;
}

int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  signal(SIGALRM, on_alarm);
  signal(SIGUSR1, on_usr);
  area = mmap(0, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 64; i++) memset(area + i * 4096, i + 1, 4096);
  for (long i = 0; i < N; i++) pthread_create(&th[i], 0, worker, (void *)i);
  puts("ready");
  char line[100];
  while (fgets(line, sizeof line, stdin)) switch (line[0]) {
    case 'w':
      for (int i = 0; i < N; i++) tell(i, 1);
      printf("%ld\n", sum);
      break;
    case 'k': {
      long s = 0;
      for (int i = 0, n = atoi(line + 1); i < n; i++) {
        void *r;
        tell(i, 2);
        pthread_join(th[i], &r);
        s += (long)r;
      }
      printf("joined %ld\n", s);
      break;
    }
    case 'a': arm(); puts("armed"); break;
    case 'c': churn(); puts("churned"); break;
    case 'u': raise(SIGUSR1); printf("usr %d\n", usr); break;
    case 'q': printf("sum %ld alarms %d usr %d area %lx brk %p\n", sum, alarms, usr, checksum(), sbrk(0)); break;
    }
  return 0;
}
