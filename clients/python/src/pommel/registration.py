"""Names for gymnasium.make."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium

from .client import Client
from .discover import worlds
from .local import servers

_ENTRY_POINT = "pommel.env:PommelEnv"
_BROWSERGYM_ENTRY_POINT = "pommel.browsergym:BrowserGymEnv"
_VECTOR_ENTRY_POINT = "pommel.vector:PommelVectorEnv"


def register_envs() -> None:
    """Register pommel/gym-v0 (whatever the server runs) and pommel/<world>-v0 for each world of this machine.

    Names of worlds that only a server knows come from `register_tasks`.
    """
    _register("pommel/gym-v0", {})
    _register("pommel/browsergym-v0", {}, _BROWSERGYM_ENTRY_POINT)
    for world in worlds():
        _register(f"pommel/{world}-v0", {"world": world})


def register_tasks(address: str | None = None, world: str | None = None, **kwargs: Any) -> list[str]:
    """Ask a server for its tasks and register pommel/<world>-<task>-v0 for each, and pommel/<world>-v0.

    Each is also registered as browsergym/pommel.<world>.<task>, see `pommel.browsergym.BrowserGymEnv`.

    Args:
        address: Of the server. The names stay bound to it. None is $POMMEL_ADDRESS, or else a server that
            is started for the question, as each environment that is then made starts one.
        world: That such a server runs.
        **kwargs: Further arguments that the environments get by default.

    Returns:
        The ids that can now be given to gymnasium.make.
    """
    connection = {k: kwargs[k] for k in ("token", "timeout", "retries", "ssl_context") if k in kwargs}
    address = address or os.environ.get("POMMEL_ADDRESS")
    room = None if address else servers.take(world, args=kwargs.get("serve_args", ()))
    if room is not None:
        connection["token"] = room.token
    client = Client(room.address if room else address, **connection)
    try:
        runs, tasks = client.server().world, client.tasks()
    finally:
        client.close()
        if room is not None:
            room.close()
    # A world that was named by its folder is found by that only.
    kwargs = {**kwargs, "world": runs if address else world or runs, "address": address}
    ids = [_register(f"pommel/{runs}-v0", kwargs)]
    for task in tasks:
        ids.append(_register(f"pommel/{runs}-{task.id}-v0", {**kwargs, "task": task.id}))
        _register(f"browsergym/pommel.{runs}.{task.id}", {**kwargs, "task": task.id}, _BROWSERGYM_ENTRY_POINT)
    return ids


def make(
    task: str | None = None, address: str | None = None, *, browsergym: bool = False, **kwargs: Any
) -> gymnasium.Env[Any, str]:
    """Make the environment of a task.

    The same as ``gymnasium.make("pommel/gym-v0", task=..., address=..., ...)``. Without an address a
    server of world ``world=`` is started for as long as the environment needs it. With ``browsergym``
    observations have BrowserGym's form (``pommel/browsergym-v0``).
    """
    env_id = "pommel/browsergym-v0" if browsergym else "pommel/gym-v0"
    return gymnasium.make(env_id, task=task, address=address, **kwargs)


def make_vec(num_envs: int, task: str | Sequence[str] | None = None, address: str | None = None, **kwargs: Any) -> Any:
    """Make a `pommel.vector.PommelVectorEnv`: many environments that step at the same time."""
    return gymnasium.make_vec("pommel/gym-v0", num_envs=num_envs, task=task, address=address, **kwargs)


def _register(env_id: str, kwargs: dict[str, Any], entry_point: str = _ENTRY_POINT) -> str:
    # Asking the same server again is right and not worth a warning.
    gymnasium.registry.pop(env_id, None)
    vector = _VECTOR_ENTRY_POINT if entry_point == _ENTRY_POINT else None
    gymnasium.register(id=env_id, entry_point=entry_point, vector_entry_point=vector, kwargs=kwargs)
    return env_id
