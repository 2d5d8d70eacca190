"""Servers that start by themselves, for environments that were given no address.

Environments of one process share them: a server ends when the last environment that uses it
is closed or forgotten, and in any case with this process.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import secrets
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .server import Server

_log = logging.getLogger("pommel")


class Room:
    """Room for some environments on a server of this process."""

    def __init__(self, servers: Servers, running: _Running, size: int) -> None:
        self.address, self.token = running.server.address, running.server.token
        self._give_back = functools.partial(servers.give_back, running, size, os.getpid())
        # The end of an object comes at any moment, also inside of take: stopping a server is for another thread.
        self._abandoned = weakref.finalize(self, lambda give_back: threading.Thread(target=give_back).start(), self._give_back)
        self._abandoned.atexit = False

    def close(self) -> None:
        """Give the room back. Closing twice is no error."""
        if self._abandoned.detach():
            self._give_back()


class _Running:
    def __init__(self, server: Server, kind: tuple[object, ...], size: int) -> None:
        self.server, self.kind, self.size, self.used = server, kind, size, 0


class Servers:
    """The servers of this process."""

    def __init__(self) -> None:
        self._forget()
        # A forked child must neither use nor stop what its parent started.
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.stop)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._running: list[_Running] = []

    def take(self, world: str | None, size: int = 1, args: Sequence[str] = ()) -> Room:
        """Find room for some environments on one server, or start a server that has it."""
        kind = (world, tuple(args))
        with self._lock:
            r = next((r for r in self._running if r.kind == kind and r.size - r.used >= size), None)
            if r is None:
                r = _Running(_start(world, size, args), kind, size)
                self._running.append(r)
            r.used += size
        return Room(self, r, size)

    def give_back(self, r: _Running, size: int, pid: int) -> None:
        """Stop the server when nobody uses it any more."""
        with self._lock:
            r.used -= size
            if r.used > 0 or r not in self._running:
                return
            self._running.remove(r)
        if pid == os.getpid():
            r.server.close()

    def stop(self) -> None:
        """Stop all, at the end of this process."""
        with self._lock:
            running, self._running = self._running, []
        for r in running:
            r.server.close()


def _start(world: str | None, size: int, args: Sequence[str]) -> Server:
    from .server import serve

    _log.info("starting pommel serve for %d environments of world %s", size, world or "(default)")
    # The port is open to every user of this machine; the token is not.
    return serve(world, size, token=secrets.token_hex(16), args=args)


servers = Servers()
