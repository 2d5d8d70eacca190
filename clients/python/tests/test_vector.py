"""Many environments at once, against the fake server."""

from __future__ import annotations

import math
import threading
from typing import Any

import gymnasium
import gymnasium.wrappers.vector
import numpy as np
import pytest
from fake import Failure, FakeGym
from gymnasium.vector import AutoresetMode

import pommel
from pommel.vector import PommelVectorEnv


def make(fake: FakeGym, n: int, **kwargs: Any) -> PommelVectorEnv:
    return PommelVectorEnv(n, fake.address, task="buy-item", heartbeat=False, **kwargs)


def pages(obs: dict[str, Any]) -> list[str]:
    return [t[:6] for t in obs["text"]]


def lost(action: str) -> None:
    if action == "die()":
        raise Failure("world_lost", "the browser died")


def test_next_step(fake: FakeGym) -> None:
    envs = make(fake, 4)
    obs, infos = envs.reset(seed=10)
    assert obs in envs.observation_space and list(infos["seed"]) == [10, 11, 12, 13]
    kept = obs
    for _ in range(3):
        obs, reward, terminated, truncated, infos = envs.step(["noop()"] * 4)
    assert pages(obs) == ["page 3"] * 4 and list(reward) == [1.0] * 4 and all(terminated) and not any(truncated)
    assert all(infos["success"]) and all(infos["stages"]["done"])
    obs, reward, terminated, _, _ = envs.step(["ignored()"] * 4)
    assert pages(obs) == ["page 0"] * 4 and not any(reward) and not any(terminated)
    assert not [r for r in fake.named("Step") if r["action"] == "ignored()"]
    assert pages(kept) == ["page 0"] * 4
    envs.close()
    assert len(fake.closed) == 4


def test_same_step(fake: FakeGym) -> None:
    envs = make(fake, 2, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=10)
    for _ in range(3):
        obs, reward, terminated, truncated, infos = envs.step(["noop()"] * 2)
    assert pages(obs) == ["page 0"] * 2 and list(reward) == [1.0, 1.0] and all(terminated)
    assert [o["text"][:6] for o in infos["final_obs"]] == ["page 3"] * 2
    assert all(infos["final_info"]["success"]) and not any(infos["success"])
    envs.close()


def test_without_autoreset(fake: FakeGym) -> None:
    envs = make(fake, 2, autoreset_mode="Disabled")
    with pytest.raises(pommel.InvalidArgument, match="first reset"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=10)
    for _ in range(3):
        obs, _, terminated, _, _ = envs.step(["noop()"] * 2)
    with pytest.raises(pommel.EpisodeOver):
        envs.step(["noop()"] * 2)
    obs, infos = envs.reset(options={"reset_mask": np.array([False, True])})
    assert pages(obs) == ["page 3", "page 0"] and list(infos["_task"]) == [False, True]
    with pytest.raises(pommel.InvalidArgument, match="no mask"):
        envs.reset(options={"reset_mask": np.array([False, False])})
    envs.close()


def test_one_lost_world_does_not_stop_the_others(fake: FakeGym) -> None:
    fake.fail = lost
    envs = make(fake, 8)
    envs.reset(seed=0)
    actions = ["noop()"] * 8
    actions[3] = "die()"
    obs, reward, terminated, truncated, infos = envs.step(actions)
    assert [i for i in range(8) if infos["void"][i]] == [3] and infos["error"][3] == "world_lost"
    assert math.isnan(reward[3]) and truncated[3] and not any(terminated) and np.nansum(reward) == 0
    obs, reward, _, _, infos = envs.step(["noop()"] * 8)
    assert not any(infos["void"]) and pages(obs)[3] == "page 0" and pages(obs)[4] == "page 2"
    envs.close()


def test_ready_first(fake: FakeGym) -> None:
    release = threading.Event()

    def fail(action: str) -> None:
        if action == "slow()":
            release.wait(30)

    fake.fail = fail
    envs = make(fake, 4, batch_size=2)
    envs.async_reset(seed=0)
    seen: list[int] = []
    for _ in range(2):
        obs, _, _, _, infos = envs.recv()
        assert pages(obs) == ["page 0"] * 2 and list(infos["seed"]) == list(infos["env_id"])
        seen += list(infos["env_id"])
    assert sorted(seen) == [0, 1, 2, 3]
    envs.send(["slow()", "slow()"], [0, 2])
    envs.send(["noop()", "noop()"], [1, 3])
    obs, reward, terminated, truncated, infos = envs.recv()
    assert list(infos["env_id"]) == [1, 3] and pages(obs) == ["page 1"] * 2 and reward.shape == (2,)
    with pytest.raises(pommel.InvalidArgument, match="environment 0 has not answered"):
        envs.send(["noop()"], [0])
    with pytest.raises(pommel.InvalidArgument, match="recv first"):
        envs.step(["noop()"] * 4)
    release.set()
    assert list(envs.recv()[4]["env_id"]) == [0, 2]
    with pytest.raises(pommel.InvalidArgument, match="send more first"):
        envs.recv()
    envs.close()


