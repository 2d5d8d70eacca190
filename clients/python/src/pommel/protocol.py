"""The rules by which an agent's calls become calls of the server, without any input or output.

Each rule is a generator: it yields the calls to make, and is sent their answers or thrown their
errors. `pommel.Session` drives it by blocking, `pommel.aio.AsyncSession` by awaiting.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from typing import Any, TypeVar

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

T = TypeVar("T")
Answer = dict[str, Any]
Calls = Generator[tuple[str, dict[str, Any]], Answer, T]


class Protocol:
    """One episode after the other: numbers their steps, and asks again for what was not answered."""

    def __init__(self, view: View, name: str) -> None:
        self.view = view
        self.name = name
        self.episode_id = ""
        self.instruction = ""
        self.step_number = 0
        self.last_call = time.monotonic()
        self._default_lease = 0.0
        # Step, checkpoint and restore share one row of numbers, of which none is used twice.
        self._calls = 0
        # The call whose result is not known: it was sent, and no answer came.
        self._pending: tuple[str, dict[str, Any]] | None = None
        # Likewise a reset: what was asked for, and by which id.
        self._asked: tuple[dict[str, Any], str] | None = None
        self._saved: set[str] = set()
        self._lost: PommelError | None = None

    def _start_beat(self, lease: float) -> None:
        """Keep the lease of the episode from now on."""

    def _stop_beat(self) -> None:
        """Keep it no more."""

    def _do_reset(self, request: dict[str, Any], lease: float | None, heartbeat: bool) -> Calls[Result]:
        self._stop_beat()
        # A reset that was not answered may have taken a world: the same id gets that one.
        again = self._asked is not None and self._asked[0] == request
        self._asked = (request, self._asked[1] if again and self._asked else secrets.token_hex(16))
        try:
            answer = yield "Reset", {**request, "requestId": self._asked[1], "previousEpisodeId": self.episode_id}
        except (DeadlineExceeded, Unavailable):
            raise
        except PommelError:
            self._asked = None
            raise
        self.episode_id, self.instruction = answer.get("episodeId", ""), answer.get("instruction", "")
        self.step_number, self._calls, self._pending, self._asked, self._lost = 0, 0, None, None, None
        self._saved = set()
        self.last_call = time.monotonic()
        if heartbeat:
            if lease is None and self._default_lease == 0:
                self._default_lease = int((yield "GetServer", {}).get("leaseMs", 0)) / 1000
            self._start_beat(self._default_lease if lease is None else lease)
        return self._result(answer)

    def _do_step(self, action: str) -> Calls[Result]:
        request = {"step": self._calls + 1, "action": action, "view": self.view.to_json()}
        answer = yield from self._numbered("Step", request)
        self.step_number = int(answer.get("step", 0))
        result = self._result(answer)
        if (result.terminated or result.truncated) and not self._saved:
            self._stop_beat()
        return result

    def _do_checkpoint(self) -> Calls[str]:
        answer = yield from self._numbered("Checkpoint", {"call": self._calls + 1})
        return str(answer.get("checkpointId", ""))

    def _do_restore(self, checkpoint: str) -> Calls[Result]:
        if checkpoint not in self._saved:
            raise InvalidArgument(
                f"the episode has no checkpoint {checkpoint!r}", "give one that checkpoint() returned in this episode"
            )
        answer = yield from self._numbered("Restore", {"call": self._calls + 1, "checkpointId": checkpoint})
        self.step_number = int(answer.get("step", 0))
        return self._result(answer)

    def _do_forget(self, checkpoint: str) -> Calls[None]:
        self._in_episode()
        if checkpoint in self._saved:
            yield from self._judged("Forget", {"checkpointId": checkpoint})
            self._saved.discard(checkpoint)

    def _do_observe(self, view: View | None) -> Calls[Observation]:
        self._in_episode()
        answer = yield from self._judged("Observe", {"view": (view or self.view).to_json()})
        return Observation.from_json(answer.get("observation", {}))

    def _do_heartbeat(self) -> Calls[float]:
        self._in_episode()
        answer = yield from self._judged("Heartbeat", {})
        return int(answer.get("leaseMs", 0)) / 1000

    def _do_close(self) -> Calls[None]:
        self._stop_beat()
        episode_id, self.episode_id = self.episode_id, ""
        if episode_id:
            try:
                yield "Close", {"episodeId": episode_id}
            except InfrastructureError:
                pass  # the lease frees what cannot be reached

    def _numbered(self, method: str, request: dict[str, Any]) -> Calls[Answer]:
        """Make the next call that changes the episode.

        A call whose answer did not come is asked for again first, with its own number, unless
        it is the very one that is wanted.
        """
        self._in_episode()
        if self._pending is not None and not _same(self._pending, (method, request)):
            yield from self._resolve()
            request = {**request, "step" if method == "Step" else "call": self._calls + 1}
        if self._pending is None:
            self._pending = (method, request)
        return (yield from self._resolve())

    def _resolve(self) -> Calls[Answer]:
        assert self._pending is not None
        method, request = self._pending
        try:
            answer = yield from self._judged(method, request)
        except (DeadlineExceeded, Unavailable):
            raise
        except PommelError:
            self._pending = None
            raise
        self._calls, self._pending = self._calls + 1, None
        if method == "Checkpoint":
            self._saved.add(str(answer.get("checkpointId", "")))
        self.last_call = time.monotonic()
        return answer

    def _judged(self, method: str, request: dict[str, Any]) -> Calls[Answer]:
        """Make a call of this episode, and mark the episode when an error has ended it."""
        try:
            return (yield method, {"episodeId": self.episode_id, **request})
        except PommelError as e:
            lost: PommelError = e
        if isinstance(lost, NotFound):
            # The server gave this id away itself, so it has lost its memory.
            cause, lost = lost, WorldLost("the server does not know the episode any more", "it was restarted; the episode is void")
            lost.__cause__ = cause
        if isinstance(lost, (WorldLost, LeaseExpired, StaleEpisode)):
            self._lost = lost
            self._stop_beat()
        raise lost

    def _in_episode(self) -> None:
        if self._lost is not None:
            raise self._lost
        if not self.episode_id:
            raise EpisodeOver("no episode was started", "call reset")

    def _result(self, answer: Answer) -> Result:
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

    def _reset_request(
        self, task: str, seed: int, wait: float | None, lease: float | None, max_steps: int, profile: str
    ) -> dict[str, Any]:
        return {
            "task": task,
            "seed": str(seed),
            "view": self.view.to_json(),
            "client": self.name,
            "waitMs": 0 if wait is None else max(1, int(wait * 1000)) if wait > 0 else -1,
            "leaseMs": 0 if lease is None else max(1, int(lease * 1000)),
            "maxSteps": max_steps,
            "profile": profile,
        }


def _same(a: tuple[str, dict[str, Any]], b: tuple[str, dict[str, Any]]) -> bool:
    """Tell whether two numbered calls ask for the same thing."""
    return a[0] == b[0] and all(a[1].get(k) == b[1].get(k) for k in ("action", "checkpointId"))
