"""Many environments in one process: a thread each, because all waiting is done in the server.

`PommelVectorEnv` is a Gymnasium vector environment, and has EnvPool's way besides: `send` actions
to the environments that are ready, `recv` the first ones that have answered.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from .browsergym import BrowserGymEnv
from .env import PommelEnv, StepAnswer
from .errors import InfrastructureError, InvalidArgument
from .local import Room, servers

Batch = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class _Answer(NamedTuple):
    """What one environment has answered. final is the end of the episode before, with SAME_STEP."""

    obs: dict[str, Any]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    final: tuple[dict[str, Any], dict[str, Any]] | None = None


class PommelVectorEnv(VectorEnv[Any, Any, Any]):
    """Copies of `pommel.PommelEnv` that step at the same time.

    A lost world does not stop the others: its episode ends as truncated, with reward NaN, and
    ``infos["void"]`` True. In every autoreset mode this mask is about the transition of this
    answer. A server needs as many worlds as there are environments; one that is started because
    no address was given has them.

    Args:
        num_envs: How many.
        address: Of the server, as for `pommel.PommelEnv`.
        task: Id of the task of all, or one id for each; None draws a task at each reset.
        autoreset_mode: NEXT_STEP (the step after the end resets and ignores its action), SAME_STEP
            (the end and the first observation of the next episode come in one answer, the end's
            observation in ``infos["final_obs"]``) or DISABLED (reset with options={"reset_mask": ...}).
        batch_size: How many answers `recv` waits for; None is all.
        browsergym: Make `pommel.browsergym.BrowserGymEnv`.
        **kwargs: Of `pommel.PommelEnv`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        address: str | None = None,
        *,
        task: str | Sequence[str] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        batch_size: int | None = None,
        browsergym: bool = False,
        render_mode: str | None = None,
        **kwargs: Any,
    ) -> None:
        tasks = [task] * num_envs if task is None or isinstance(task, str) else list(task)
        if num_envs < 1 or len(tasks) != num_envs:
            raise InvalidArgument(f"{len(tasks)} tasks for {num_envs} environments", "want one task for each, or one for all")
        self.batch_size = num_envs if batch_size is None else batch_size
        if not 1 <= self.batch_size <= num_envs:
            raise InvalidArgument(f"batch_size is {batch_size}", f"want 1 to {num_envs}")
        kwargs.setdefault("on_lost", "truncate")
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**PommelEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self._room: Room | None = None
        address = address or os.environ.get("POMMEL_ADDRESS")
        if address is None:
            # One server with room for all, in place of one for each.
            self._room = servers.take(kwargs.pop("world", None), num_envs, kwargs.pop("serve_args", ()))
            address, kwargs["token"] = self._room.address, self._room.token
        try:
            self.envs = _made(browsergym, tasks, address, {**kwargs, "render_mode": render_mode})
        except BaseException:
            if self._room is not None:
                self._room.close()
            raise
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._pool = ThreadPoolExecutor(num_envs, thread_name_prefix="pommel-env")
        self._over = [False] * num_envs
        # Why the last reset of an environment failed: it has no episode, and the next step resets it again.
        self._unborn: list[InfrastructureError | None] = [None] * num_envs
        self._busy = [False] * num_envs
        self._seen: list[dict[str, Any]] = []
        self._ready: queue.SimpleQueue[tuple[int, Future[_Answer]]] = queue.SimpleQueue()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in each environment, or in those of options["reset_mask"].

        Args:
            seed: One for the first environment, counting up, or one for each.
            options: Of `pommel.PommelEnv.reset`, and reset_mask: a boolean array.
        """
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        chosen = list(range(self.num_envs)) if mask is None else self._masked(mask)
        if not self._seen and len(chosen) < self.num_envs:
            raise InvalidArgument("the first reset must be of all environments", "leave reset_mask out")
        seeds = self._seeds(seed)
        answers = self._all(chosen, lambda i: self._reset_one(i, seeds[i], options))
        if not self._seen:
            self._seen = [answers[i].obs for i in range(self.num_envs)]
        for i, a in answers.items():
            self._seen[i] = a.obs
        return self._joined(self._seen), self._infos(answers)

    def step(self, actions: Sequence[str]) -> Batch:
        """Step all environments, and wait for all."""
        if len(actions) != self.num_envs:
            raise InvalidArgument(f"{len(actions)} actions for {self.num_envs} environments")
        answers = self._all(list(range(self.num_envs)), lambda i: self._step_one(i, actions[i]))
        for i, a in answers.items():
            self._seen[i] = a.obs
        return self._batch(answers)

    def async_reset(self, *, seed: int | Sequence[int | None] | None = None) -> None:
        """Start an episode in each environment, without waiting: `recv` gets the answers."""
        seeds = self._seeds(seed)
        for i in range(self.num_envs):
            self._submit(i, lambda i=i: self._reset_one(i, seeds[i], {}))  # type: ignore[misc]

    def send(self, actions: Sequence[str], env_id: Sequence[int] | NDArray[np.int64]) -> None:
        """Step the environments of env_id, which `recv` gave, without waiting."""
        if len(actions) != len(env_id):
            raise InvalidArgument(f"{len(actions)} actions for {len(env_id)} environments")
        for action, i in zip(actions, map(int, env_id), strict=True):
            self._submit(i, lambda i=i, action=action: self._step_one(i, action))  # type: ignore[misc]

    def recv(self) -> Batch:
        """Wait for the first batch_size answers. infos["env_id"] says of which environments they are."""
        if self.pending < self.batch_size:
            raise InvalidArgument(
                f"{self.pending} environments were sent actions, a batch is {self.batch_size}", "send more first"
            )
        ready = sorted((self._ready.get() for _ in range(self.batch_size)), key=lambda r: r[0])
        failed = next((r for r in ready if r[1].exception() is not None), None)
        for r in ready:
            if failed is None or r is failed:
                self._busy[r[0]] = False
            else:
                self._ready.put(r)  # for the next recv
        if failed is not None:
            failed[1].result()
        answers = {i: future.result() for i, future in ready}
        order = list(answers)
        obs, reward, terminated, truncated, infos = self._batch(answers)
        infos = {k: _picked(v, order) for k, v in infos.items()}
        infos["env_id"] = np.array(order)
        return obs, reward, terminated, truncated, infos

    @property
    def pending(self) -> int:
        """How many environments were sent actions and are not received yet."""
        return sum(self._busy)

    def render(self) -> tuple[Any, ...] | None:
        """Take a picture of each page as it is now."""
        if self.render_mode is None:
            return None
        return tuple(self._pool.map(lambda env: env.render(), self.envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Free all worlds; called by close."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        with ThreadPoolExecutor(self.num_envs) as pool:
            list(pool.map(lambda env: env.close(), self.envs))
        if self._room is not None:
            self._room.close()

    def _reset_one(self, i: int, seed: int | None, options: dict[str, Any]) -> _Answer:
        obs, info = self.envs[i].reset(seed=seed, options=dict(options))
        self._over[i], self._unborn[i] = False, None
        return _Answer(obs, 0.0, False, False, info)

    def _step_one(self, i: int, action: str) -> _Answer:
        env, same = self.envs[i], self.autoreset_mode == AutoresetMode.SAME_STEP
        if self._over[i] and self.autoreset_mode == AutoresetMode.NEXT_STEP:
            return self._autoreset(i)
        if (lost := self._unborn[i]) is not None:  # and SAME_STEP: a transition that never was
            answer: StepAnswer = env.void(lost)
        else:
            answer = env.step(action)
        obs, reward, terminated, truncated, info = answer
        self._over[i] = terminated or truncated
        if not (self._over[i] and same):
            return _Answer(obs, float(reward), terminated, truncated, info)
        first = self._autoreset(i)
        return _Answer(first.obs, float(reward), terminated, truncated, {**first.info, "void": info["void"]}, (obs, info))

    def _autoreset(self, i: int) -> _Answer:
        """Reset in the middle of a step, where one that fails must not stop the others either."""
        try:
            return self._reset_one(i, None, {})
        except InfrastructureError as e:
            if self.envs[i].on_lost == "raise":
                raise
            self._over[i], self._unborn[i] = True, e
            obs, reward, terminated, truncated, info = self.envs[i].void(e)
            return _Answer(obs, float(reward), terminated, truncated, info)

    def _all(self, chosen: list[int], call: Callable[[int], _Answer]) -> dict[int, _Answer]:
        """Call in threads, and wait for all also when one fails, so that none is left in the middle."""
        if any(self._busy):
            raise InvalidArgument("actions were sent that were not received", "recv first")
        futures = {i: self._pool.submit(call, i) for i in chosen}
        failures = [e for f in futures.values() if (e := f.exception()) is not None]
        if failures:
            raise failures[0]
        return {i: f.result() for i, f in futures.items()}

    def _submit(self, i: int, call: Callable[[], _Answer]) -> None:
        if self._busy[i]:
            raise InvalidArgument(f"environment {i} has not answered yet", "recv first")
        self._busy[i] = True
        self._pool.submit(call).add_done_callback(lambda f: self._ready.put((i, f)))

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise InvalidArgument(f"{len(seed)} seeds for {self.num_envs} environments")
        return list(seed)

    def _masked(self, mask: Any) -> list[int]:
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise InvalidArgument("options['reset_mask'] is no mask", f"want {self.num_envs} booleans in a NumPy array, one of them True")
        return [int(i) for i in np.flatnonzero(mask)]

    def _batch(self, answers: dict[int, _Answer]) -> Batch:
        unborn = [self._unborn[i] for i in answers]
        if unborn[0] is not None and None not in unborn:
            raise unborn[0]  # a mask that hides everything would hide that the server has gone
        a = list(answers.values())
        return (
            self._joined([x.obs for x in a]),
            np.array([x.reward for x in a], np.float64),
            np.array([x.terminated for x in a], np.bool_),
            np.array([x.truncated for x in a], np.bool_),
            self._infos(answers),
        )

    def _joined(self, observations: list[dict[str, Any]]) -> Any:
        # A new array for each answer: what a caller keeps must not change under it.
        out: Any = create_empty_array(self.single_observation_space, len(observations))
        return concatenate(self.single_observation_space, observations, out)

    def _infos(self, answers: dict[int, _Answer]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for i, a in answers.items():
            if a.final is not None:
                infos = self._add_info(infos, {"final_obs": a.final[0], "final_info": a.final[1]}, i)
            infos = self._add_info(infos, a.info, i)
        return infos


def _made(browsergym: bool, tasks: Sequence[str | None], address: str, kwargs: dict[str, Any]) -> list[PommelEnv]:
    kind: type[PommelEnv] = BrowserGymEnv if browsergym else PommelEnv
    envs: list[PommelEnv] = []
    try:
        for task in tasks:
            envs.append(kind(address, task=task, **kwargs))
    except BaseException:
        for env in envs:
            env.close()
        raise
    return envs


def _picked(value: Any, order: list[int]) -> Any:
    """The entries of some environments out of what all have."""
    if isinstance(value, dict):
        return {k: _picked(v, order) for k, v in value.items()}
    return value[order]
