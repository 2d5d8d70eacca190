// Programs that cannot be rewound, or only until they do something.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int uring(void) {
  static char params[120];
  return (int)syscall(425, 8, params);
}

int main(int argc, char **argv) {
  setvbuf(stdout, 0, _IOLBF, 0);
  if (argc > 1 && !strcmp(argv[1], "uring") && uring() < 0) puts("none");
  if (argc > 2 && !strcmp(argv[1], "foreign") && open(argv[2], O_RDWR | O_CREAT, 0600) < 0) return 1;
  if (argc > 1 && !strcmp(argv[1], "trap")) signal(SIGTRAP, SIG_IGN);
  puts("ready");
  char line[100];
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
    }
}
