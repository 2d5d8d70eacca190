"""The asyncio client against a server that breaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from fake import Failure, FakeGym

import pommel
from pommel.aio import AsyncClient, AsyncSession


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main, 60)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task is left over"

    asyncio.run(bounded())


def session(fake: FakeGym, **kwargs: Any) -> AsyncSession:
    return AsyncSession(AsyncClient(fake.address, timeout=30), **kwargs)


def test_episode(fake: FakeGym) -> None:
    async def main() -> None:
        client = AsyncClient(fake.address)
        assert (await client.server()).world == "shop" and [t.id for t in await client.tasks(split="test")] == ["refund"]
        await client.close()
        async with session(fake) as s:
            first = await s.reset("buy-item", 7)
            assert (first.step, first.instruction, first.info.seed) == (0, "Buy it.", 7)
            assert (await s.step("click('bad')")).observation.last_action_error == "not_found: no element"
            assert (await s.observe()).text.startswith("page 1")
            saved = await s.checkpoint()
            await s.step("noop()")
            assert (await s.restore(saved)).step == 1
            await s.forget(saved)
            assert await s.heartbeat() == 60
            for _ in range(2):
                last = await s.step("noop()")
            assert last.terminated and last.reward == 1.0
            with pytest.raises(pommel.EpisodeOver):
                await s.step("noop()")
        await s.close()
        await asyncio.sleep(0)

    run(main())
    assert fake.closed == ["e1"]


def test_lost_replies(fake: FakeGym) -> None:
    async def main() -> None:
        async with session(fake, heartbeat=False) as s:
            fake.cut = {"Reset": 1, "Step": 2}
            assert (await s.reset("buy-item")).episode_id == "e1"
            assert (await s.step("buy()")).observation.last_action == "buy()"
            assert (await s.step("next()")).step == 2
        assert list(fake.episodes) == ["e1"] and fake.episodes["e1"]["actions"] == ["buy()", "next()"]

    run(main())


def test_cancelled_step_is_made_once(fake: FakeGym) -> None:
    entered, release = threading.Event(), threading.Event()

    def fail(action: str) -> None:
        if action == "slow()":
            entered.set()
            release.wait(30)

    fake.fail = fail

    async def main() -> None:
        async with session(fake, heartbeat=False) as s:
            await s.reset("buy-item")
            step = asyncio.create_task(s.step("slow()"))
            await asyncio.to_thread(entered.wait, 30)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            release.set()
            assert (await s.step("next()")).step == 2
        assert fake.episodes["e1"]["actions"] == ["slow()", "next()"]

    run(main())


def test_errors(fake: FakeGym) -> None:
    def fail(action: str) -> None:
        if action == "die()":
            raise Failure("world_lost", "the browser died")

    fake.fail = fail

    async def main() -> None:
        async with session(fake, heartbeat=False) as s:
            with pytest.raises(pommel.EpisodeOver):
                await s.step("noop()")
            with pytest.raises(pommel.NotFound, match="nope"):
                await s.reset("nope")
            await s.reset("buy-item")
            for _ in range(2):
                with pytest.raises(pommel.WorldLost, match="the browser died"):
                    await s.step("die()")
            await s.reset("buy-item")
            fake.refuse = [(401, b"who are you")]
            with pytest.raises(pommel.Unauthenticated):
                await s.observe()
        gone = AsyncClient("127.0.0.1:1", retries=1)
        with pytest.raises(pommel.Unavailable, match="is `pommel serve` running"):
            await gone.server()

    run(main())


def test_no_answer_in_time(fake: FakeGym) -> None:
    release = threading.Event()
    fake.fail = lambda action: release.wait(30) and None

    async def main() -> None:
        s = AsyncSession(AsyncClient(fake.address), heartbeat=False)
        await s.reset("buy-item")
        s.client.timeout = 0.2
        with pytest.raises(pommel.DeadlineExceeded):
            await s.step("slow()")
        s.client.timeout = 30
        release.set()
        assert (await s.step("slow()")).step == 1
        await s.close()
        assert fake.episodes["e1"]["actions"] == ["slow()"]

    run(main())


def test_many_at_once_and_heartbeats(fake: FakeGym, tmp_path: Path) -> None:
    together = threading.Barrier(16, timeout=30)
    fake.fail = lambda action: together.wait() and None

    async def episode(seed: int) -> None:
        async with session(fake) as s:
            await s.reset("buy-item", seed, lease=0.15)
            assert (await s.step("noop()")).info.seed == seed
            if seed == 0:
                await asyncio.to_thread(fake.beat.wait, 30)

    async def main() -> None:
        await asyncio.gather(*(episode(i) for i in range(16)))
        await asyncio.sleep(0)

    run(main())
    assert fake.beats and len(fake.closed) == 16


def test_unix_socket(tmp_path: Path) -> None:
    fake = FakeGym(str(tmp_path / "s"))

    async def main() -> None:
        async with session(fake) as s:
            assert (await s.reset("buy-item")).instruction == "Buy it."
        await asyncio.sleep(0)

    run(main())
    fake.stop()
