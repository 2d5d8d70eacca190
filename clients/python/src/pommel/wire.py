"""What the blocking and the asyncio client share: addresses, the head of a request, errors of answers."""

from __future__ import annotations

import base64
import json
import os
import random
import ssl
import urllib.parse
from typing import Any

from .errors import DeadlineExceeded, InvalidArgument, PommelError, Unavailable, error_of

DEFAULT_ADDRESS = "http://127.0.0.1:7777"
CONNECT_TIMEOUT = 10.0

_SERVICE = "/pommel.v1.GymService/"
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 2.0


class Broken(Exception):
    """The connection gave no whole answer; asking again is right."""


class Endpoint:
    """A server, and how to speak to it.

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

    def _same(self, timeout: float, retries: int) -> dict[str, Any]:
        """The arguments of another endpoint for the same server."""
        return {
            "address": self.address, "token": self._token, "timeout": timeout, "retries": retries, "ssl_context": self._ssl,
        }  # fmt: skip

    def _tls(self) -> ssl.SSLContext | None:
        if self._scheme != "https":
            return None
        return self._ssl or ssl.create_default_context()

    def _head(self, method: str, size: int) -> bytes:
        host = f"[{self._host}]" if ":" in self._host else self._host
        authorization = f"Authorization: Bearer {self._token}\r\n" if self._token else ""
        return (
            f"POST {_SERVICE}{method} HTTP/1.1\r\nHost: {host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {size}\r\n"
            f"Connect-Protocol-Version: 1\r\nConnect-Timeout-Ms: {int(self.timeout * 1000)}\r\n"
            f"{authorization}\r\n"
        ).encode("ascii")

    def _late(self, method: str) -> DeadlineExceeded:
        return DeadlineExceeded(f"{method} at {self.address}: no answer within {self.timeout:g} s")

    def _pause(self, method: str, attempt: int, e: Broken | Unavailable) -> float:
        """Seconds to wait before the next attempt; raises after the last one."""
        if attempt >= self.retries:
            if isinstance(e, Unavailable):
                raise e
            raise Unavailable(f"{method} at {self.address}: {e}", "is `pommel serve` running?") from e
        # Not in step with other callers.
        return min(_FIRST_PAUSE * (1 << attempt), _LAST_PAUSE) * (0.5 + random.random())


def body_of(request: dict[str, Any]) -> bytes:
    """Write a request."""
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")


def answer_of(status: int, data: bytes) -> dict[str, Any]:
    """Read an answer; raises what it says when it is an error."""
    if status != 200:
        raise _error(status, data)
    answer: dict[str, Any] = json.loads(data)
    return answer


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
