"""The Gymnasium side, against the fake server."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from fake import Failure, FakeGym
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import pommel
from pommel.spaces import Action, Records, Unicode


def lost(action: str) -> None:
    if action == "die()":
        raise Failure("world_lost", "the browser died")


def test_check_env(fake: FakeGym) -> None:
    fake.size = (1280, 720)
    for kwargs in ({}, {"elements": True, "html": True, "screenshot": True, "render_mode": "rgb_array"}):
        env = gymnasium.make("pommel/shop-v0", address=fake.address, task="buy-item", **kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped, skip_render_check=not kwargs)
        env.close()


def test_episode(fake: FakeGym) -> None:
    env = pommel.make("buy-item", fake.address, elements=True)
    obs, info = env.reset(seed=7)
    assert obs in env.observation_space
    assert obs["goal"] == "Buy it." and obs["text"].endswith("seed 7") and obs["elements"][0]["name"] == "Buy"
    assert info["task"] == "buy-item" and info["seed"] == 7 and info["stages"] == {"done": False} and info["void"] is False
    obs, reward, terminated, truncated, info = env.step("click('bad')")
    assert (obs["last_action"], obs["last_action_error"]) == ("click('bad')", "not_found: no element")
    assert (reward, terminated, truncated) == (0.0, False, False)
    env.step("noop()")
    obs, reward, terminated, truncated, info = env.step("noop()")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert env.unwrapped.last_result.info.verdict == {"why": "rows"}  # type: ignore[attr-defined]
    with pytest.raises(pommel.EpisodeOver):
        env.step("noop()")
    env.close()
    env.close()
    assert fake.closed == ["e1"]


def test_draws_are_repeatable_and_stay_in_their_split(fake: FakeGym) -> None:
    for split, digits in {"train": range(7), "validation": range(7, 9), "test": range(9, 10), "": range(10)}.items():
        tasks = {"train": {"buy-item"}, "test": {"refund"}, "": {"buy-item", "refund"}}.get(split)
        if tasks is None:
            with pytest.raises(pommel.NotFound, match="validation"):
                pommel.PommelEnv(fake.address, split=split).reset(seed=0)
        env = pommel.PommelEnv(fake.address, split=split, task=None if tasks else "buy-item")
        draws = []
        for _ in range(2):
            env.reset(seed=5)
            infos = [env.reset()[1] for _ in range(20)]
            draws.append([(i["task"], i["seed"]) for i in infos])
        assert draws[0] == draws[1] and len(set(draws[0])) > 10
        assert {seed % 10 for _, seed in draws[0]} <= set(digits)
        assert tasks is None or {task for task, _ in draws[0]} == tasks
        env.close()


def test_options(fake: FakeGym) -> None:
    env = pommel.PommelEnv(fake.address, task="buy-item", max_steps=9)
    assert env.reset(seed=1, options={"task": "refund", "max_steps": 4})[1]["task"] == "refund"
    assert env.reset(seed=1)[1]["task"] == "buy-item"
    assert [r["maxSteps"] for r in fake.named("Reset")] == [4, 9]
    with pytest.raises(pommel.InvalidArgument, match="tusk"):
        env.reset(options={"tusk": "refund"})
    with pytest.raises(pommel.NotFound, match="nope"):
        env.reset(options={"task": "nope"})
    with pytest.raises(pommel.InvalidArgument, match="want a string"):
        env.step(3)  # type: ignore[arg-type]
    env.close()
    for bad in ({"split": "trian"}, {"on_lost": "ignore"}, {"render_mode": "human"}):
        with pytest.raises(pommel.InvalidArgument, match="want one of"):
            pommel.PommelEnv(fake.address, **bad)  # type: ignore[arg-type]


def test_profile(fake: FakeGym) -> None:
    env = pommel.PommelEnv(fake.address, task="buy-item", profile="mild")
    assert not {"perturbed", "perturbations", "profile"} & set(env.reset(seed=1)[0])
    obs, info = env.reset(seed=1, options={"profile": "rough@0.5"})
    assert [r["profile"] for r in fake.named("Reset")] == ["mild", "rough@0.5"]
    assert info["perturbed"] and info["profile"] == "rough@0.5"
    told = env.unwrapped.last_result.info
    assert info["capped"] and not info["reproducible"] and told.not_reproducible == "it was slow"
    assert info["perturbations"] == [
        {
            "virtual_ms": 1500, "step": 1, "rule": "http.error", "kind": "http.error", "at": 2, "target": "GET /cart",
            "seen": "503", "settings": {"status": 503, "style": "icon"}, "cost": 2,
        }
    ]  # fmt: skip
    env.reset(seed=1, options={"profile": ""})
    assert env.last_result is not None and not env.last_result.info.perturbations
    env.close()


def test_other_world(fake: FakeGym) -> None:
    env = pommel.PommelEnv(fake.address, task="a", world="bank")
    with pytest.raises(pommel.InvalidArgument, match="runs world 'shop', not 'bank'"):
        env.reset()
    env.close()


def test_pictures(fake: FakeGym) -> None:
    env = pommel.PommelEnv(fake.address, task="buy-item", screenshot=True, viewport=(64, 48), render_mode="rgb_array")
    obs, _ = env.reset(seed=1)
    assert obs in env.observation_space and obs["screenshot"].shape == (48, 64, 3) and tuple(obs["screenshot"][0, 0]) == (10, 20, 30)
    picture = env.render()
    assert picture is not None and picture.shape == (48, 64, 3) and picture.dtype == np.uint8
    fake.size = (32, 32)
    with pytest.raises(pommel.InvalidArgument, match=r"pass viewport=\(32, 32\)"):
        env.step("noop()")
    env.close()


def test_infrastructure_fault_is_no_reward(fake: FakeGym) -> None:
    fake.fail = lost
    env = pommel.PommelEnv(fake.address, task="buy-item")
    env.reset(seed=1)
    for _ in range(2):
        with pytest.raises(pommel.WorldLost, match="the browser died"):
            env.step("die()")
    env.reset(seed=1)
    assert env.step("noop()")[1] == 0.0
    env.close()


def test_registration(fake: FakeGym) -> None:
    ids = pommel.register_tasks(fake.address)
    assert ids == ["pommel/shop-v0", "pommel/shop-buy-item-v0", "pommel/shop-refund-v0"]
    try:
        with gymnasium.make("pommel:pommel/shop-refund-v0") as env:
            assert env.reset(seed=1)[1]["task"] == "refund"
            assert env.spec is not None and env.spec.id == "pommel/shop-refund-v0"
    finally:
        pommel.register_envs()
        for name in ids[1:]:
            del gymnasium.registry[name]


class Script:
    """Three-step episodes that know where they are (fake: START is page 0, END is page 3)."""

    def __init__(self, fake: FakeGym) -> None:
        self.fake = fake

    def make(self, **kwargs: Any) -> Any:
        return lambda: pommel.PommelEnv(self.fake.address, task="buy-item", heartbeat=False, **kwargs)


def page(obs: dict[str, Any], i: int) -> str:
    return str(obs["text"][i][:6])


def test_end_of_an_episode_with_autoreset_in_the_same_call(fake: FakeGym) -> None:
    envs = SyncVectorEnv([Script(fake).make()] * 4, autoreset_mode=AutoresetMode.SAME_STEP)
    obs, _ = envs.reset(seed=10)
    kept = obs["text"]
    for _ in range(3):
        obs, reward, terminated, truncated, infos = envs.step(["noop()"] * 4)
    for i in range(4):
        assert page(obs, i) == "page 0"
        assert infos["final_obs"][i]["text"].startswith("page 3")
        assert (reward[i], terminated[i], truncated[i]) == (1.0, True, False)
    assert [t[:6] for t in kept] == ["page 0"] * 4
    envs.close()


def test_end_of_an_episode_with_autoreset_in_the_next_call(fake: FakeGym) -> None:
    envs = SyncVectorEnv([Script(fake).make()] * 2)
    envs.reset(seed=10)
    for _ in range(3):
        obs, reward, terminated, _, _ = envs.step(["noop()"] * 2)
    assert page(obs, 0) == "page 3" and list(reward) == [1.0, 1.0] and all(terminated)
    obs, reward, terminated, _, _ = envs.step(["ignored()"] * 2)
    assert page(obs, 0) == "page 0" and list(reward) == [0.0, 0.0] and not any(terminated)
    assert not [r for r in fake.named("Step") if r["action"] == "ignored()"]
    envs.close()


def test_processes(fake: FakeGym) -> None:
    envs = AsyncVectorEnv([Script(fake).make()] * 2, shared_memory=False)
    obs, _ = envs.reset(seed=[1, 2])
    assert [t.split()[-1] for t in obs["text"]] == ["1", "2"]
    obs, _, _, _, infos = envs.step(["noop()", "click('bad')"])
    assert obs["last_action_error"] == ("", "not_found: no element") and list(infos["seed"]) == [1, 2]
    envs.close()
    with pytest.raises(ValueError, match="shared_memory=False"):
        AsyncVectorEnv([Script(fake).make()], shared_memory=True)


def test_one_lost_world_does_not_stop_the_others(fake: FakeGym) -> None:
    fake.fail = lost
    envs = SyncVectorEnv([Script(fake).make(on_lost="truncate")] * 3)
    envs.reset(seed=10)
    obs, reward, terminated, truncated, infos = envs.step(["noop()", "die()", "noop()"])
    assert list(infos["void"]) == [False, True, False]
    assert math.isnan(reward[1]) and list(reward[[0, 2]]) == [0.0, 0.0]
    assert list(truncated) == [False, True, False] and not any(terminated)
    assert infos["error"][1] == "world_lost" and page(obs, 1) == "page 0"
    obs, reward, _, _, infos = envs.step(["noop()"] * 3)
    assert not any(infos["void"]) and [page(obs, i) for i in range(3)] == ["page 2", "page 0", "page 2"]
    envs.close()


def test_spaces() -> None:
    text, action, records = Unicode(100, seed=1), Action(seed=1), Records(seed=1)
    for space in (text, action, records):
        for _ in range(50):
            assert space.sample() in space
        space.seed(3)
        first = [space.sample() for _ in range(5)]
        space.seed(3)
        assert first == [space.sample() for _ in range(5)]
    assert "\u6f22\U0001f600\x00" in text and "x" * 101 not in text and 3 not in text
    assert [{"a": [1, "b", None, True]}] in records and [{"a": object()}] not in records and [1] not in records
    assert text == Unicode(100) and text != Unicode(99) and text != Action(100)
    assert gymnasium.spaces.Dict(a=text) == gymnasium.spaces.Dict(a=Unicode(100))
