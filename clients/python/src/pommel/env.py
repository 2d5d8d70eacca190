"""The Gymnasium environment."""

from __future__ import annotations

import copy
import dataclasses
import io
import os
from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from numpy.typing import NDArray

from .client import Client
from .errors import InfrastructureError, InvalidArgument, NotFound, PommelError
from .local import Room, servers
from .session import Session
from .spaces import Action, Records, Unicode
from .types import Observation, Result, Screenshot, Task, View

StepAnswer = tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]

# Which seeds belong to which split, by their last digit.
_SPLITS = {"train": range(0, 7), "validation": range(7, 9), "test": range(9, 10)}
_LOST_RESETS = 3
# What worlds have that do not say otherwise.
_COMMON_VIEWPORT = (1280, 720)


class PommelEnv(gymnasium.Env[dict[str, Any], str]):
    """A task on a real application in a real browser, paid by rows of its database.

    Actions are strings, see `pommel.spaces.Action`. Observations are dicts:

    ======================  ==================================================================
    goal                    what the agent is asked to do
    text                    the page as an accessibility-style tree, one node a line
    url, title              of the active tab
    tabs                    list of dicts: index, url, title, active
    dialog                  "type: message" of an open JavaScript dialog, or ""
    last_action             the action before this observation
    last_action_error       "kind: message" when it did not work, or ""
    elements                with ``elements=True``: list of dicts, one an element
    html                    with ``html=True``: the page's HTML
    screenshot              with ``screenshot=True``: uint8 array of height x width x 3
    ======================  ==================================================================

    ``info`` is for the trainer: task, seed, split, success, potential, stages, collateral,
    observation_hash, infeasible, messages, notes, perturbed, profile, perturbations (what was
    put in the agent's way since the last step), void. Everything of the last answer,
    with timing and the judge's verdict, stands in `last_result`.

    A fault of the infrastructure raises `pommel.InfrastructureError`; it is never a reward.

    Args:
        address: Of the server. None is $POMMEL_ADDRESS, or else a server that is started by itself, and
            ends when the environment is closed.
        task: Id of the task. None draws one of the server's tasks at each reset.
        world: That a server started by itself runs; a server that was given and runs another one is refused.
        split: Which tasks and seeds are drawn when they are not given: train, validation, test,
            or "" for all.
        difficulty: Of the tasks that are drawn: easy, medium, hard, or "" for all.
        elements, html, screenshot: Optional parts of the observation.
        viewport: Size of the world's browser window, and of the screenshot; None asks the server.
        max_text: Bound of the text in bytes; 0 is the server's default.
        max_steps: Step limit in place of the task's own; 0 keeps the task's.
        profile: What is in the agent's way: a profile of perturbations that the server knows by
            name, such as "rough" or "rough@0.5" (half its strength); "" is nothing.
        render_mode: "rgb_array" or None.
        wait: Seconds to wait for a free world; None is the server's default.
        lease: Seconds that this caller may be silent; None is the server's default.
        heartbeat: Renew the lease in the background for as long as this process lives.
        on_lost: "raise", or "truncate" for vector environments that must not stop: the episode
            ends with reward NaN, truncated, and info["void"] True; a reset is tried again.
        token, timeout, retries, ssl_context: See `pommel.Client`.
        name: This caller's name in the server's logs and traces.
        serve_args: Further arguments of `pommel serve` when it is started by itself.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}

    def __init__(
        self,
        address: str | None = None,
        *,
        task: str | None = None,
        world: str | None = None,
        split: str = "train",
        difficulty: str = "",
        elements: bool = False,
        html: bool = False,
        screenshot: bool = False,
        viewport: tuple[int, int] | None = None,
        max_text: int = 0,
        max_steps: int = 0,
        profile: str = "",
        render_mode: str | None = None,
        wait: float | None = None,
        lease: float | None = None,
        heartbeat: bool = True,
        on_lost: str = "raise",
        token: str | None = None,
        timeout: float = 180.0,
        retries: int = 5,
        ssl_context: Any = None,
        name: str = "",
        serve_args: Sequence[str] = (),
    ) -> None:
        _check("split", split, ("", *_SPLITS))
        _check("on_lost", on_lost, ("raise", "truncate"))
        _check("render_mode", render_mode, (None, "rgb_array"))
        if screenshot or render_mode:
            _pillow()
        self.render_mode = render_mode
        self.task, self.world, self.split, self.difficulty = task, world, split, difficulty
        self.on_lost = on_lost
        self._elements, self._html, self._screenshot = elements, html, screenshot
        self._max_steps, self._wait, self._lease = max_steps, wait, lease
        self.profile = profile
        self._view = View(elements=elements, html=html, screenshot="png" if screenshot else "", max_text=max_text)
        self._address = address or os.environ.get("POMMEL_ADDRESS")
        self._connection = {"token": token, "timeout": timeout, "retries": retries, "ssl_context": ssl_context}
        self._name, self._heartbeat, self._serve_args = name, heartbeat, tuple(serve_args)
        self._room: Room | None = None
        self._session: Session | None = None
        self.last_result: Result | None = None
        self._tasks: list[Task] | None = None
        self._checked = False
        self._last_seen: dict[str, Any] | None = None
        self._given = viewport
        if self._address is not None:
            self._open()
        # A server is asked, and perhaps started, before the first reset only when a space depends on it.
        self.viewport, self._picture_size = self._sizes()
        self.action_space = Action(viewport=self.viewport)
        self.observation_space = self._space()

    @property
    def session(self) -> Session:
        """The connection to the server, which is started if need be."""
        return self._session or self._open()

    def _open(self) -> Session:
        address, connection = self._address, self._connection
        if address is None:
            self._room = servers.take(self.world, args=self._serve_args)
            address, connection = self._room.address, {**connection, "token": self._room.token}
        client = Client(address, **connection)
        self._session = Session(client, view=self._view, name=self._name, heartbeat=self._heartbeat)
        return self._session

    def _sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Width and height of the window, and of a screenshot."""
        if self._given is not None:
            size = (int(self._given[0]), int(self._given[1]))
            return size, size
        if not self._screenshot:
            return _COMMON_VIEWPORT, _COMMON_VIEWPORT
        try:
            info = self.session.client.server()
        except BaseException:
            self.close()
            raise
        return (info.viewport, info.picture) if all(info.viewport) else (_COMMON_VIEWPORT, _COMMON_VIEWPORT)

    def _space(self) -> gymnasium.spaces.Dict:
        parts: dict[str, gymnasium.Space[Any]] = {
            k: Unicode() for k in ("goal", "text", "url", "title", "dialog", "last_action", "last_action_error")
        }
        parts["tabs"] = Records()
        if self._elements:
            parts["elements"] = Records()
        if self._html:
            parts["html"] = Unicode()
        if self._screenshot:
            width, height = self._picture_size
            parts["screenshot"] = gymnasium.spaces.Box(0, 255, (height, width, 3), np.uint8)
        return gymnasium.spaces.Dict(parts)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed of the episode. None draws one of the split, repeatably after a reset with a seed.
            options: "task" chooses the task of this episode, "max_steps" its step limit,
                "profile" its perturbations.
        """
        super().reset(seed=seed)
        options = options or {}
        unknown = set(options) - {"task", "max_steps", "profile"}
        if unknown:
            raise InvalidArgument(f"reset has no options {sorted(unknown)}", "it takes task, max_steps and profile")
        self._check_world()
        task = options.get("task") or self.task or self._draw_task()
        episode_seed = self._draw_seed() if seed is None else int(seed)
        max_steps = int(options.get("max_steps", self._max_steps))
        profile = str(options.get("profile", self.profile))
        result = self._start(task, episode_seed, max_steps, profile)
        return self._observation(result), self._info(result)

    def _start(self, task: str, seed: int, max_steps: int, profile: str) -> Result:
        for attempt in range(1, _LOST_RESETS + 1):
            try:
                return self.session.reset(
                    task, seed, wait=self._wait, lease=self._lease, max_steps=max_steps, profile=profile
                )
            except InfrastructureError:
                if self.on_lost == "raise" or attempt == _LOST_RESETS:
                    raise
        raise AssertionError("unreachable")

    def step(self, action: str) -> StepAnswer:
        """Perform one action string."""
        if not isinstance(action, str):
            raise InvalidArgument(f"the action is a {type(action).__name__}", "want a string, such as 'noop()'")
        try:
            result = self.session.step(action)
        except InfrastructureError as e:
            if self.on_lost == "raise":
                raise
            return self.void(e)
        obs = self._observation(result)
        return obs, result.reward, result.terminated, result.truncated, self._info(result)

    def checkpoint(self) -> str:
        """Save the whole state of the episode and name it; see `Session.checkpoint`."""
        return self.session.checkpoint()

    def restore(self, checkpoint: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Put the episode back to a checkpoint; returns what `reset` or `step` returned then."""
        result = self.session.restore(checkpoint)
        return self._observation(result), self._info(result)

    def forget(self, checkpoint: str) -> None:
        """Free a checkpoint. One that is not held is no error."""
        self.session.forget(checkpoint)

    def render(self) -> NDArray[np.uint8] | None:
        """Take a picture of the page as it is now; costs no step."""
        if self.render_mode is None:
            return None
        seen = self.session.observe(View(screenshot="png", max_text=1024))
        if seen.screenshot is None:
            raise PommelError("the server sent no screenshot")
        return _pixels(seen.screenshot)

    def close(self) -> None:
        """Free the world. Closing twice is no error."""
        session, self._session = self._session, None
        room, self._room = self._room, None
        try:
            if session is not None:
                session.close()
        finally:
            if room is not None:
                room.close()

    # A copy in another process has a session, and if need be a server, of its own.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None, "_room": None}

    @property
    def tasks(self) -> list[Task]:
        """The server's tasks of the split and difficulty."""
        if self._tasks is None:
            self._tasks = self.session.client.tasks(self.split, self.difficulty)
        return list(self._tasks)

    def _check_world(self) -> None:
        # A server that this environment has started runs what it was told to.
        if self._checked or self.world is None or self._address is None:
            return
        runs = self.session.client.server().world
        if runs != self.world:
            raise InvalidArgument(
                f"the server at {self.session.client.address} runs world {runs!r}, not {self.world!r}",
                f"start one with `pommel serve --world {self.world}`",
            )
        self._checked = True

    def _draw_task(self) -> str:
        tasks = self.tasks
        if not tasks:
            raise NotFound(
                f"the server has no task of split {self.split!r} and difficulty {self.difficulty!r}",
                'give task=, or split=""',
            )
        return tasks[int(self.np_random.integers(len(tasks)))].id

    def _draw_seed(self) -> int:
        tens = int(self.np_random.integers(1 << 27)) * 10
        digits = _SPLITS.get(self.split, range(10))
        return tens + int(digits[int(self.np_random.integers(len(digits)))])

    def _observation(self, result: Result) -> dict[str, Any]:
        self.last_result = result
        o = result.observation
        obs: dict[str, Any] = {
            "goal": result.instruction,
            "text": o.text,
            "url": o.url,
            "title": o.title,
            "dialog": o.dialog,
            "last_action": o.last_action,
            "last_action_error": o.last_action_error,
            "tabs": o.tabs,
        }
        if self._elements:
            obs["elements"] = o.elements
        if self._html:
            obs["html"] = o.html
        if self._screenshot:
            obs["screenshot"] = self._picture(o)
        if self.on_lost == "truncate":
            self._last_seen = dict(obs)
        return obs

    def _picture(self, o: Observation) -> NDArray[np.uint8]:
        if o.screenshot is None:
            raise PommelError("the server sent no screenshot", "it may have been too large; see `truncated`")
        width, height = self._picture_size
        pixels = _pixels(o.screenshot)
        if pixels.shape != (height, width, 3):
            raise InvalidArgument(
                f"the screenshot is {pixels.shape[1]}x{pixels.shape[0]}, the environment expects {width}x{height}",
                f"pass viewport=({pixels.shape[1]}, {pixels.shape[0]})",
            )
        return pixels

    def _info(self, result: Result) -> dict[str, Any]:
        i = result.info
        # No times and no ids in here: a repeated episode has equal infos.
        return {
            "task": i.task,
            "seed": i.seed,
            "split": i.split,
            "success": i.success,
            "potential": i.potential,
            "stages": dict(i.stages),
            "collateral": list(i.collateral),
            "observation_hash": i.observation_hash,
            "infeasible": i.infeasible,
            "capped": i.capped,
            "reproducible": i.reproducible,
            "messages": list(i.messages),
            "notes": list(i.notes),
            "perturbed": i.perturbed,
            "profile": i.profile,
            "perturbations": [dataclasses.asdict(p) for p in i.perturbations],
            "void": False,
        }

    def void(self, e: InfrastructureError) -> StepAnswer:
        """Say in Gymnasium's form that a fault has made the episode void: truncated, with no reward."""
        if self._last_seen is None:
            raise e
        info = {"void": True, "error": e.kind, "error_message": str(e), "success": False}
        return copy.deepcopy(self._last_seen), float("nan"), False, True, info


def _check(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise InvalidArgument(f"{name} is {value!r}", f"want one of {', '.join(map(repr, allowed))}")


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as e:
        raise ImportError("screenshots need Pillow: pip install 'pommel[image]'") from e
    return Image


def _pixels(shot: Screenshot) -> NDArray[np.uint8]:
    with _pillow().open(io.BytesIO(shot.data)) as image:
        return np.array(image.convert("RGB"), dtype=np.uint8)
