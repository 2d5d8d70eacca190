"""Many episodes by many sessions of the package openenv, at once, and clients that are killed.

    POMMEL_BIN=bin/pommel .tmp/venv-peers/bin/python clients/python/peers/soak_openenv.py --sessions 8 --episodes 500

Prints one JSON object, and ends with 1 when an error, a false reward or a taken world is left.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from openenv import GenericEnvClient
from plays import TASK, action, free_worlds, solution

import pommel


async def solve(env: GenericEnvClient, seed: int) -> float:
    """Solve one episode, and return what it has earned."""
    result = await env.reset(task=TASK, seed=seed)
    assert result.reward is None and not result.done
    total = 0.0
    for name, args in solution(result.observation["goal"]):
        result = await env.step({"action_str": action(name, args)})
        assert result.observation["error"] == "", result.observation["error"]
        total += result.reward
    assert result.done and result.metadata["success"], result.metadata
    return total


async def _idle(env: GenericEnvClient, seed: int) -> float:
    """End an episode at once."""
    await env.reset(task=TASK, seed=seed)
    result = await env.step({"action_str": "finish('')"})
    assert result.done and not result.metadata["success"], result.metadata
    return float(result.reward)


async def play(
    address: str, sessions: int, episodes: int, told: Callable[[int], None] = lambda done: None
) -> list[str]:
    """Play episodes, most solved and some not, with as many sessions at once, and return what was wrong."""
    problems: list[str] = []
    left = iter(range(episodes))
    done = 0

    async def work() -> None:
        nonlocal done
        async with GenericEnvClient(base_url=address) as env:
            for n in left:
                want, way = (0.0, _idle) if n % 5 == 4 else (1.0, solve)
                try:
                    got = await way(env, n // 2)
                    if abs(got - want) > 1e-6:
                        problems.append(f"episode {n} earned {got}, not {want}")
                except Exception as e:  # whatever it is, it is counted
                    problems.append(f"episode {n}: {type(e).__name__}: {e}")
                done += 1
                told(done)

    await asyncio.gather(*(work() for _ in range(sessions)))
    return problems


def wait_for_worlds(server: pommel.Server, n: int, limit: float = 60.0) -> float:
    """Wait until n worlds are free, and return how long that took."""
    start = time.monotonic()
    while free_worlds(server) < n:
        assert time.monotonic() - start < limit, f"{free_worlds(server)} of {n} worlds are free"
        time.sleep(0.1)  # the server tells of worlds only when it is asked
    return time.monotonic() - start


def _hold(address: str, pipe: Connection) -> None:
    """Be a client that holds an episode and does nothing more."""
    env = GenericEnvClient(base_url=address).sync()
    env.connect()
    pipe.send(env.reset(task=TASK, seed=1).metadata["episode_id"])
    pipe.poll(None)


# Processes of their own, as clients are; the package is read once and not by each of them. The fork
# server looks for it in the working folder and in PYTHONPATH only.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["soak_openenv"])


def kill_half(server: pommel.Server, clients: int, way: signal.Signals) -> float:
    """Have clients hold all worlds, stop half of them, and return how long their worlds took to be free."""
    pipes = [_processes.Pipe() for _ in range(clients)]
    programs = [_processes.Process(target=_hold, args=(server.address, child)) for _, child in pipes]
    try:
        for p in programs:
            p.start()
        for ours, _ in pipes:
            assert ours.poll(120) and ours.recv(), "a client has no episode after two minutes"
        for p in programs[: clients // 2]:
            assert p.pid is not None
            os.kill(p.pid, way)
        took = wait_for_worlds(server, clients // 2)
        with GenericEnvClient(base_url=server.address).sync() as env:
            env.reset(task=TASK, seed=1)
    finally:
        for p in programs:
            p.kill()
            p.join()
    wait_for_worlds(server, clients)
    return took


def _soak(args: argparse.Namespace) -> dict[str, Any]:
    def told(done: int) -> None:
        if done % 20 == 0 or done == args.episodes:
            print(f"openenv {done}/{args.episodes}", file=sys.stderr)

    with pommel.serve(world=args.world, worlds=args.sessions, lease=args.lease) as server:
        wait_for_worlds(server, args.sessions, 600)
        start = time.monotonic()
        problems = asyncio.run(play(server.address, args.sessions, args.episodes, told))
        seconds = time.monotonic() - start
        wait_for_worlds(server, args.sessions)
        freed = {}
        for way in (signal.SIGKILL, signal.SIGSTOP):
            print(f"openenv {args.sessions} clients, {way.name} for half of them", file=sys.stderr)
            freed[way.name] = round(kill_half(server, args.sessions, way), 2)
    # A machine that puts worlds back while it is busy takes its time.
    late = {k: v for k, v in freed.items() if v > args.lease + 10}
    return {
        "sessions": args.sessions,
        "episodes": args.episodes,
        "errors": len(problems),
        "problems": problems[:20],
        "seconds": round(seconds, 1),
        "episodes_per_second": round(args.episodes / seconds, 2),
        "freed_after_s": freed,
        "ok": not problems and not late,
    }


def main() -> int:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="shop", help="it must have the task add-to-cart")
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--lease", type=float, default=20, help="seconds")
    result = _soak(parser.parse_args())
    print(json.dumps(result, indent=2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
