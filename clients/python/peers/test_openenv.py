"""The client of the package openenv."""

from __future__ import annotations

import asyncio
import signal

import pytest
from conftest import WORLDS
from openenv import GenericEnvClient
from openenv.cli._validation import validate_running_environment
from plays import TASK
from soak_openenv import kill_half, play, solve, wait_for_worlds

import pommel


def test_episode(server: pommel.Server) -> None:
    with GenericEnvClient(base_url=server.address).sync() as env:
        first = env.reset(task=TASK, seed=3, episode_id="mine", screenshot="png")
        assert first.observation["screenshot"]["format"] == "png"
        assert first.metadata["seed"] == 3 and "metadata" not in first.observation
        assert env.state()["episode_id"] == "mine" and env.state()["step_count"] == 0
        bad = env.step({"action_str": "click('999999')"})
        assert bad.observation["last_action_error"] and bad.reward == 0 and not bad.done
        assert env.state()["step_count"] == 1
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            env.step({"action": "noop()"})
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            env.reset(taks=TASK)
        end = env.step({"action_str": "report_infeasible('cannot')"})
        assert end.done and not end.metadata["success"]
        with pytest.raises(RuntimeError, match="EXECUTION_ERROR"):
            env.step({"action_str": "noop()"})
        chosen = env.reset(seed=41)
        assert env.reset(seed=41).observation["goal"] == chosen.observation["goal"]


def test_task_is_solved(server: pommel.Server) -> None:
    async def one() -> float:
        async with GenericEnvClient(base_url=server.address) as env:
            return await solve(env, 11)

    assert asyncio.run(one()) == pytest.approx(1.0)


def test_sessions_at_once(server: pommel.Server) -> None:
    """Each session works on its own world, again and again; soak_openenv.py is the long form."""
    wait_for_worlds(server, WORLDS, 300)
    assert asyncio.run(play(server.address, WORLDS, 3 * WORLDS)) == []
    wait_for_worlds(server, WORLDS)


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
def test_vanished_clients_free_their_worlds(server: pommel.Server, way: signal.Signals) -> None:
    """Killed ones at once, those that stand still within the lease."""
    kill_half(server, WORLDS, way)


def test_capacity(server: pommel.Server) -> None:
    envs = [GenericEnvClient(base_url=server.address).sync() for _ in range(WORLDS + 1)]
    try:
        for env in envs[:WORLDS]:
            env.connect()
            env.reset(task=TASK, seed=1)
        with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
            envs[WORLDS].connect()
            envs[WORLDS].reset(task=TASK, seed=1)
    finally:
        for env in envs:
            env.close()
    wait_for_worlds(server, WORLDS)


def test_own_validation(server: pommel.Server) -> None:
    report = validate_running_environment(server.address)
    assert report["passed"], [c for c in report["criteria"] if not c["passed"]]
