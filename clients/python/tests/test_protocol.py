"""The transport and the session against a server that breaks."""

from __future__ import annotations

import gc
import os
import pickle
import socket
import threading
from pathlib import Path

import pytest
from fake import Failure, FakeGym

import pommel


def session(fake: FakeGym, **kwargs: object) -> pommel.Session:
    return pommel.Session(pommel.Client(fake.address, timeout=30), heartbeat=False)


def test_episode(fake: FakeGym) -> None:
    s = session(fake)
    first = s.reset("buy-item", 2**60)
    assert (first.step, first.instruction, first.reward, first.terminated) == (0, "Buy it.", 0.0, False)
    assert first.info.seed == 2**60 and first.info.verdict == {"why": "rows"} and first.info.timing["total_ms"] == 1.5
    assert first.observation.text == f"page 0 \u6f22 \U0001f600 seed {2**60}"
    bad = s.step("click('bad')")
    assert bad.observation.last_action_error == "not_found: no element" and bad.step == 1
    assert s.observe().text.startswith("page 1")
    assert s.heartbeat() == 60
    s.step("noop()")
    last = s.step("finish('\u6f22 \ud83d')")
    assert (last.step, last.reward, last.terminated, last.truncated) == (3, 1.0, True, False)
    assert last.info.success and last.info.stages == {"done": True} and last.info.weights == {"done": 1.0}
    with pytest.raises(pommel.EpisodeOver, match="call Reset"):
        s.step("noop()")
    s.close()
    s.close()
    assert fake.closed == ["e1"]


@pytest.mark.parametrize("times", [1, 3])
def test_lost_reply_of_a_step(fake: FakeGym, times: int) -> None:
    s = session(fake)
    s.reset("buy-item")
    fake.cut["Step"] = times
    assert s.step("buy()").observation.last_action == "buy()"
    assert s.step("next()").step == 2
    assert fake.episodes["e1"]["actions"] == ["buy()", "next()"]
    assert [r["step"] for r in fake.named("Step")] == [1] * (times + 1) + [2]
    s.close()


def test_lost_reply_of_a_reset(fake: FakeGym) -> None:
    s = session(fake)
    fake.cut["Reset"] = 1
    assert s.reset("buy-item").episode_id == "e1"
    assert list(fake.episodes) == ["e1"]
    s.close()


def test_connection_closed_while_the_agent_thought(fake: FakeGym) -> None:
    s = session(fake)
    s.reset("buy-item")
    assert s.client._sock is not None
    s.client._sock.shutdown(socket.SHUT_RDWR)
    assert s.step("noop()").step == 1
    s.close()


def test_answers_of_a_proxy(fake: FakeGym) -> None:
    c = pommel.Client(fake.address)
    fake.refuse = [(503, b"upstream is away"), (502, b"<html>")]
    assert c.server().world == "shop"  # asked again
    fake.refuse = [(401, b"who are you")]
    with pytest.raises(pommel.Unauthenticated, match="who are you"):
        c.server()
    fake.refuse = [(418, b"\xff")]
    fake.refuse *= 6
    with pytest.raises(pommel.Unavailable, match="418"):
        c.server()
    c.close()


def test_server_out_of_reach() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(pommel.Unavailable, match="pommel serve"):
            pommel.Client(address, retries=1).server()


@pytest.mark.parametrize("address", ["ftp://x:1", "unix:", "host", "http://:7", "http://host:port", "http://h:1/path"])
def test_bad_address(address: str) -> None:
    with pytest.raises(pommel.InvalidArgument, match="want http://host:port"):
        pommel.Client(address)


