"""What the server answers, decoded."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Screenshot:
    """A picture of the viewport. Pixel (x, y) is CSS point (x / scale, y / scale)."""

    format: str
    width: int
    height: int
    scale: float
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Observation:
    """What the agent sees."""

    url: str
    title: str
    text: str
    last_action: str
    # "kind: message" of the call that failed, or "".
    last_action_error: str
    # "type: message" of the open JavaScript dialog, or "".
    dialog: str
    focused_bid: str
    truncated: bool
    virtual_time_ms: float
    # One dict a tab: index, url, title, active.
    tabs: list[dict[str, Any]]
    # One dict an element: bid, role, name, value, state, box, tag, interactive, in_viewport.
    elements: list[dict[str, Any]]
    html: str
    axtree_json: str
    screenshot: Screenshot | None

    @classmethod
    def from_json(cls, o: dict[str, Any]) -> Observation:
        error, dialog, shot = o.get("lastActionError"), o.get("dialog"), o.get("screenshot")
        return cls(
            url=o.get("url", ""),
            title=o.get("title", ""),
            text=o.get("text", ""),
            last_action=o.get("lastAction", ""),
            last_action_error=f"{error.get('kind', '')}: {error.get('message', '')}" if error else "",
            dialog=f"{dialog.get('type', '')}: {dialog.get('message', '')}" if dialog else "",
            focused_bid=o.get("focusedBid", ""),
            truncated=o.get("truncated", False),
            virtual_time_ms=float(o.get("virtualTimeMs", 0)),
            tabs=[_tab(t) for t in o.get("tabs", ())],
            elements=[_element(e) for e in o.get("elements", ())],
            html=o.get("html", ""),
            axtree_json=o.get("axtreeJson", ""),
            screenshot=_screenshot(shot) if shot else None,
        )


def _tab(t: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": t.get("index", 0),
        "url": t.get("url", ""),
        "title": t.get("title", ""),
        "active": t.get("active", False),
    }


def _element(e: dict[str, Any]) -> dict[str, Any]:
    return {
        "bid": e.get("bid", ""),
        "role": e.get("role", ""),
        "name": e.get("name", ""),
        "value": e.get("value", ""),
        "state": e.get("state", []),
        "box": e.get("box", [0, 0, 0, 0]),
        "tag": e.get("tag", ""),
        "interactive": e.get("interactive", False),
        "in_viewport": e.get("inViewport", False),
    }


def _screenshot(s: dict[str, Any]) -> Screenshot:
    return Screenshot(
        format=s.get("format", ""),
        width=s.get("width", 0),
        height=s.get("height", 0),
        scale=float(s.get("scale", 1)),
        data=base64.b64decode(s.get("data", "")),
    )


@dataclass(frozen=True)
class Perturbation:
    """Something that was put in the agent's way; for the trainer, like all of `Info`."""

    # Page time since the episode began, and the number of the agent's step.
    virtual_ms: int
    step: int
    # Which rule of the profile struck, and its kind.
    rule: str
    kind: str
    # The decision point: the nth request, page or step that the rule was about.
    at: int
    target: str
    # What the agent could see of it.
    seen: str
    # How it was drawn: durations in milliseconds, numbers and words.
    settings: dict[str, int | str]
    # By how many steps the episode's limit has grown for it.
    cost: int

    @classmethod
    def from_json(cls, p: dict[str, Any]) -> Perturbation:
        numbers: dict[str, int | str] = {k: int(v) for k, v in p.get("numbers", {}).items()}
        return cls(
            virtual_ms=int(p.get("virtualMs", 0)),
            step=int(p.get("step", 0)),
            rule=p.get("rule", ""),
            kind=p.get("kind", ""),
            at=int(p.get("at", 0)),
            target=p.get("target", ""),
            seen=p.get("seen", ""),
            settings=numbers | p.get("texts", {}),
            cost=int(p.get("cost", 0)),
        )


