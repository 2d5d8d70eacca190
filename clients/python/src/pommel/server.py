"""Starts `pommel serve` for as long as a program needs it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Any

import gymnasium

from .client import Client
from .discover import program
from .errors import Unavailable
from .registration import make, make_vec, register_tasks

_GUARD = os.path.join(os.path.dirname(__file__), "_guard.py")


class Server:
    """A running `pommel serve`. It ends with `close`, with its ``with`` block, or with this process."""

    def __init__(
        self, process: subprocess.Popen[bytes], log: IO[bytes], ready: dict[str, Any], token: str = ""
    ) -> None:
        self._process = process
        self._log = log
        self.ready = ready
        self.address = str(ready["address"])
        # What callers must send, or "".
        self.token = token

    def client(self, **kwargs: Any) -> Client:
        """Make a client of this server."""
        return Client(self.address, **self._with_token(kwargs))

    def make(self, task: str | None = None, **kwargs: Any) -> gymnasium.Env[dict[str, Any], str]:
        """Make the environment of a task; None draws a task at each reset."""
        return make(task, self.address, **self._with_token(kwargs))

    def make_vec(self, num_envs: int, task: str | None = None, **kwargs: Any) -> Any:
        """Make a `pommel.vector.PommelVectorEnv`."""
        return make_vec(num_envs, task, self.address, **self._with_token(kwargs))

    def register(self, **kwargs: Any) -> list[str]:
        """Register names for gymnasium.make, see `pommel.register_tasks`."""
        return register_tasks(self.address, **self._with_token(kwargs))

    def _with_token(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        return {"token": self.token, **kwargs} if self.token else kwargs

    @property
    def log(self) -> str:
        """The last lines that the server wrote to its standard error."""
        return _tail(self._log)

    def close(self, timeout: float = 60.0) -> None:
        """Stop the server and wait for its end. Closing twice is no error."""
        _stop(self._process, timeout)
        self._log.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    world: str | None = None,
    worlds: int = 2,
    *,
    binary: str | None = None,
    lease: float | None = None,
    token: str = "",
    args: Sequence[str] = (),
    timeout: float = 600.0,
) -> Server:
    """Start `pommel serve` on a free port of this machine and wait until it is ready.

    Use it as a context manager::

        with pommel.serve(world="shop", worlds=2) as server:
            env = server.make("buy-item")

    Args:
        world: Name or folder of the world; None is the program's default.
        worlds: How many episodes can run at the same time.
        binary: Path of pommel; None is $POMMEL_BIN, or else the one on the PATH.
        lease: Seconds that a caller may be silent.
        token: What callers must send; "" lets every caller of this machine in.
        args: Further arguments of `pommel serve`.
        timeout: Seconds until the worlds must be ready. The first start builds what is missing.
    """
    command = [program(binary), "serve", "--json", "--addr", "127.0.0.1:0", "--worlds", str(worlds)]
    command += [] if world is None else ["--world", world]
    # Nobody is left to go on with the episodes when this program stops its server.
    command += ["--drain", "0s"]
    if lease is not None:
        command += ["--lease", f"{lease:g}s"]
    log = tempfile.TemporaryFile()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *command, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        # Not on the command line, where other users can read it.
        env={**os.environ, "POMMEL_TOKEN": token} if token else None,
        # An interrupt at the keyboard is for this program, which then stops the server.
        start_new_session=True,
    )
    try:
        return Server(process, log, _ready(process, log, timeout), token)
    except BaseException:
        _stop(process, 60.0)
        log.close()
        raise


def _ready(process: subprocess.Popen[bytes], log: IO[bytes], timeout: float) -> dict[str, Any]:
    """Read the line of JSON that says where the server listens."""
    assert process.stdout is not None
    end = time.monotonic() + timeout
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(end - time.monotonic(), 0)):
                raise Unavailable(f"pommel serve was not ready within {timeout:g} s\n{_tail(log)}")
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                code = process.wait()
                raise Unavailable(f"pommel serve ended with status {code}\n{_tail(log)}")
            line += chunk
    try:
        ready = json.loads(line.splitlines()[0])
        ready["address"]
    except (ValueError, KeyError, TypeError) as e:
        raise Unavailable(f"pommel serve said {line[:200]!r}; want a line of JSON with its address") from e
    return dict(ready)


def _stop(process: subprocess.Popen[bytes], timeout: float) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            # The guard leads a group of its own, with the server in it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(size - 4096, 0))
    return log.read().decode("utf-8", "replace").strip()
