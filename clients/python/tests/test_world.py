"""End to end: the real server, Chromium and PostgreSQL, on world shop."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pommel


@pytest.fixture(scope="session")
def task(server: pommel.Server) -> pommel.Task:
    client = server.client()
    tasks = client.tasks(split="train")
    client.close()
    assert tasks, "world shop has no training task"
    return next((t for t in tasks if t.difficulty == "easy"), tasks[0])


def test_server(server: pommel.Server) -> None:
    client = server.client()
    info = client.server()
    assert info.world == "shop" and info.worlds == 2 and info.lease_ms > 0
    tasks = client.tasks()
    assert tasks and all(t.max_steps > 0 and t.stages for t in tasks)
    client.close()


def test_gymnasium_checker(server: pommel.Server, task: pommel.Task) -> None:
    env = server.make(task.id, screenshot=True, elements=True, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


def test_episode_is_repeatable(server: pommel.Server, task: pommel.Task) -> None:
    env = server.make(task.id)
    runs = []
    for _ in range(2):
        obs, info = env.reset(seed=3)
        seen = [(obs, info)]
        for action in ("scroll(0, 200)", 'keyboard_press("Tab")', "noop()"):
            obs, reward, terminated, truncated, info = env.step(action)
            assert not (terminated or truncated) and obs["last_action_error"] == ""
            seen.append((obs, info))
        runs.append(seen)
    assert runs[0] == runs[1]
    assert runs[0][0][1]["stages"].keys() == set(task.stages)
    env.close()


def test_bad_action_is_an_observation(server: pommel.Server, task: pommel.Task) -> None:
    env = server.make(task.id)
    env.reset(seed=3)
    for action, kind in {
        'click(selector="#no-such-thing-\u6f22")': "not_found",
        "this is no call": "",
        "goto('file:///etc/passwd')": "blocked_url",
    }.items():
        obs, reward, terminated, _, info = env.step(action)
        assert obs["last_action_error"].startswith(kind) and obs["last_action_error"], action
        assert reward == 0 and not terminated and not info["success"]
    env.close()


def test_giving_up_is_an_ordinary_end(server: pommel.Server, task: pommel.Task) -> None:
    env = server.make(task.id)
    env.reset(seed=3)
    obs, reward, terminated, truncated, info = env.step("report_infeasible('cannot')")
    assert terminated and not info["success"] and info["infeasible"] and not info["void"]
    with pytest.raises(pommel.EpisodeOver):
        env.step("noop()")
    env.close()


def test_step_limit_truncates(server: pommel.Server, task: pommel.Task) -> None:
    env = server.make(task.id, max_steps=2)
    env.reset(seed=3)
    assert env.step("noop()")[2:4] == (False, False)
    assert env.step("noop()")[2:4] == (False, True)
    env.close()


def test_a_step_is_made_once(server: pommel.Server, task: pommel.Task) -> None:
    session = pommel.Session(server.client())
    session.reset(task.id, 3)
    first = session.step("scroll(0, 100)")
    session._calls = 0  # as if the answer had been lost
    again = session.step("scroll(0, 100)")
    assert again == first
    assert session.step("noop()").step == 2
    session.close()


def test_checkpoints(server: pommel.Server, task: pommel.Task) -> None:
    env: Any = server.make(task.id).unwrapped
    with contextlib.closing(env):
        env.reset(seed=3)
        env.step("noop()")
        try:
            saved = env.checkpoint()
        except pommel.Unsupported as e:
            pytest.skip(f"unsupported: {e}")
        first = [env.step(a) for a in ("scroll(0, 300)", "go_back()", "finish('done')")]
        assert first[-1][2]
        for _ in range(2):
            obs, info = env.restore(saved)
            assert env.last_result.step == 1 and not env.last_result.reward
            again = [env.step(a) for a in ("scroll(0, 300)", "go_back()", "finish('done')")]
            assert again == first
        env.forget(saved)
        with pytest.raises(pommel.InvalidArgument):
            env.restore(saved)


def test_picture(server: pommel.Server, task: pommel.Task) -> None:
    env = server.make(task.id, render_mode="rgb_array")
    env.reset(seed=3)
    picture = env.render()
    assert isinstance(picture, np.ndarray) and picture.shape == (720, 1280, 3) and picture.std() > 1
    env.close()


def test_worlds_are_limited_and_given_back(server: pommel.Server, task: pommel.Task) -> None:
    envs = [server.make(task.id, wait=60.0) for _ in range(2)]
    late = server.make(task.id, wait=0)
    for env in envs:
        env.reset(seed=1)
    with pytest.raises(pommel.ResourceExhausted):
        late.reset(seed=1)
    envs[0].close()
    late.close()
    patient = server.make(task.id, wait=60.0)
    patient.reset(seed=1)
    for env in (*envs, patient):
        env.close()


def test_names(server: pommel.Server, task: pommel.Task) -> None:
    ids = server.register()
    try:
        assert f"pommel/shop-{task.id}-v0" in ids
        with gymnasium.make(f"pommel/shop-{task.id}-v0") as env:
            assert env.reset(seed=3)[1]["task"] == task.id
    finally:
        pommel.register_envs()