@dataclass(frozen=True)
class Info:
    """The trainer's part of a result; never show it to the agent."""

    task: str
    seed: int
    split: str
    success: bool
    # Weighted sum of the stages that hold, 0..1.
    potential: float
    # Which stages of the task hold now, in the task's order.
    stages: dict[str, bool]
    weights: dict[str, float]
    # Tables with changes that the task does not allow.
    collateral: list[str]
    # Chain over all observations of the episode.
    observation_hash: str
    messages: list[str]
    notes: list[str]
    still_running: list[str]
    infeasible: bool
    # Whether a request was slower, in real time, than a step waits for.
    capped: bool
    # Whether an episode with the same task, seed and actions is the same again, or why it need not be.
    reproducible: bool
    not_reproducible: str
    # Where the wall time of the call went: total_ms, act_ms, observe_ms, judge_ms, reset_ms.
    timing: dict[str, float]
    verdict_json: str
    # Whether something may be in the agent's way in this episode, of which profile, and what
    # struck since the last step.
    perturbed: bool
    profile: str
    perturbations: list[Perturbation]

    @property
    def verdict(self) -> Any:
        """The judge's whole verdict with its evidence, or None."""
        return json.loads(self.verdict_json) if self.verdict_json else None

    @classmethod
    def from_json(cls, i: dict[str, Any]) -> Info:
        timing = i.get("timing", {})
        stages = i.get("stages", ())
        return cls(
            task=i.get("task", ""),
            seed=int(i.get("seed", 0)),
            split=i.get("split", ""),
            success=i.get("success", False),
            potential=float(i.get("potential", 0)),
            stages={s.get("name", ""): s.get("holds", False) for s in stages},
            weights={s.get("name", ""): float(s.get("weight", 0)) for s in stages},
            collateral=i.get("collateral", []),
            observation_hash=i.get("observationHash", ""),
            messages=i.get("messages", []),
            notes=i.get("notes", []),
            still_running=i.get("stillRunning", []),
            infeasible=i.get("infeasible", False),
            capped=i.get("capped", False),
            reproducible=i.get("reproducible", False),
            not_reproducible=i.get("notReproducible", ""),
            timing={
                f"{k}_ms": float(timing.get(f"{k}Ms", 0)) for k in ("total", "act", "observe", "judge", "reset")
            },
            verdict_json=i.get("verdictJson", ""),
            perturbed=i.get("perturbed", False),
            profile=i.get("profile", ""),
            perturbations=[Perturbation.from_json(p) for p in i.get("perturbations", ())],
        )


@dataclass(frozen=True)
class Result:
    """The answer to reset (step 0) and step."""

    episode_id: str
    step: int
    instruction: str
    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: Info


@dataclass(frozen=True)
class Task:
    """One task of the server's world."""

    id: str
    title: str
    difficulty: str
    split: str
    max_steps: int
    stages: tuple[str, ...]

    @classmethod
    def from_json(cls, t: dict[str, Any]) -> Task:
        return cls(
            id=t.get("id", ""),
            title=t.get("title", ""),
            difficulty=t.get("difficulty", ""),
            split=t.get("split", ""),
            max_steps=t.get("maxSteps", 0),
            stages=tuple(t.get("stages", ())),
        )


@dataclass(frozen=True)
class ServerInfo:
    """What a server says of itself."""

    version: str
    world: str
    world_title: str
    worlds: int
    free_worlds: int
    lease_ms: int
    driver: str
    # Width and height of the browser's window in CSS pixels; (0, 0) when the server does not say.
    viewport: tuple[int, int] = (0, 0)
    # Pixels of a screenshot per CSS pixel.
    scale: float = 1.0

    @property
    def picture(self) -> tuple[int, int]:
        """Width and height of a screenshot in pixels."""
        return round(self.viewport[0] * self.scale), round(self.viewport[1] * self.scale)

    @classmethod
    def from_json(cls, d: dict[str, Any]) -> ServerInfo:
        v = d.get("viewport", {})
        return cls(
            version=d.get("version", ""),
            world=d.get("world", ""),
            world_title=d.get("worldTitle", ""),
            worlds=d.get("worlds", 0),
            free_worlds=d.get("freeWorlds", 0),
            lease_ms=int(d.get("leaseMs", 0)),
            driver=d.get("driver", ""),
            viewport=(v.get("width", 0), v.get("height", 0)),
            scale=float(v.get("scale", 1)),
        )


@dataclass(frozen=True)
class View:
    """Which optional parts an observation should hold. Text is always there."""

    elements: bool = False
    html: bool = False
    axtree: bool = False
    # "", "png" or "jpeg".
    screenshot: str = ""
    # Bound of the text in bytes; 0 is the server's default.
    max_text: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "elements": self.elements,
            "html": self.html,
            "axtree": self.axtree,
            "screenshot": self.screenshot,
            "maxText": self.max_text,
        }
