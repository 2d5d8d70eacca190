"""The task that the tests play, and what they ask the server."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

import pommel

TASK = "add-to-cart"


def rpc(server: pommel.Server, call: str, **request: Any) -> dict[str, Any]:
    """One call of pommel.v1.GymService in JSON, as any orchestrator can make it."""
    r = urllib.request.Request(
        f"{server.address}/pommel.v1.GymService/{call}",
        json.dumps(request).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(r, timeout=120) as f:
        answer: dict[str, Any] = json.load(f)
    return answer


def free_worlds(server: pommel.Server) -> int:
    return int(rpc(server, "GetServer").get("freeWorlds", 0))


def solution(goal: str) -> list[tuple[str, dict[str, Any]]]:
    """What solves task add-to-cart, read from its goal alone."""
    m = re.fullmatch(r'Put (\d+) of "(.+)" into your cart\. Do not order anything\.', goal)
    assert m, goal
    return [
        ("fill", {"selector": "#search", "value": m[2]}),
        ("press", {"selector": "#search", "key_comb": "Enter"}),
        ("click", {"selector": f"text={m[2]}"}),
        ("fill", {"selector": "#quantity", "value": m[1]}),
        ("click", {"selector": "#add-to-cart"}),
    ]


def action(name: str, args: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in args.items())})"
