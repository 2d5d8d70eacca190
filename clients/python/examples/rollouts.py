"""Collects transitions from several browsers at once, those that are ready first, and leaves out what is void.

A policy that draws actions at random stands in for yours. Run it with `make examples`.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

import pommel


def act(text: str, rng: np.random.Generator) -> str:
    """Click something that can be clicked."""
    bids = re.findall(r"\[(\w+)\] (?:link|button|checkbox|radio) ", text)
    return f"click({str(rng.choice(bids))!r})" if bids else "go_back()"


def collect(envs: Any, count: int, seed: int) -> list[tuple[int, str, str, float, bool]]:
    """Collect (environment, text, action, reward, end) of count transitions."""
    rng = np.random.default_rng(seed)
    transitions: list[tuple[int, str, str, float, bool]] = []
    before: dict[int, tuple[str, str]] = {}  # what an environment showed, and what was done
    envs.async_reset(seed=seed)
    while len(transitions) < count:
        obs, rewards, terminated, truncated, infos = envs.recv()
        ids = [int(i) for i in infos["env_id"]]
        for at, i in enumerate(ids):
            end = bool(terminated[at] or truncated[at])
            if i in before and not infos["void"][at]:
                transitions.append((i, *before[i], float(rewards[at]), end))
            before.pop(i, None)
            if not end:  # the step after the end resets, and its action is ignored
                before[i] = (obs["text"][at], act(obs["text"][at], rng))
        envs.send([before[i][1] if i in before else "noop()" for i in ids], ids)
    while envs.pending:
        envs.recv()
    return transitions


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    envs = pommel.make_vec(2, world="shop", batch_size=1, max_steps=8).unwrapped
    try:
        transitions = collect(envs, count, seed=0)
    finally:
        envs.close()
    ends = sum(end for *_, end in transitions)
    print(f"{len(transitions)} transitions of {len({t[0] for t in transitions})} environments, {ends} ends of episodes")
    print(f"rewards from {min(t[3] for t in transitions):.2f} to {max(t[3] for t in transitions):.2f}")


if __name__ == "__main__":
    main()
