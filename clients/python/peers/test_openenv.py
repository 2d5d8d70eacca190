"""The client of the package openenv."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import TASK, action, free_worlds, solution
from openenv import GenericEnvClient
from openenv.cli._validation import validate_running_environment

import pommel


async def solve(env: GenericEnvClient, seed: int) -> float:
    result = await env.reset(task=TASK, seed=seed)
    assert result.reward is None and not result.done
    total = 0.0
    for name, args in solution(result.observation["goal"]):
        result = await env.step({"action_str": action(name, args)})
        assert result.observation["error"] == "", result.observation["error"]
        total += result.reward
    assert result.done and result.metadata["success"], result.metadata
    return total


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
    """Each session works on its own world, again and again; POMMEL_SOAK=1 is the long form."""
    sessions, episodes = (4, 500) if os.environ.get("POMMEL_SOAK") else (4, 12)

    async def work(n: int) -> list[float]:
        async with GenericEnvClient(base_url=server.address) as env:
            return [await solve(env, seed) for seed in range(n, episodes, sessions)]

    async def run() -> list[list[float]]:
        return await asyncio.gather(*(work(n) for n in range(sessions)))

    rewards = [r for part in asyncio.run(run()) for r in part]
    assert rewards == pytest.approx([1.0] * episodes)
    wait_for_worlds(server, 4)


def wait_for_worlds(server: pommel.Server, n: int, limit: float = 60.0) -> float:
    start = time.monotonic()
    while free_worlds(server) < n:
        assert time.monotonic() - start < limit, f"{free_worlds(server)} of {n} worlds are free"
        time.sleep(0.1)
    return time.monotonic() - start


CLIENT = """
import sys
from openenv import GenericEnvClient
env = GenericEnvClient(base_url=sys.argv[1]).sync()
env.connect()
print(env.reset(task=sys.argv[2], seed=1).metadata["episode_id"], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
def test_vanished_clients_free_their_worlds(server: pommel.Server, way: signal.Signals) -> None:
    """Killed ones at once, those that stand still within the lease."""
    clients = [
        subprocess.Popen([sys.executable, "-c", CLIENT, server.address, TASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    try:
        for c in clients:
            assert c.stdout is not None and c.stdout.readline()
        for c in clients[:2]:
            c.send_signal(way)
        wait_for_worlds(server, 2)
        with GenericEnvClient(base_url=server.address).sync() as env:
            env.reset(task=TASK, seed=1)
    finally:
        for c in clients:
            c.kill()
            c.communicate()
    wait_for_worlds(server, 4)


def test_capacity(server: pommel.Server) -> None:
    envs = [GenericEnvClient(base_url=server.address).sync() for _ in range(5)]
    try:
        for env in envs[:4]:
            env.connect()
            env.reset(task=TASK, seed=1)
        with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
            envs[4].connect()
            envs[4].reset(task=TASK, seed=1)
    finally:
        for env in envs:
            env.close()
    wait_for_worlds(server, 4)


def test_own_validation(server: pommel.Server) -> None:
    report = validate_running_environment(server.address)
    assert report["passed"], [c for c in report["criteria"] if not c["passed"]]
