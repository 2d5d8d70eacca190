"""The OpenEnv taskset of the package verifiers, with a scripted model in the player's seat."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from plays import TASK, action, solution
from verifiers.v1.tasksets.openenv.taskset import OpenEnvConfig, OpenEnvEnv, OpenEnvEnvConfig, OpenEnvTaskset

import pommel


class Player:
    """A model that knows the solution and answers in plain text, as models do."""

    def __init__(self) -> None:
        self.rewards: dict[str, float] = {}
        self.seen: list[str] = []
        self.plan: list[str] = []

    @asynccontextmanager
    async def interaction(self, task: Any) -> Any:
        self.seen, self.plan = [], []
        trace = SimpleNamespace(record_reward=lambda _, v: self.rewards.update({task.data.name: v}), stop=lambda reason: pytest.fail(reason))
        yield SimpleNamespace(turn=self.turn, trace=trace)

    async def turn(self, payload: str) -> Any:
        self.seen.append(payload)
        asked = json.loads(payload)
        if not self.plan:
            self.plan = [action(*step) for step in solution(asked["observation"]["goal"])]
        return SimpleNamespace(last_reply=self.plan.pop(0), terminated=False)


def test_taskset(server: pommel.Server) -> None:
    resets = [{"task": TASK, "seed": seed} for seed in (1, 2, 3)]
    config = OpenEnvConfig(id="openenv", base_url=server.address, resets=resets)
    env = OpenEnvEnv(OpenEnvEnvConfig(taskset=config))
    player = Player()
    for task in OpenEnvTaskset(config).load():
        asyncio.run(env.run(task, SimpleNamespace(player=player)))
        for word in ('"success"', '"stages"', '"potential"', '"verdict"'):
            assert not any(word in s for s in player.seen), f"the model is shown {word}"
    assert list(player.rewards.values()) == pytest.approx([1.0] * 3)
