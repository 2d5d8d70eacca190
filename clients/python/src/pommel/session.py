"""One agent's environment on a server: numbers its steps, keeps its lease, retries safely."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, TypeVar

from .client import Client
from .errors import DeadlineExceeded, PommelError, Unavailable
from .protocol import Calls, Protocol
from .types import Observation, Result, View

T = TypeVar("T")


class Session(Protocol):
    """One episode after the other, each in a fresh world.

    Args:
        client: The connection. The session owns it and closes it.
        view: What observations hold besides the text.
        name: This caller's name in the server's logs and traces.
        heartbeat: Renew the lease in the background for as long as this process lives, so that
            an agent may think for longer than the lease.
    """

    def __init__(self, client: Client, *, view: View = View(), name: str = "", heartbeat: bool = True) -> None:
        super().__init__(view, name)
        self.client = client
        self._heartbeat = heartbeat
        self._beat: _Heartbeat | None = None

    def reset(
        self,
        task: str,
        seed: int = 0,
        *,
        wait: float | None = None,
        lease: float | None = None,
        max_steps: int = 0,
        profile: str = "",
    ) -> Result:
        """Start an episode, and close the one before it.

        Args:
            task: Id of the task.
            seed: Chooses the task's parameters; seed % 10 is 0..6 for training, 7..8 validation, 9 test.
            wait: Seconds to wait for a free world; None is the server's default, 0 not at all.
            lease: Seconds that this caller may be silent; None is the server's default.
            max_steps: Step limit in place of the task's own; 0 keeps the task's.
            profile: What is in the agent's way: a profile of perturbations that the server knows
                by name, such as "rough" or "rough@0.5"; "" is nothing.
        """
        request = self._reset_request(task, seed, wait, lease, max_steps, profile)
        return self._run(self._do_reset(request, lease, self._heartbeat))

    def step(self, action: str) -> Result:
        """Perform one action string.

        After DeadlineExceeded, Unavailable or an interrupt the step may have been made or not.
        Calling step again with the same action gives its result; calling it with another action
        makes that one the next step.
        """
        return self._run(self._do_step(action))

    def checkpoint(self) -> str:
        """Save the whole state of the episode: browser, application, database, what was earned.

        `restore` goes back to it any number of times, also after the episode has ended.
        Checkpoints make a tree and end with the episode, which while it holds any keeps its
        world. Raises `Unsupported` when the server's driver has none, or when this state cannot
        be saved, and `ResourceExhausted` when there are too many; the episode goes on.
        """
        return self._run(self._do_checkpoint())

    def restore(self, checkpoint: str) -> Result:
        """Put the episode back to a checkpoint.

        The result is what the agent saw then, with a reward of 0; steps are counted from there again.
        """
        return self._run(self._do_restore(checkpoint))

    def forget(self, checkpoint: str) -> None:
        """Free a checkpoint. One that is not held is no error."""
        self._run(self._do_forget(checkpoint))

    def observe(self, view: View | None = None) -> Observation:
        """Look again without acting; costs no step."""
        return self._run(self._do_observe(view))

    def heartbeat(self) -> float:
        """Renew the lease; returns its length in seconds."""
        return self._run(self._do_heartbeat())

    def close(self) -> None:
        """Free the world. Closing twice is no error; neither is a server that has gone."""
        retries, self.client.retries = self.client.retries, min(self.client.retries, 1)
        try:
            self._run(self._do_close())
        finally:
            self.client.retries = retries
            self.client.close()

    def _run(self, calls: Calls[T]) -> T:
        try:
            call = next(calls)
            while True:
                try:
                    answer = self.client.call(*call)
                except BaseException as e:
                    call = calls.throw(e)
                else:
                    call = calls.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _start_beat(self, lease: float) -> None:
        self._beat = _Heartbeat(self, self.episode_id, lease)

    def _stop_beat(self) -> None:
        if self._beat is not None:
            self._beat.stop()
            self._beat = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_beat": None}


class _Heartbeat:
    """Renews the lease of one episode from a thread of its own, over a connection of its own.

    It speaks only when the session was silent for a third of the lease, and ends with the
    episode or when nobody holds the session any more.
    """

    def __init__(self, session: Session, episode_id: str, lease: float) -> None:
        self._client = session.client.copy(timeout=min(session.client.timeout, 30.0), retries=1)
        self._episode_id = episode_id
        self._pause = max(lease / 3, 0.05)
        self._stop = threading.Event()
        self._session = weakref.ref(session)
        weakref.finalize(session, self._stop.set)
        threading.Thread(target=self._run, name="pommel-heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        due = time.monotonic() + self._pause
        while not self._stop.wait(max(due - time.monotonic(), 0)):
            session = self._session()
            due = self._pause + (session.last_call if session else 0)
            del session
            if time.monotonic() < due:
                continue
            due = time.monotonic() + self._pause
            try:
                self._client.call("Heartbeat", {"episodeId": self._episode_id})
            except (Unavailable, DeadlineExceeded):
                continue
            except PommelError:
                break  # the next call of the session gets the error
        self._client.close()
