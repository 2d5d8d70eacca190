// A family of processes that share memory of four kinds and talk over sockets, pipes,
// event, timer and signal descriptors in one epoll set.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 3, SIZE = 1 << 20 };
static char *anon, *mem, *sysv;
static int memfd, pairs[N][2], ev, tfd, sfd, ep, pfd[2];
static pid_t kids[N];
static long asked;

static void scribble(int who) {
  for (int i = 0; i < SIZE; i += 4096 * 3) anon[i + who]++, mem[i + who * 2]++, sysv[i + who * 3]++;
}

static long sum(const char *p) {
  long s = 0;
  for (int i = 0; i < SIZE; i++) s = s * 3 + p[i];
  return s;
}

static void kid(int i) {
  char c;
  for (int k = 0; k < N; k++) {
    close(pairs[k][0]);
    if (k != i) close(pairs[k][1]);
  }
  for (long n = 0; read(pairs[i][1], &c, 1) == 1;) {
    if (c == 'x') _exit(3);
    if (c == 'y') execl("/bin/sleep", "sleep", "1000", (char *)0);
    scribble(i + 1);
    char b[64];
    int l = snprintf(b, sizeof b, "%ld", ++n);
    if (write(pairs[i][1], b, l + 1) < 0) _exit(1);
  }
  _exit(0);
}

static void add(int fd) {
  struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0x100000000ull * fd + 7};
  epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

static void stray(void) { // a child that scribbles, and a grandchild that is left to whoever adopts it
  if (fork() == 0) {
    scribble(9);
    if (fork() == 0) {
      scribble(10);
      pause();
    }
    _exit(0);
  }
  int st;
  wait(&st);
  if (fork() == 0) {
    scribble(11);
    pause();
  }
}

int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  anon = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  memfd = memfd_create("family", MFD_CLOEXEC);
  if (ftruncate(memfd, SIZE)) return 1;
  mem = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  int id = shmget(IPC_PRIVATE, SIZE, 0600);
  sysv = shmat(id, 0, 0);
  shmctl(id, IPC_RMID, 0);
  scribble(0);
  sigset_t m;
  sigemptyset(&m);
  sigaddset(&m, SIGUSR2);
  sigprocmask(SIG_BLOCK, &m, 0);
  ev = eventfd(5, EFD_CLOEXEC);
  tfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  sfd = signalfd(-1, &m, SFD_CLOEXEC);
  ep = epoll_create1(EPOLL_CLOEXEC);
  if (pipe(pfd)) return 1;
  add(ev), add(tfd), add(sfd), add(pfd[0]);
  for (int i = 0; i < N; i++) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i])) return 1;
    add(pairs[i][0]);
  }
  for (int i = 0; i < N; i++)
    if (!(kids[i] = fork())) kid(i);
  for (int i = 0; i < N; i++) close(pairs[i][1]);
  puts("ready");
  char line[100], b[64];
  uint64_t v;
  while (fgets(line, sizeof line, stdin)) switch (line[0]) {
    case 'a': // ask every child
      asked++;
      for (int i = 0; i < N; i++) {
        if (write(pairs[i][0], "a", 1) != 1 || read(pairs[i][0], b, sizeof b) <= 0) printf("[child %d is gone] ", i);
        else printf("%s ", b);
      }
      puts("");
      break;
    case 'k': // a child ends
      if (write(pairs[line[1] - '0'][0], "x", 1) < 0) return 1;
      waitpid(kids[line[1] - '0'], 0, 0);
      puts("ended");
      break;
    case 'y': // a child becomes another program
      if (write(pairs[line[1] - '0'][0], "y", 1) < 0) return 1;
      for (;;) {
        char p[64], exe[64];
        snprintf(p, sizeof p, "/proc/%d/exe", kids[line[1] - '0']);
        ssize_t n = readlink(p, exe, sizeof exe);
        if (n > 5 && !memcmp(exe + n - 5, "sleep", 5)) break;
        usleep(200);
      }
      puts("another");
      break;
    case 'o': // a file outside
      line[strcspn(line, "\n")] = 0;
      if (open(line + 2, O_RDWR | O_CREAT, 0600) < 0) return 1;
      unlink(line + 2);
      puts("opened");
      break;
    case 's': stray(); puts("stray"); break;
    case 'd': { // descriptors
      v = 3;
      if (write(ev, &v, 8) != 8) return 1;
      struct itimerspec t = {{0, 1000000}, {0, 1000000}};
      timerfd_settime(tfd, 0, &t, 0);
      kill(getpid(), SIGUSR2);
      if (write(pfd[1], "abc", 3) != 3) return 1;
      struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u64 = 1};
      epoll_ctl(ep, EPOLL_CTL_MOD, ev, &e);
      epoll_ctl(ep, EPOLL_CTL_DEL, tfd, 0);
      close(pfd[1]);
      close(pairs[1][0]);
      int x = open("/dev/null", O_RDWR);
      add(x);
      dup2(x, sfd);
      if (pwrite(memfd, "written", 7, 70000) != 7) return 1;
      if (chdir("/")) return 1;
      umask(0777);
      struct pollfd p = {tfd, POLLIN, 0};
      poll(&p, 1, 1000);
      puts("disturbed");
      break;
    }
    case 'q': {
      struct pollfd p[4] = {{ev, POLLIN, 0}, {tfd, POLLIN, 0}, {sfd, POLLIN, 0}, {pfd[0], POLLIN, 0}};
      poll(p, 4, 0);
      int um = umask(022);
      umask(um);
      char cwd[500];
      printf("%ld %lx %lx %lx ready %d%d%d%d umask %o cwd %s memfd %s\n", asked, sum(anon), sum(mem), sum(sysv), p[0].revents, p[1].revents,
             p[2].revents, p[3].revents, um, getcwd(cwd, sizeof cwd) ? cwd : "?", mem + 70000);
      break;
    }
    case 'e': // the epoll set works
      if (write(pfd[1], "z", 1) != 1) puts("pipe is broken");
      {
        struct epoll_event out[8];
        int n = epoll_wait(ep, out, 8, 1000), found = 0;
        for (int i = 0; i < n; i++) found += out[i].data.u64 == 0x100000000ull * pfd[0] + 7;
        if (read(pfd[0], b, 1) != 1) puts("pipe is empty");
        printf("%d of %d\n", found, n);
      }
      break;
    }
  return 0;
}
