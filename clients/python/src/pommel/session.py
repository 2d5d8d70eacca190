"""One agent's environment on a server: numbers its steps, keeps its lease, retries safely."""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from typing import Any

from .client import Client
from .errors import (
    DeadlineExceeded,
    EpisodeOver,
    InfrastructureError,
    InvalidArgument,
    LeaseExpired,
    NotFound,
    PommelError,
    StaleEpisode,
    Unavailable,
    WorldLost,
)
from .types import Info, Observation, Result, View


class Session:
    """One episode after the other, each in a fresh world.

    Args:
        client: The connection. The session owns it and closes it.
        view: What observations hold besides the text.
        name: This caller's name in the server's logs and traces.
        heartbeat: Renew the lease in the background for as long as this process lives, so that
            an agent may think for longer than the lease.
    """

    def __init__(self, client: Client, *, view: View = View(), name: str = "", heartbeat: bool = True) -> None:
        self.client = client
        self.view = view
        self.name = name
        self.episode_id = ""
        self.instruction = ""
        self.step_number = 0
        self._heartbeat = heartbeat
        self._beat: _Heartbeat | None = None
        self._default_lease = 0.0
        # Step, checkpoint and restore share one row of numbers, of which none is used twice.
        self._calls = 0
        # The call whose result is not known: it was sent, and no answer came.
        self._pending: tuple[str, dict[str, Any]] | None = None
        self._saved: set[str] = set()
        self._lost: PommelError | None = None

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
        self._stop_beat()
        answer = self.client.call(
            "Reset",
            {
                "task": task,
                "seed": str(seed),
                "view": self.view.to_json(),
                "client": self.name,
                "requestId": secrets.token_hex(16),
                "previousEpisodeId": self.episode_id,
                "waitMs": 0 if wait is None else max(1, int(wait * 1000)) if wait > 0 else -1,
                "leaseMs": 0 if lease is None else max(1, int(lease * 1000)),
                "maxSteps": max_steps,
                "profile": profile,
            },
        )
        self.episode_id, self.instruction = answer.get("episodeId", ""), answer.get("instruction", "")
        self.step_number, self._calls, self._pending, self._lost = 0, 0, None, None
        self._saved = set()
        if self._heartbeat:
            self._beat = _Heartbeat(self, self.episode_id, self._lease(lease))
        return self._result(answer)

    def step(self, action: str) -> Result:
        """Perform one action string.

        After DeadlineExceeded, Unavailable or an interrupt the step may have been made or not.
        Calling step again with the same action gives its result; calling it with another action
        makes that one the next step.
        """
        answer = self._numbered("Step", {"step": self._calls + 1, "action": action, "view": self.view.to_json()})
        self.step_number = int(answer.get("step", 0))
        result = self._result(answer)
        if (result.terminated or result.truncated) and not self._saved:
            self._stop_beat()
        return result

    def checkpoint(self) -> str:
        """Save the whole state of the episode: browser, application, database, what was earned.

        `restore` goes back to it any number of times, also after the episode has ended.
        Checkpoints make a tree and end with the episode, which while it holds any keeps its
        world. Raises `Unsupported` when the server's driver has none, or when this state cannot
        be saved, and `ResourceExhausted` when there are too many; the episode goes on.
        """
        answer = self._numbered("Checkpoint", {"call": self._calls + 1})
        return str(answer.get("checkpointId", ""))

    def restore(self, checkpoint: str) -> Result:
        """Put the episode back to a checkpoint.

        The result is what the agent saw then, with a reward of 0; steps are counted from there again.
        """
        if checkpoint not in self._saved:
            raise InvalidArgument(f"the episode has no checkpoint {checkpoint!r}", "give one that checkpoint() returned in this episode")
        answer = self._numbered("Restore", {"call": self._calls + 1, "checkpointId": checkpoint})
        self.step_number = int(answer.get("step", 0))
        return self._result(answer)

    def forget(self, checkpoint: str) -> None:
        """Free a checkpoint. One that is not held is no error."""
        self._in_episode()
        if checkpoint in self._saved:
            try:
                self.client.call("Forget", {"episodeId": self.episode_id, "checkpointId": checkpoint})
            except PommelError as e:
                raise self._judge(e) from e
            self._saved.discard(checkpoint)

    def _numbered(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """Make the next call that changes the episode.

        A call whose answer did not come is asked for again first, with its own number, unless
        it is the very one that is wanted.
        """
        self._in_episode()
        if self._pending is not None and not _same(self._pending, (method, request)):
            self._resolve()
            request |= {"step" if method == "Step" else "call": self._calls + 1}
        if self._pending is None:
            self._pending = (method, request)
        return self._resolve()

    def _resolve(self) -> dict[str, Any]:
        assert self._pending is not None
        method, request = self._pending
        try:
            answer = self.client.call(method, {"episodeId": self.episode_id, **request})
        except (DeadlineExceeded, Unavailable):
            raise
        except PommelError as e:
            self._pending = None
            raise self._judge(e) from e
        self._calls, self._pending = self._calls + 1, None
        if method == "Checkpoint":
            self._saved.add(str(answer.get("checkpointId", "")))
        if self._beat is not None:
            self._beat.last_call = time.monotonic()
        return answer

    def observe(self, view: View | None = None) -> Observation:
        """Look again without acting; costs no step."""
        self._in_episode()
        request = {"episodeId": self.episode_id, "view": (view or self.view).to_json()}
        try:
            answer = self.client.call("Observe", request)
        except PommelError as e:
            raise self._judge(e) from e
        return Observation.from_json(answer.get("observation", {}))

    def heartbeat(self) -> float:
        """Renew the lease; returns its length in seconds."""
        self._in_episode()
        try:
            answer = self.client.call("Heartbeat", {"episodeId": self.episode_id})
        except PommelError as e:
            raise self._judge(e) from e
        return int(answer.get("leaseMs", 0)) / 1000

    def close(self) -> None:
        """Free the world. Closing twice is no error; neither is a server that has gone."""
        self._stop_beat()
        if self.episode_id:
            retries, self.client.retries = self.client.retries, min(self.client.retries, 1)
            try:
                self.client.call("Close", {"episodeId": self.episode_id})
            except InfrastructureError:
                pass  # the lease frees what cannot be reached
            finally:
                self.client.retries = retries
            self.episode_id = ""
        self.client.close()

    def _lease(self, asked: float | None) -> float:
        if asked is not None:
            return asked
        if self._default_lease == 0:
            self._default_lease = self.client.server().lease_ms / 1000
        return self._default_lease

    def _stop_beat(self) -> None:
        if self._beat is not None:
            self._beat.stop()
            self._beat = None

    def _in_episode(self) -> None:
        if self._lost is not None:
            raise self._lost
        if not self.episode_id:
            raise EpisodeOver("no episode was started", "call reset")

    def _judge(self, e: PommelError) -> PommelError:
        """Mark an episode that an error has ended."""
        if isinstance(e, NotFound):
            # The server gave this id away itself, so it has lost its memory.
            e = WorldLost("the server does not know the episode any more", "it was restarted; the episode is void")
        if isinstance(e, (WorldLost, LeaseExpired, StaleEpisode)):
            self._lost = e
            self._stop_beat()
        return e

    def _result(self, answer: dict[str, Any]) -> Result:
        return Result(
            episode_id=self.episode_id,
            step=self.step_number,
            instruction=self.instruction,
            observation=Observation.from_json(answer.get("observation", {})),
            reward=float(answer.get("reward", 0)),
            terminated=answer.get("terminated", False),
            truncated=answer.get("truncated", False),
            info=Info.from_json(answer.get("info", {})),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_beat": None}


def _same(a: tuple[str, dict[str, Any]], b: tuple[str, dict[str, Any]]) -> bool:
    """Tell whether two numbered calls ask for the same thing."""
    return a[0] == b[0] and all(a[1].get(k) == b[1].get(k) for k in ("action", "checkpointId"))


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
        self.last_call = time.monotonic()
        weakref.finalize(session, self._stop.set)
        threading.Thread(target=self._run, name="pommel-heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(max(self.last_call + self._pause - time.monotonic(), 0)):
            if time.monotonic() < self.last_call + self._pause:
                continue
            self.last_call = time.monotonic()
            try:
                self._client.call("Heartbeat", {"episodeId": self._episode_id})
            except (Unavailable, DeadlineExceeded):
                continue
            except PommelError:
                break  # the next call of the session gets the error
        self._client.close()
