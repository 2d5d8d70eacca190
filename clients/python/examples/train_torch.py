"""Trains a policy with PyTorch, on CPU, through the Gymnasium vector environment.

PPO (Schulman et al. 2017) in one file, in the way of CleanRL, and self-imitation (Oh et al. 2018), because a policy that
clicks at random seldom earns anything: what has once earned something is learnt from again and again. What an agent can do is not a fixed set here: it
is to click one of the elements that the page shows, as many as there are. So the network scores each element
by itself, and the policy is a softmax over the scores.

Needs PyTorch: pip install "pommel[torch]". `make examples` runs it with --quick, which only shows that it
works; without it takes a few minutes, and prints the rate of success on seeds that it was not trained on, before and after.
"""

from __future__ import annotations

import argparse
import re
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

import pommel

WORDS, BUCKETS, TRAITS = 8, 512, 7


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def bucket(word: str) -> int:
    return 1 + zlib.crc32(word.encode()) % (BUCKETS - 1)  # 0 is no word


@dataclass
class Choice:
    """What an agent may click in one observation: a row for each element."""

    bids: list[str]
    names: torch.Tensor  # buckets of the words of each name
    traits: torch.Tensor

    @classmethod
    def of(cls, obs: dict[str, Any], clicked: set[str]) -> Choice:
        shown = [e for e in obs["elements"] if e["interactive"] and e["in_viewport"] and e["role"] in ("link", "button")]
        if not shown:  # a page with nothing to click: noop takes the place
            shown = [{"bid": "", "role": "", "name": "", "box": [0, 0, 0, 0]}]
        goal = set(words(obs["goal"]))
        names = torch.zeros(len(shown), WORDS, dtype=torch.long)
        traits = torch.zeros(len(shown), TRAITS)
        for i, e in enumerate(shown):
            found = words(e["name"])
            for j, word in enumerate(found[:WORDS]):
                names[i, j] = bucket(word)
            same = [w in goal for w in found]
            traits[i] = torch.tensor([
                e["role"] == "link", e["role"] == "button",
                sum(same) / max(len(same), 1), sum(same) / 4, bool(same) and all(same),
                e["box"][1] / 720, obs["url"] + e["name"] in clicked,
            ])  # fmt: skip
        return cls([e["bid"] for e in shown], names, traits)


