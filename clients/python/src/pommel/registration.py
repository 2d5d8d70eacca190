"""Names for gymnasium.make."""

from __future__ import annotations

from typing import Any

import gymnasium

from .client import Client

_ENTRY_POINT = "pommel.env:PommelEnv"
_VECTOR_ENTRY_POINT = "pommel.vector:PommelVectorEnv"

# The worlds that come with Pommel. Names of other worlds come from `register_tasks`.
_WORLDS = ("shop",)


def register_envs() -> None:
    """Register pommel/gym-v0 (whatever the server runs) and pommel/<world>-v0."""
    _register("pommel/gym-v0", {})
    for world in _WORLDS:
        _register(f"pommel/{world}-v0", {"world": world})


def register_tasks(address: str | None = None, **kwargs: Any) -> list[str]:
    """Ask a server for its tasks and register pommel/<world>-<task>-v0 for each, and pommel/<world>-v0.

    Args:
        address: Of the server, as for `pommel.Client`. The names stay bound to it.
        **kwargs: Further arguments that the environments get by default.

    Returns:
        The ids that can now be given to gymnasium.make.
    """
    connection = {k: kwargs[k] for k in ("token", "timeout", "retries", "ssl_context") if k in kwargs}
    client = Client(address, **connection)
    try:
        world, tasks = client.server().world, client.tasks()
    finally:
        client.close()
    kwargs = {**kwargs, "world": world, "address": client.address}
    ids = [_register(f"pommel/{world}-v0", kwargs)]
    for task in tasks:
        ids.append(_register(f"pommel/{world}-{task.id}-v0", {**kwargs, "task": task.id}))
    return ids


def make(task: str | None = None, address: str | None = None, **kwargs: Any) -> gymnasium.Env[dict[str, Any], str]:
    """Make the environment of a task of whatever world the server at address runs.

    The same as ``gymnasium.make("pommel/gym-v0", task=..., address=..., ...)``.
    """
    return gymnasium.make("pommel/gym-v0", task=task, address=address, **kwargs)


def make_vec(num_envs: int, task: str | None = None, address: str | None = None, **kwargs: Any) -> Any:
    """Make a `pommel.vector.PommelVectorEnv`, whatever world the server at address runs."""
    return gymnasium.make_vec("pommel/gym-v0", num_envs=num_envs, task=task, address=address, **kwargs)


def _register(env_id: str, kwargs: dict[str, Any]) -> str:
    # Asking the same server again is right and not worth a warning.
    gymnasium.registry.pop(env_id, None)
    gymnasium.register(id=env_id, entry_point=_ENTRY_POINT, vector_entry_point=_VECTOR_ENTRY_POINT, kwargs=kwargs)
    return env_id
