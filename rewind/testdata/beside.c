// A parent that has something mapped where its child's saved pages lie.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 2) return 1;
  setvbuf(stdout, 0, _IOLBF, 0);
  pid_t child = fork();
  if (!child)
    for (;;) pause();
  void *at = (void *)strtoul(argv[1], 0, 0);
  if (mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at) return 1;
  printf("%d\n", (int)child);
  for (char line[64]; fgets(line, sizeof line, stdin);) puts("ok");
  return 0;
}