class Policy(nn.Module):
    """Scores each element, and values what is seen of all."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.word = nn.EmbeddingBag(BUCKETS, 16, mode="sum", padding_idx=0)
        nn.init.normal_(self.word.weight, std=0.1)
        self.body = nn.Sequential(nn.Linear(16 + TRAITS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.score, self.value = nn.Linear(width, 1), nn.Linear(width, 1)
        nn.init.orthogonal_(self.score.weight, 0.01)

    def forward(self, choices: list[Choice]) -> tuple[torch.distributions.Categorical, torch.Tensor]:
        sizes = [len(c.bids) for c in choices]
        seen = torch.cat([self.word(torch.cat([c.names for c in choices])), torch.cat([c.traits for c in choices])], 1)
        hidden = nn.utils.rnn.pad_sequence(list(self.body(seen).split(sizes)), batch_first=True)
        there = torch.arange(hidden.shape[1]) < torch.tensor(sizes)[:, None]
        scores = self.score(hidden).squeeze(-1).masked_fill(~there, -1e9)
        middle = (hidden * there[..., None]).sum(1) / there.sum(1, keepdim=True)
        return torch.distributions.Categorical(logits=scores), self.value(middle).squeeze(-1)


@dataclass
class Episode:
    choices: list[Choice] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    clicked: set[str] = field(default_factory=set)
    success: bool = False


class Rollouts:
    """Plays episodes in all environments at once, and gives out those that have ended."""

    def __init__(self, envs: Any, policy: Policy, seed: int, greedy: bool = False) -> None:
        self.envs, self.policy, self.greedy = envs, policy, greedy
        self.steps = self.void = 0
        self.obs, _ = envs.reset(seed=[seed * 1000 + 10 * i + (9 if greedy else 0) for i in range(envs.num_envs)])
        self.running: list[Episode | None] = [Episode() for _ in range(envs.num_envs)]

    def collect(self, count: int) -> list[Episode]:
        """Play until count episodes have ended."""
        done: list[Episode] = []
        while len(done) < count:
            done += self._step()
        return done

    def _step(self) -> list[Episode]:
        actions = ["noop()"] * self.envs.num_envs  # the step after an end resets, and ignores its action
        for i, episode in enumerate(self.running):
            if episode is not None:
                actions[i] = self._act(episode, {k: self.obs[k][i] for k in ("goal", "url", "elements")})
        self.obs, rewards, terminated, truncated, infos = self.envs.step(actions)
        done = []
        for i, episode in enumerate(self.running):
            if episode is None:  # a reset that failed is tried again with the next step
                self.running[i] = None if infos["void"][i] else Episode()
                continue
            self.steps += 1
            if infos["void"][i]:
                # The infrastructure broke, not the policy: nothing of this episode is trained on.
                self.void += 1
                self.running[i] = None
                continue
            episode.rewards.append(float(rewards[i]))
            if terminated[i] or truncated[i]:
                episode.success = bool(infos["success"][i])
                done.append(episode)
                self.running[i] = None
        return done

    @torch.no_grad()
    def _act(self, episode: Episode, obs: dict[str, Any]) -> str:
        choice = Choice.of(obs, episode.clicked)
        chances, _ = self.policy([choice])
        taken = chances.probs.argmax(-1) if self.greedy else chances.sample()
        at = int(taken)
        episode.choices.append(choice)
        episode.taken.append(at)
        episode.logp.append(float(chances.log_prob(taken)))
        name = next((e["name"] for e in obs["elements"] if e["bid"] == choice.bids[at]), "")
        episode.clicked.add(obs["url"] + name)
        return f"click({choice.bids[at]!r})" if choice.bids[at] else "noop()"


def returns(episodes: list[Episode], gamma: float = 0.95) -> torch.Tensor:
    """What each step has earned from then on."""
    gains: list[float] = []
    for e in episodes:
        gain, back = 0.0, []
        for reward in reversed(e.rewards):
            gain = reward + gamma * gain
            back.append(gain)
        gains += reversed(back)
    return torch.tensor(gains)


def update(policy: Policy, optimiser: torch.optim.Optimizer, episodes: list[Episode], best: list[Episode]) -> float:
    """Improve the policy by what the episodes have earned, and by the best so far; returns its entropy."""
    choices = [c for e in episodes for c in e.choices]
    taken = torch.tensor([t for e in episodes for t in e.taken])
    before = torch.tensor([p for e in episodes for p in e.logp])
    gains = returns(episodes)
    with torch.no_grad():
        advantage = gains - policy(choices)[1]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-3)
    entropy = torch.zeros(())
    for _ in range(4):
        for part in torch.randperm(len(choices)).split(64):
            chances, value = policy([choices[i] for i in part])
            ratio = (chances.log_prob(taken[part]) - before[part]).exp()
            gain = torch.min(ratio * advantage[part], ratio.clamp(0.8, 1.2) * advantage[part]).mean()
            entropy = chances.entropy().mean()
            loss = -gain + 0.5 * (value - gains[part]).pow(2).mean() - 0.01 * entropy
            if best:
                chances, value = policy([c for e in best for c in e.choices])
                more = (returns(best) - value).clamp(min=0)
                again = chances.log_prob(torch.tensor([t for e in best for t in e.taken]))
                loss = loss - (again * more.detach()).mean() + 0.01 * more.pow(2).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimiser.step()
    return float(entropy.detach())


def rate(episodes: list[Episode]) -> float:
    return sum(e.success for e in episodes) / max(len(episodes), 1)


def tested(server: pommel.Server, policy: Policy, args: argparse.Namespace) -> float:
    """Success of the most likely actions, on seeds of the test split."""
    envs = server.make_vec(args.envs, args.task, split="test", elements=True, max_steps=args.max_steps)
    try:
        return rate(Rollouts(envs, policy, args.seed, greedy=True).collect(args.test))
    finally:
        envs.close()


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--task", default="remove-from-cart")
    p.add_argument("--steps", type=int, default=1500, help="of the environments in all")
    p.add_argument("--envs", type=int, default=2, help="browsers at the same time")
    p.add_argument("--episodes", type=int, default=16, help="in each update")
    p.add_argument("--max-steps", type=int, default=8, help="in each episode")
    p.add_argument("--test", type=int, default=20, help="episodes before and after")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--quick", action="store_true", help="two updates, to see that it works")
    args = p.parse_args()
    if args.quick:
        args.steps, args.episodes, args.test = 40, 4, 2

    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    torch.set_num_threads(1)  # the browsers need the processors
    policy = Policy()
    optimiser = torch.optim.Adam(policy.parameters(), lr=3e-3)
    best: list[Episode] = []
    with pommel.serve(world="shop", worlds=args.envs) as server:
        before = tested(server, policy, args)
        print(f"before: {before:.0%} of {args.test} test episodes of {args.task}", flush=True)
        envs = server.make_vec(args.envs, args.task, elements=True, max_steps=args.max_steps)
        began = time.monotonic()
        try:
            rollouts = Rollouts(envs, policy, args.seed)
            while rollouts.steps < args.steps:
                episodes = rollouts.collect(args.episodes)
                best = sorted(best + [e for e in episodes if sum(e.rewards) > 0], key=lambda e: sum(e.rewards))[-16:]
                entropy = update(policy, optimiser, episodes, best)
                speed = rollouts.steps / (time.monotonic() - began)
                print(
                    f"{rollouts.steps:6d} steps  success {rate(episodes):4.0%}  "
                    f"return {np.mean([sum(e.rewards) for e in episodes]):5.2f}  entropy {entropy:.2f}  {speed:.1f} steps/s",
                    flush=True,
                )
        finally:
            envs.close()
        print(f"after: {tested(server, policy, args):.0%}, {rollouts.void} episodes left out as void")


if __name__ == "__main__":
    main()
