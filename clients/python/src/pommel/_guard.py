"""Runs a command that ends when a given process ends: `_guard.py PID COMMAND...`.

A server must not outlive the trainer that started it, also when the trainer is
killed and can do nothing about it. The kernel's own means (PR_SET_PDEATHSIG) acts
when the *thread* that started the child ends, so it is of use only from a process
with one thread: this one, which in turn watches the trainer by a pidfd.

This file is run by path, without site packages, and imports nothing of pommel.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
GRACE = 30  # seconds that the command has to end after SIGTERM


def main() -> int:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    watched = os.pidfd_open(parent)
    if os.getppid() != parent:
        return 1
    libc = ctypes.CDLL(None, use_errno=True)
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    )
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The standard output belongs to the command; holding it open would hide its end.
    os.close(1)
    poll = select.poll()
    ended = os.pidfd_open(child.pid)
    poll.register(watched, select.POLLIN)
    poll.register(ended, select.POLLIN)
    if ended not in [fd for fd, _ in poll.poll()]:
        child.terminate()
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
