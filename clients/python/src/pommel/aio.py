"""The asyncio client: the calls of `pommel.Client` and `pommel.Session`, awaited.

    async with pommel.aio.AsyncSession(pommel.aio.AsyncClient("127.0.0.1:7777")) as session:
        result = await session.reset("buy-item", seed=7)
        while not (result.terminated or result.truncated):
            result = await session.step(await agent(result.instruction, result.observation.text))

Hundreds of sessions may run on one event loop, each with a client of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from types import TracebackType
from typing import Any, TypeVar

from .errors import DeadlineExceeded, PommelError, Unavailable
from .protocol import Calls, Protocol
from .types import Observation, Result, ServerInfo, Task, View
from .wire import CONNECT_TIMEOUT, Broken, Endpoint, answer_of, body_of

T = TypeVar("T")

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncClient(Endpoint):
    """Talks to one server over one connection. Calls of many tasks are made one after the other.

    Args:
        address: As for `pommel.Client`, and so are the others.
        **kwargs: token, timeout, retries, ssl_context.
    """

    def __init__(self, address: str | None = None, **kwargs: Any) -> None:
        super().__init__(address, **kwargs)
        self._lock = asyncio.Lock()
        self._connection: _Connection | None = None

    def copy(self, *, timeout: float, retries: int) -> AsyncClient:
        """Make another client for the same server, with a connection of its own."""
        return AsyncClient(**self._same(timeout, retries))

    async def server(self) -> ServerInfo:
        """Describe the server."""
        return ServerInfo.from_json(await self.call("GetServer", {}))

    async def tasks(self, split: str = "", difficulty: str = "") -> list[Task]:
        """List the tasks of the server's world; empty means all."""
        answer = await self.call("ListTasks", {"split": split, "difficulty": difficulty})
        return [Task.from_json(t) for t in answer.get("tasks", ())]

    async def close(self) -> None:
        """Drop the connection. The next call opens another one."""
        async with self._lock:
            self._drop()

    async def call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """Make one call, again if need be, and return its answer as JSON."""
        body = body_of(request)
        attempt = 0
        async with self._lock:
            while True:
                try:
                    return await self._once(method, body)
                except (Broken, Unavailable) as e:
                    pause = self._pause(method, attempt, e)
                await asyncio.sleep(pause)
                attempt += 1

    async def _once(self, method: str, body: bytes) -> dict[str, Any]:
        keep = False
        try:
            if self._connection is None:
                self._connection = await self._connect()
            exchange = self._exchange(self._connection, method, body)
            status, data, keep = await asyncio.wait_for(exchange, self.timeout)
        except (TimeoutError, asyncio.TimeoutError) as e:
            raise self._late(method) from e
        except (OSError, EOFError, ValueError) as e:
            raise Broken(str(e) or type(e).__name__) from e
        finally:
            # Also when the task was cancelled: the rest of an answer must not be read as the next one.
            if not keep:
                self._drop()
        return answer_of(status, data)

    async def _connect(self) -> _Connection:
        if self._scheme == "unix":
            opening = asyncio.open_unix_connection(self._path)
        else:
            tls = self._tls()
            name = self._host if tls else None
            opening = asyncio.open_connection(self._host, self._port, ssl=tls, server_hostname=name)
        try:
            return await asyncio.wait_for(opening, CONNECT_TIMEOUT)
        except (TimeoutError, asyncio.TimeoutError) as e:
            raise Broken("cannot connect: no answer") from e
        except OSError as e:
            raise Broken(f"cannot connect: {e}") from e

    async def _exchange(self, connection: _Connection, method: str, body: bytes) -> tuple[int, bytes, bool]:
        reader, writer = connection
        writer.write(self._head(method, len(body)) + body)
        await writer.drain()
        status = 100
        while status < 200:  # 1xx announce the answer
            version, status, head = await _read_head(reader)
        data, whole = await _read_body(reader, head)
        return status, data, whole and version == "HTTP/1.1" and head.get("connection", "").lower() != "close"

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(RuntimeError):  # its event loop has ended
                self._connection[1].transport.abort()
            self._connection = None


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, int, dict[str, str]]:
    line = (await reader.readuntil(b"\r\n")).decode("latin-1")
    version, status, *_ = line.split(maxsplit=2)
    head: dict[str, str] = {}
    while (line := (await reader.readuntil(b"\r\n")).decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        head[name.lower()] = value.strip()
    return version, int(status), head


async def _read_body(reader: asyncio.StreamReader, head: dict[str, str]) -> tuple[bytes, bool]:
    """Read the body, and tell whether the connection can be used again."""
    if head.get("transfer-encoding", "").lower() == "chunked":
        parts: list[bytes] = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
        return b"".join(parts), True
    if "content-length" in head:
        return await reader.readexactly(int(head["content-length"])), True
    return await reader.read(), False


class AsyncSession(Protocol):
    """One episode after the other, each in a fresh world: `pommel.Session`, awaited.

    A call that was cancelled may have been carried out or not; the next call finds out, as
    `pommel.Session.step` says.

    Args:
        client: The connection. The session owns it and closes it.
        view, name, heartbeat: As for `pommel.Session`. The heartbeat beats while the event loop runs.
    """

    def __init__(self, client: AsyncClient, *, view: View = View(), name: str = "", heartbeat: bool = True) -> None:
        super().__init__(view, name)
        self.client = client
        self._heartbeat = heartbeat
        self._beat: asyncio.Task[None] | None = None
        self._order = asyncio.Lock()

    async def reset(
        self,
        task: str,
        seed: int = 0,
        *,
        wait: float | None = None,
        lease: float | None = None,
        max_steps: int = 0,
        profile: str = "",
    ) -> Result:
        """Start an episode, and close the one before it; see `pommel.Session.reset`."""
        request = self._reset_request(task, seed, wait, lease, max_steps, profile)
        return await self._run(self._do_reset(request, lease, self._heartbeat))

    async def step(self, action: str) -> Result:
        """Perform one action string; see `pommel.Session.step`."""
        return await self._run(self._do_step(action))

    async def checkpoint(self) -> str:
        """Save the whole state of the episode; see `pommel.Session.checkpoint`."""
        return await self._run(self._do_checkpoint())

    async def restore(self, checkpoint: str) -> Result:
        """Put the episode back to a checkpoint; see `pommel.Session.restore`."""
        return await self._run(self._do_restore(checkpoint))

    async def forget(self, checkpoint: str) -> None:
        """Free a checkpoint. One that is not held is no error."""
        await self._run(self._do_forget(checkpoint))

    async def observe(self, view: View | None = None) -> Observation:
        """Look again without acting; costs no step."""
        return await self._run(self._do_observe(view))

    async def heartbeat(self) -> float:
        """Renew the lease; returns its length in seconds."""
        return await self._run(self._do_heartbeat())

    async def close(self) -> None:
        """Free the world. Closing twice is no error; neither is a server that has gone."""
        beat = self._beat
        retries, self.client.retries = self.client.retries, min(self.client.retries, 1)
        try:
            await self._run(self._do_close())
        finally:
            self.client.retries = retries
            await self.client.close()
            if beat is not None:
                await asyncio.wait([beat])

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, t: type[BaseException] | None, e: BaseException | None, b: TracebackType | None) -> None:
        await self.close()

    async def _run(self, calls: Calls[T]) -> T:
        async with self._order:
            try:
                call = next(calls)
                while True:
                    try:
                        answer = await self.client.call(*call)
                    except BaseException as e:
                        call = calls.throw(e)
                    else:
                        call = calls.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result

    def _start_beat(self, lease: float) -> None:
        client = self.client.copy(timeout=min(self.client.timeout, 30.0), retries=1)
        self._beat = asyncio.create_task(_beats(weakref.ref(self), client, self.episode_id, max(lease / 3, 0.05)))

    def _stop_beat(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None


def _beats_with(session: weakref.ref[AsyncSession], task: asyncio.Task[None] | None) -> bool:
    s = session()
    return s is not None and s._beat is task


async def _beats(session: weakref.ref[AsyncSession], client: AsyncClient, episode_id: str, pause: float) -> None:
    """Renew the lease whenever the session was silent for a while, until somebody stops it or nobody holds it."""
    due = time.monotonic() + pause
    me = asyncio.current_task()
    try:
        # Before Python 3.12, wait_for loses a cancellation that meets the answer.
        while _beats_with(session, me):
            await asyncio.sleep(max(due - time.monotonic(), 0))
            s = session()
            if s is None:
                return
            due, s = s.last_call + pause, None
            if time.monotonic() < due:
                continue
            due = time.monotonic() + pause
            with contextlib.suppress(Unavailable, DeadlineExceeded):
                await client.call("Heartbeat", {"episodeId": episode_id})
    except PommelError:
        pass  # the next call of the session gets the error
    finally:
        await client.close()
