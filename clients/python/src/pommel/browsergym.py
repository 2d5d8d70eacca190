"""Observations in BrowserGym's form, so that an agent written for it runs as it is."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from . import tree
from .env import PommelEnv, StepAnswer
from .errors import InvalidArgument
from .spaces import Record, Unicode
from .types import Info, Observation, Result

_HELLO = "Hi! I am your UI assistant, I can perform web tasks for you. What can I help you with?"

# What BrowserGym's environments take and what has no meaning here: worlds set their browsers up themselves.
_IGNORED = frozenset(
    (
        "headless", "wait_for_user_message", "action_mapping", "pre_observation_delay", "slow_mo", "task_kwargs", "tags_to_mark",
        "resizeable_window", "record_video_dir", "pw_chromium_kwargs", "pw_context_kwargs", "locale", "timezone_id", "task_seed",
    )
)  # fmt: skip


class BrowserGymEnv(PommelEnv):
    """`pommel.PommelEnv` with observations, infos and ends of episodes as BrowserGym has them.

    ==========================  ==============================================================
    goal, goal_object           what the agent is asked to do, as text and as message parts
    chat_messages               tuple of dicts: role, timestamp, message
    open_pages_urls, -_titles   tuples; active_page_index is an array of one number
    url                         of the active page
    screenshot                  uint8 array of height x width x 3
    axtree_object, dom_object   for BrowserGym's flatten_axtree_to_str and flatten_dom_to_str
    extra_element_properties    by bid: visibility, bbox, clickable, set_of_marks
    focused_element_bid         or ""
    last_action, -_error        the error is "kind: message", or ""
    elapsed_time                of the page's own clock, in seconds, so that episodes repeat
    ==========================  ==============================================================

    Actions are BrowserGym's, with prose around them or not. A message to the user is the agent's answer and
    ends the episode, as ``finish(answer)`` does, unless ``message_ends`` is False.

    Args:
        address: As for `pommel.PommelEnv`.
        message_ends: Take ``send_msg_to_user`` for the answer.
        use_raw_page_output: Only False: the browser is not in this process.
        terminate_on_infeasible: Only True.
        **kwargs: Of `pommel.PommelEnv`. Those that BrowserGym's environments take for their browser are ignored.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        message_ends: bool = True,
        use_raw_page_output: bool = False,
        terminate_on_infeasible: bool = True,
        **kwargs: Any,
    ) -> None:
        if use_raw_page_output or not terminate_on_infeasible:
            raise InvalidArgument("use_raw_page_output is no option here, terminate_on_infeasible no choice", "leave both out")
        kwargs = {k: v for k, v in kwargs.items() if k not in _IGNORED}
        viewport = kwargs.get("viewport")
        if isinstance(viewport, dict):
            kwargs["viewport"] = (viewport["width"], viewport["height"])
        self._message_ends = message_ends
        self._chat: list[dict[str, Any]] = []
        self._told = 0
        self._time = 0.0
        super().__init__(address, **{"elements": True, "screenshot": True, **kwargs, "html": False})

    def _space(self) -> gymnasium.spaces.Dict:
        texts = ("goal", "url", "focused_element_bid", "last_action", "last_action_error")
        parts: dict[str, gymnasium.Space[Any]] = {k: Unicode() for k in texts}
        parts |= {k: gymnasium.spaces.Sequence(Unicode()) for k in ("open_pages_urls", "open_pages_titles")}
        parts |= {k: gymnasium.spaces.Sequence(Record()) for k in ("chat_messages", "goal_object")}
        parts |= {k: Record() for k in ("dom_object", "axtree_object", "extra_element_properties")}
        parts["active_page_index"] = gymnasium.spaces.Box(0, 255, (1,), np.int64)
        parts["elapsed_time"] = gymnasium.spaces.Box(0, 1e9, (1,), np.float64)
        if self._screenshot:
            width, height = self._picture_size
            parts["screenshot"] = gymnasium.spaces.Box(0, 255, (height, width, 3), np.uint8)
        return gymnasium.spaces.Dict(parts)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self._chat, self._told = [], 0
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> StepAnswer:
        before, told = self._time, self._told
        obs, reward, terminated, truncated, info = super().step(action)
        if self._told > told and self._message_ends and not (terminated or truncated or info["void"]):
            # The page is as it was; what the agent has said now counts as its answer.
            _, more, terminated, truncated, info = super().step(f"finish({self._chat[-1]['message']!r})")
            reward = float(reward) + float(more)
        return obs, reward, terminated, truncated, info | self._times(before)

    def _times(self, before: float) -> dict[str, Any]:
        names = ("wait_for_page_loading", "validation", "get_observation")
        still = {f"{n}_{end}": self._time for n in names for end in ("start", "stop")}
        return {"action_exec_start": before, "action_exec_stop": self._time, "action_exec_timeout": 0.0, **still}

    def _info(self, result: Result) -> dict[str, Any]:
        return super()._info(result) | {"task_info": {"success": result.info.success}}

    def _observation(self, result: Result) -> dict[str, Any]:
        o = result.observation
        self.last_result = result
        self._time = o.virtual_time_ms / 1000
        self._listen(result.instruction, result.info)
        properties = self._properties(o)
        root = tree.parse(o.text)
        active = next((i for i, t in enumerate(o.tabs) if t["active"]), 0)
        obs: dict[str, Any] = {
            "chat_messages": tuple(dict(m) for m in self._chat),
            "goal": result.instruction,
            "goal_object": ({"type": "text", "text": result.instruction},),
            "open_pages_urls": tuple(t["url"] for t in o.tabs),
            "open_pages_titles": tuple(t["title"] for t in o.tabs),
            "active_page_index": np.array([active], np.int64),
            "url": o.url,
            "axtree_object": tree.axtree(root),
            "dom_object": tree.dom(root, o.title, {e["bid"]: e for e in o.elements}, properties),
            "extra_element_properties": properties,
            "focused_element_bid": o.focused_bid,
            "last_action": o.last_action,
            "last_action_error": o.last_action_error,
            "elapsed_time": np.array([self._time], np.float64),
        }
        if o.dialog and not o.last_action_error:
            # BrowserGym's pages have no dialogs, so nothing else in the observation could show one.
            obs["last_action_error"] = f"dialog_open: {o.dialog}; answer it with dialog_accept() or dialog_dismiss()"
        if self._screenshot:
            obs["screenshot"] = self._picture(o)
        if self.on_lost == "truncate":
            self._last_seen = dict(obs)
        return obs

    def _listen(self, goal: str, info: Info) -> None:
        """Add what was said since the last observation."""
        if not self._chat:
            self._say("assistant", _HELLO)
            self._say("user", goal)
        for message in info.messages[self._told :]:
            self._say("infeasible" if info.infeasible else "assistant", message)
        self._told = len(info.messages)

    def _say(self, role: str, message: str) -> None:
        self._chat.append({"role": role, "timestamp": self._time, "message": message})

    def _properties(self, o: Observation) -> dict[str, dict[str, Any]]:
        width, height = self.viewport
        out: dict[str, dict[str, Any]] = {}
        for e in o.elements:
            x, y, w, h = (float(n) for n in e["box"])
            inside = max(min(x + w, width) - max(x, 0), 0) * max(min(y + h, height) - max(y, 0), 0)
            visible = inside / (w * h) if e["in_viewport"] and w * h > 0 else 0.0
            out[e["bid"]] = {
                "visibility": round(visible, 4),
                "bbox": [x, y, w, h] if w * h > 0 else None,
                "clickable": e["interactive"],
                "set_of_marks": bool(e["interactive"] and visible >= 0.5),
            }
        return out