KINDS = {
    "world_lost": pommel.WorldLost,
    "lease_expired": pommel.LeaseExpired,
    "internal": pommel.InternalError,
    "invalid_argument": pommel.InvalidArgument,
    "episode_over": pommel.EpisodeOver,
    "stale_episode": pommel.StaleEpisode,
    "resource_exhausted": pommel.ResourceExhausted,
    "unsupported": pommel.Unsupported,
    "canceled": pommel.Canceled,
    "kind_of_the_future": pommel.InternalError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(fake: FakeGym, kind: str) -> None:
    s = session(fake)
    s.reset("buy-item")

    def fail(action: str) -> None:
        raise Failure(kind, "what happened \u6f22" * 20, "what to do")

    fake.fail = fail
    with pytest.raises(KINDS[kind]) as caught:
        s.step("noop()")
    assert caught.value.message == "what happened \u6f22" * 20 and caught.value.hint == "what to do"
    void = kind in ("world_lost", "lease_expired", "internal", "kind_of_the_future")
    assert isinstance(caught.value, pommel.InfrastructureError) == void
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is type(caught.value) and str(copy) == str(caught.value)
    fake.fail = lambda action: None
    s.reset("buy-item")
    assert s.step("noop()").step == 1
    s.close()


def test_forgetful_server(fake: FakeGym) -> None:
    s = session(fake)
    s.reset("buy-item")
    fake.episodes.clear()
    for _ in range(2):
        with pytest.raises(pommel.WorldLost, match="restarted"):
            s.step("noop()")
    s.reset("buy-item")
    s.close()


@pytest.mark.parametrize("next_action", ["slow()", "other()"])
def test_step_without_an_answer(fake: FakeGym, next_action: str) -> None:
    s = session(fake)
    s.reset("buy-item")
    s.client.timeout = 0.2
    s.client.close()
    release = threading.Event()

    def fail(action: str) -> None:
        if action == "slow()":
            release.wait(30)

    fake.fail = fail
    with pytest.raises(pommel.DeadlineExceeded):
        s.step("slow()")
    release.set()
    s.client.timeout = 30
    s.client.close()
    result = s.step(next_action)
    assert result.observation.last_action == next_action
    assert fake.episodes["e1"]["actions"] == ["slow()"] + (["other()"] if next_action == "other()" else [])
    s.close()


def test_step_without_an_episode(fake: FakeGym) -> None:
    with pytest.raises(pommel.EpisodeOver, match="call reset"):
        session(fake).step("noop()")


def test_heartbeat_while_the_agent_thinks(fake: FakeGym) -> None:
    fake.lease_ms = 150
    s = pommel.Session(pommel.Client(fake.address))
    s.reset("buy-item")
    for _ in range(3):
        assert fake.beat.wait(30)
        fake.beat.clear()
    assert set(fake.beats) == {"e1"}
    (beat,) = (t for t in threading.enumerate() if t.name == "pommel-heartbeat")
    s.close()
    beat.join(30)
    assert not beat.is_alive()


def test_heartbeat_ends_with_its_session(fake: FakeGym) -> None:
    fake.lease_ms = 150
    s = pommel.Session(pommel.Client(fake.address))
    s.reset("buy-item")
    (beat,) = (t for t in threading.enumerate() if t.name == "pommel-heartbeat")
    del s
    gc.collect()
    beat.join(30)
    assert not beat.is_alive()


def test_token(fake: FakeGym, monkeypatch: pytest.MonkeyPatch) -> None:
    pommel.Client(fake.address, token="secret").server()
    monkeypatch.setenv("POMMEL_TOKEN", "from env")
    monkeypatch.setenv("POMMEL_ADDRESS", fake.address)
    c = pommel.Client()
    c.server()
    c.copy(timeout=1, retries=0).server()
    sent = [h.get("Authorization") for h in fake.headers]
    assert sent == ["Bearer secret", "Bearer from env", "Bearer from env"]
    with pytest.raises(pommel.InvalidArgument, match="header"):
        pommel.Client(fake.address, token="a\r\nX-Other: b")


def test_unix_socket(tmp_path: Path) -> None:
    fake = FakeGym(str(tmp_path / "s"))
    s = session(fake)
    s.reset("buy-item")
    fake.cut["Step"] = 1
    assert s.step("noop()").step == 1
    s.close()
    fake.stop()


def test_forked_child_has_its_own_connection(fake: FakeGym) -> None:
    c = pommel.Client(fake.address)
    c.server()
    parent = c._sock
    c._pid = os.getpid() + 1  # what a child sees
    c.server()
    assert c._sock is not parent
    assert pickle.loads(pickle.dumps(c)).server().world == "shop"


def test_checkpoints_are_numbered_calls(fake: FakeGym) -> None:
    s = session(fake)
    s.reset("buy-item", 1)
    s.step("a")
    fake.cut["Checkpoint"] = 1  # made, but its answer was lost
    saved = s.checkpoint()
    fake.steps = 9
    s.step("b")
    fake.cut["Restore"] = 1
    assert s.restore(saved).step == 1
    assert s.step("c").step == 2
    assert [r["call"] for r in fake.named("Checkpoint")] == [2, 2]
    assert [r["call"] for r in fake.named("Restore")] == [4, 4]
    assert [r["step"] for r in fake.named("Step")] == [1, 3, 5]
    s.forget(saved)
    s.forget(saved)
    with pytest.raises(pommel.InvalidArgument):
        s.restore(saved)
    s.close()


def test_reset_that_was_not_answered_keeps_its_world(fake: FakeGym) -> None:
    s = pommel.Session(pommel.Client(fake.address, timeout=30, retries=0), heartbeat=False)
    fake.cut["Reset"] = 1
    with pytest.raises(pommel.Unavailable):
        s.reset("buy-item", 7)
    assert s.reset("buy-item", 7).episode_id == "e1"
    assert s.reset("buy-item", 7).episode_id == "e2"
    s.close()
