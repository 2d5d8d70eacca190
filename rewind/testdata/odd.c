// Programs that cannot be rewound, or only until they do something.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int uring(void) {
  static char params[120];
  return (int)syscall(425, 8, params);
}

// Kills us for every call but the ones that this program makes from then on.
static int filter(void) {
  int ok[] = {SYS_read, SYS_write, SYS_exit_group};
  struct sock_filter f[16];
  int n = 0;
  f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < 3; i++) {
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ok[i], 0, 1);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog p = {n, f};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

int main(int argc, char **argv) {
  setvbuf(stdout, 0, _IOLBF, 0);
  if (argc > 1 && !strcmp(argv[1], "uring") && uring() < 0) puts("none");
  if (argc > 2 && !strcmp(argv[1], "foreign") && open(argv[2], O_RDWR | O_CREAT, 0600) < 0) return 1;
  if (argc > 1 && !strcmp(argv[1], "trap")) signal(SIGTRAP, SIG_IGN);
  puts("ready");
  char line[100];
  static long asked;
  if (argc > 1 && !strcmp(argv[1], "filter")) {
    if (fgets(line, sizeof line, stdin) && filter()) return 1;
    puts("filtered");
  }
  while (fgets(line, sizeof line, stdin)) switch (line[0]) {
    case 'v': // the kernel waits in us for the child, and no stop comes through
      puts("now");
      if (vfork() == 0) {
        struct timespec ts = {1000, 0};
        syscall(SYS_nanosleep, &ts, 0);
        _exit(0);
      }
      break;
    case 'x': execl("/bin/cat", "cat", (char *)0); break;
    case 'e': exit(0);
    case 's': puts("spinning"); for (volatile int i = 0;; i++) {} break;
    case 'u': printf("%s\n", uring() < 0 ? "none" : "made"); break;
    case 'q': puts("here"); break;
    case 'n': printf("%ld\n", ++asked); break;
    }
}