def test_steps_are_made_at_the_same_time(fake: FakeGym) -> None:
    together = threading.Barrier(4, timeout=30)
    fake.fail = lambda action: together.wait() and None
    envs = make(fake, 4)
    envs.reset(seed=0)
    assert pages(envs.step(["noop()"] * 4)[0]) == ["page 1"] * 4
    envs.close()


def test_tasks_and_pictures(fake: FakeGym) -> None:
    envs = PommelVectorEnv(
        2, fake.address, task=["buy-item", "refund"], screenshot=True, viewport=(64, 48), render_mode="rgb_array"
    )
    obs, infos = envs.reset(seed=[1, 2])
    assert list(infos["task"]) == ["buy-item", "refund"] and obs["screenshot"].shape == (2, 48, 64, 3)
    pictures = envs.render()
    assert pictures is not None and pictures[1].shape == (48, 64, 3)
    envs.close()
    with pytest.raises(pommel.InvalidArgument, match="1 tasks for 2"):
        PommelVectorEnv(2, fake.address, task=["buy-item"])


def test_make_vec(fake: FakeGym) -> None:
    for envs in (
        gymnasium.make_vec("pommel/shop-v0", num_envs=2, address=fake.address, task="buy-item"),
        pommel.make_vec(2, "buy-item", fake.address),
    ):
        assert isinstance(envs.unwrapped, PommelVectorEnv)
        assert envs.reset(seed=3)[0]["goal"] == ("Buy it.", "Buy it.")
        envs.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_failing_reset_is_masked_and_tried_again(fake: FakeGym, mode: AutoresetMode) -> None:
    envs = make(fake, 2, autoreset_mode=mode)
    envs.reset(seed=0)
    same = mode == AutoresetMode.SAME_STEP
    fake.fail = lost
    fake.lose_resets = 6  # of environment 0: two resets, each tried three times
    seen = []
    for action in ("die()", "noop()", "noop()", "noop()"):
        obs, reward, terminated, truncated, infos = envs.step([action, "noop()"])
        seen.append((infos["void"][0], math.isnan(reward[0]), truncated[0], terminated[0]))
        if same and seen[-1][0]:
            assert infos["final_info"]["void"][0] and infos["final_obs"][0]["text"].startswith("page 0")
        assert not infos["void"][1] or terminated[1]
    masked = (True, True, True, False)
    # NEXT_STEP: the lost step and two failing resets; then a reset. SAME_STEP: the lost step and two with no episode to act on.
    assert seen == [masked, masked, masked, (False, False, False, False)]
    envs.close()


def test_server_that_has_gone_is_an_exception(fake: FakeGym) -> None:
    envs = make(fake, 2)
    envs.reset(seed=0)
    fake.fail = lost
    fake.lose_resets = 1000
    assert all(envs.step(["die()"] * 2)[4]["void"])
    for _ in range(2):
        with pytest.raises(pommel.WorldLost, match="no world starts"):
            envs.step(["noop()"] * 2)
    fake.lose_resets = 0
    obs, _, _, _, infos = envs.step(["noop()"] * 2)
    assert pages(obs) == ["page 0"] * 2 and not any(infos["void"])
    envs.close()


def test_failed_answer_does_not_lose_the_others(fake: FakeGym) -> None:
    def fail(action: str) -> None:
        if action == "bad()":
            raise Failure("invalid_argument", "bad", "", "invalid_argument", 400)

    fake.fail = fail
    envs = make(fake, 3, batch_size=3)
    envs.async_reset(seed=0)
    envs.recv()
    envs.send(["noop()", "bad()", "noop()"], [0, 1, 2])
    with pytest.raises(pommel.InvalidArgument, match="bad"):
        envs.recv()
    envs.send(["noop()"], [1])
    obs, _, _, _, infos = envs.recv()
    assert list(infos["env_id"]) == [0, 1, 2] and pages(obs) == ["page 1"] * 3
    envs.close()


def test_wrappers_of_gymnasium(fake: FakeGym) -> None:
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make(fake, 2))
    envs.reset(seed=0)
    for _ in range(3):
        infos = envs.step(("noop()", "noop()"))[4]
    assert list(infos["episode"]["r"]) == [1.0, 1.0] and list(infos["episode"]["l"]) == [3, 3]
    envs.close()


def test_picture_size_comes_from_the_server(fake: FakeGym) -> None:
    fake.size = (64, 48)
    envs = PommelVectorEnv(2, fake.address, task="buy-item", screenshot=True)
    obs, _ = envs.reset(seed=0)
    assert obs["screenshot"].shape == (2, 48, 64, 3) and obs in envs.observation_space
    envs.close()
