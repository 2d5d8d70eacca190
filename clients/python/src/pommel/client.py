"""The transport: unary calls of pommel.v1.GymService as JSON over one kept connection.

Every call may be repeated without harm, because resets carry a request id and
steps carry their number. So a connection that breaks is opened again and the
call is made again; the server makes no step twice.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any

from .errors import DeadlineExceeded, InvalidArgument, PommelError, Unavailable, error_of
from .types import ServerInfo, Task

DEFAULT_ADDRESS = "http://127.0.0.1:7777"

_SERVICE = "/pommel.v1.GymService/"
_CONNECT_TIMEOUT = 10.0
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 2.0


class _Broken(Exception):
    """The connection gave no whole answer; asking again is right."""


class Client:
    """Talks to one server over one connection. Calls from many threads are made one after the other.

    Args:
        address: "http://host:port", "https://host:port", "host:port" or "unix:/path".
            None is $POMMEL_ADDRESS, or else port 7777 of this machine.
        token: The server's token; None is $POMMEL_TOKEN.
        timeout: Seconds to wait for the answer to one call.
        retries: How often a call is made again after a broken connection.
        ssl_context: For https.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 180.0,
        retries: int = 5,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.address = address or os.environ.get("POMMEL_ADDRESS") or DEFAULT_ADDRESS
        self.timeout = timeout
        self.retries = retries
        self._ssl = ssl_context
        self._scheme, self._host, self._port, self._path = _parse(self.address)
        self._token = (os.environ.get("POMMEL_TOKEN") or "") if token is None else token
        if not self._token.isprintable() or not self._token.isascii():
            raise InvalidArgument("the token holds characters that no header can carry")
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._pid = os.getpid()

    def copy(self, *, timeout: float, retries: int) -> Client:
        """Make another client for the same server, with a connection of its own."""
        return Client(self.address, token=self._token, timeout=timeout, retries=retries, ssl_context=self._ssl)

    def server(self) -> ServerInfo:
        """Describe the server."""
        return ServerInfo.from_json(self.call("GetServer", {}))

    def tasks(self, split: str = "", difficulty: str = "") -> list[Task]:
        """List the tasks of the server's world; empty means all."""
        answer = self.call("ListTasks", {"split": split, "difficulty": difficulty})
        return [Task.from_json(t) for t in answer.get("tasks", ())]

    def close(self) -> None:
        """Drop the connection. The next call opens another one."""
        with self._lock:
            self._drop()

    def call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """Make one call, again if need be, and return its answer as JSON."""
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
        with self._lock:
            for attempt in range(self.retries + 1):
                try:
                    return self._once(method, body)
                except (_Broken, Unavailable) as e:
                    if attempt == self.retries:
                        if isinstance(e, Unavailable):
                            raise
                        raise Unavailable(f"{method} at {self.address}: {e}", "is `pommel serve` running?") from e
                # Not in step with other callers.
                pause = min(_FIRST_PAUSE * 2**attempt, _LAST_PAUSE)
                time.sleep(pause * (0.5 + random.random()))
        raise AssertionError("unreachable")

    def _once(self, method: str, body: bytes) -> dict[str, Any]:
        sock = self._connected()
        keep = False
        try:
            # Head and body in one piece: the server wakes up once.
            sock.sendall(self._head(method, len(body)) + body)
            response = http.client.HTTPResponse(sock, method="POST")
            try:
                response.begin()
                data = response.read()
            finally:
                response.close()
            keep = not response.will_close
        except TimeoutError as e:
            raise DeadlineExceeded(f"{method} at {self.address}: no answer within {self.timeout:g} s") from e
        except (OSError, http.client.HTTPException) as e:
            raise _Broken(str(e) or type(e).__name__) from e
        finally:
            # Also when a signal came in the middle: the rest of an answer must not be read as the next one.
            if not keep:
                self._drop()
        if response.status == 200:
            answer: dict[str, Any] = json.loads(data)
            return answer
        raise _error(response.status, data)

    def _head(self, method: str, size: int) -> bytes:
        host = f"[{self._host}]" if ":" in self._host else self._host
        authorization = f"Authorization: Bearer {self._token}\r\n" if self._token else ""
        return (
            f"POST {_SERVICE}{method} HTTP/1.1\r\nHost: {host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {size}\r\n"
            f"Connect-Protocol-Version: 1\r\nConnect-Timeout-Ms: {int(self.timeout * 1000)}\r\n"
            f"{authorization}\r\n"
        ).encode("ascii")

    def _connected(self) -> socket.socket:
        if self._pid != os.getpid():  # a forked child must not share its parent's connection
            self._sock, self._pid = None, os.getpid()
        if self._sock is None:
            try:
                self._sock = self._connect()
            except OSError as e:
                raise _Broken(f"cannot connect: {e}") from e
            self._sock.settimeout(self.timeout)
        return self._sock

    def _connect(self) -> socket.socket:
        if self._scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(_CONNECT_TIMEOUT)
                sock.connect(self._path)
            except OSError:
                sock.close()
                raise
            return sock
        sock = socket.create_connection((self._host, self._port), timeout=_CONNECT_TIMEOUT)
        try:
            # A small request must not wait for the acknowledgement of the one before it.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._scheme == "https":
                return (self._ssl or ssl.create_default_context()).wrap_socket(sock, server_hostname=self._host)
        except OSError:
            sock.close()
            raise
        return sock

    def _drop(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    # Environments are copied and sent to other processes by trainers; connections cannot be.
    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_sock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _sock=None)


def _parse(address: str) -> tuple[str, str, int, str]:
    """Take an address apart into scheme, host, port and path of the socket."""
    bad = InvalidArgument(f"address {address!r}", "want http://host:port, https://host:port, host:port or unix:/path")
    if address.startswith("unix:"):
        if address == "unix:":
            raise bad
        return "unix", "localhost", 0, address[len("unix:") :]
    u = urllib.parse.urlsplit(address if "://" in address else "http://" + address)
    default = {"http": 80, "https": 443}.get(u.scheme, 0) if "://" in address else 0
    try:
        port = u.port or default
    except ValueError:
        port = 0
    if u.scheme not in ("http", "https") or not u.hostname or not port or u.path not in ("", "/"):
        raise bad
    return u.scheme, u.hostname, port, ""


def _error(status: int, data: bytes) -> PommelError:
    """Make the exception for an answer that is not 200."""
    try:
        answer = json.loads(data)
        code, message = str(answer["code"]), str(answer.get("message", ""))
    except (ValueError, KeyError, TypeError):
        # Not the gym's words: a proxy's.
        text = data[:200].decode("utf-8", "replace").strip()
        code = {401: "unauthenticated", 403: "permission_denied", 404: "unimplemented"}.get(status, "unavailable")
        return error_of("", f"HTTP status {status}: {text}", code=code)
    for detail in answer.get("details", ()):
        if detail.get("type") == "pommel.v1.Error":
            f = _strings(detail.get("value", ""))
            return error_of(f.get(1, ""), f.get(2, message), f.get(3, ""), code)
    return error_of("", message, code=code)


def _strings(value: str) -> dict[int, str]:
    """Read a protobuf message of strings, which is all that pommel.v1.Error is."""
    data = base64.b64decode(value + "=" * (-len(value) % 4))
    fields: dict[int, str] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n

    while at < len(data):
        tag = varint()
        if tag & 7 != 2:  # a field of a newer server that is no string
            break
        size = varint()
        fields[tag >> 3] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return fields
