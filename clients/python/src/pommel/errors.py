"""What can go wrong, apart from a bad action of the agent.

A bad action is part of the observation (``last_action_error``), never an exception.
"""

from __future__ import annotations


class PommelError(Exception):
    """A typed failure.

    Attributes:
        kind: The stable name of the failure, see docs/api.md.
        message: What happened.
        hint: What to do about it, or "".
    """

    kind = "internal"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[PommelError], tuple[str, str]]:
        # Vector environments send exceptions from process to process.
        return type(self), (self.message, self.hint)


class InfrastructureError(PommelError):
    """The episode is void by no fault of the agent: leave it out of the training data, and reset."""


class WorldLost(InfrastructureError):
    """A fault of the infrastructure ended the episode."""

    kind = "world_lost"


class LeaseExpired(InfrastructureError):
    """This caller was silent for longer than its lease, and its world was given back."""

    kind = "lease_expired"


class Unavailable(InfrastructureError):
    """The server cannot be reached, or is shutting down."""

    kind = "unavailable"


class DeadlineExceeded(InfrastructureError):
    """The server gave no answer in time. Stepping again with the same action gets its result."""

    kind = "deadline_exceeded"


class InternalError(InfrastructureError):
    """A defect of Pommel."""

    kind = "internal"


class InvalidArgument(PommelError):
    """The request is wrong; the same request will fail again."""

    kind = "invalid_argument"


class NotFound(PommelError):
    """The task or episode that was named does not exist."""

    kind = "not_found"


class EpisodeOver(PommelError):
    """The episode has ended; reset before the next step."""

    kind = "episode_over"


class StaleEpisode(PommelError):
    """The call names an episode or a step that is not the current one."""

    kind = "stale_episode"


class ResourceExhausted(PommelError):
    """All worlds are taken; try again later."""

    kind = "resource_exhausted"


class Unsupported(PommelError):
    """The server's host cannot do what was asked; ``pommel doctor`` says why."""

    kind = "unsupported"


class Canceled(PommelError):
    """The call was given up."""

    kind = "canceled"


class Unauthenticated(PommelError):
    """The token is missing or wrong, or the server refuses this caller."""

    kind = "unauthenticated"


_BY_KIND: dict[str, type[PommelError]] = {
    c.kind: c
    for c in (
        WorldLost, LeaseExpired, Unavailable, DeadlineExceeded, InternalError, InvalidArgument, NotFound,
        EpisodeOver, StaleEpisode, ResourceExhausted, Unsupported, Canceled, Unauthenticated,
    )
}  # fmt: skip

# Codes of answers that carry no pommel.v1.Error: they come from proxies, or from before the gym.
_BY_CODE = {
    "unauthenticated": "unauthenticated",
    "permission_denied": "unauthenticated",
    "unavailable": "unavailable",
    "deadline_exceeded": "deadline_exceeded",
    "unimplemented": "unsupported",
}


def error_of(kind: str, message: str, hint: str = "", code: str = "") -> PommelError:
    """Make the exception for an error of the wire."""
    if not kind:
        kind = _BY_CODE.get(code, code)
    return _BY_KIND.get(kind, InternalError)(message, hint)
