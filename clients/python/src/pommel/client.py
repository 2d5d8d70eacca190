"""The blocking transport: unary calls of pommel.v1.GymService as JSON over one kept connection.

Every call may be repeated without harm, because resets carry a request id and
steps carry their number. So a connection that breaks is opened again and the
call is made again; the server makes no step twice.
"""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from typing import Any

from .errors import Unavailable
from .types import ServerInfo, Task
from .wire import CONNECT_TIMEOUT, Broken, Endpoint, answer_of, body_of


class Client(Endpoint):
    """Talks to one server over one connection. Calls from many threads are made one after the other.

    Args:
        address: "http://host:port", "https://host:port", "host:port" or "unix:/path".
            None is $POMMEL_ADDRESS, or else port 7777 of this machine.
        token: The server's token; None is $POMMEL_TOKEN.
        timeout: Seconds to wait for the answer to one call.
        retries: How often a call is made again after a broken connection.
        ssl_context: For https.
    """

    def __init__(self, address: str | None = None, **kwargs: Any) -> None:
        super().__init__(address, **kwargs)
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._pid = os.getpid()

    def copy(self, *, timeout: float, retries: int) -> Client:
        """Make another client for the same server, with a connection of its own."""
        return Client(**self._same(timeout, retries))

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
        body = body_of(request)
        attempt = 0
        with self._lock:
            while True:
                try:
                    return self._once(method, body)
                except (Broken, Unavailable) as e:
                    time.sleep(self._pause(method, attempt, e))
                attempt += 1

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
            raise self._late(method) from e
        except (OSError, http.client.HTTPException) as e:
            raise Broken(str(e) or type(e).__name__) from e
        finally:
            # Also when a signal came in the middle: the rest of an answer must not be read as the next one.
            if not keep:
                self._drop()
        return answer_of(response.status, data)

    def _connected(self) -> socket.socket:
        if self._pid != os.getpid():  # a forked child must not share its parent's connection
            self._sock, self._pid = None, os.getpid()
        if self._sock is None:
            try:
                self._sock = self._connect()
            except OSError as e:
                raise Broken(f"cannot connect: {e}") from e
            self._sock.settimeout(self.timeout)
        return self._sock

    def _connect(self) -> socket.socket:
        if self._scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(CONNECT_TIMEOUT)
                sock.connect(self._path)
            except OSError:
                sock.close()
                raise
            return sock
        sock = socket.create_connection((self._host, self._port), timeout=CONNECT_TIMEOUT)
        try:
            # A small request must not wait for the acknowledgement of the one before it.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if (tls := self._tls()) is not None:
                return tls.wrap_socket(sock, server_hostname=self._host)
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
