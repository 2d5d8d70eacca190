"""The requests of NeMo Gym's simple agent: its HTTP client with its settings, its handling of cookies, its bodies."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from plays import TASK, solution

import pommel

ASK = [{"role": "user", "content": "Call observe first."}]


class Agent:
    """Calls tools as a model asks for them. The model here knows the solution."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(), cookie_jar=aiohttp.DummyCookieJar())
        self.cookies: Any = {}
        self.output: list[dict[str, Any]] = []

    async def post(self, path: str, body: Any) -> tuple[int, str]:
        async with self.http.post(self.address + path, json=body, cookies=self.cookies) as response:
            self.cookies = response.cookies
            return response.status, await response.text()

    async def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        _, raw = await self.post(f"/{name}", arguments)
        call = f"call_{len(self.output)}"
        self.output += [
            {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call},
            {"type": "function_call_output", "call_id": call, "output": raw},
        ]
        answer: dict[str, Any] = json.loads(raw)
        return answer

    def said(self, text: str) -> None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        self.output.append({"type": "message", "role": "assistant", "status": "completed", "content": content})

    async def verify(self, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        response = {"id": "resp_1", "object": "response", "model": "m", "output": self.output, "tools": []}
        status, raw = await self.post("/verify", {**row, "response": response})
        return status, json.loads(raw)


async def play(address: str, seed: int, *, solve: bool) -> dict[str, Any]:
    row = {"responses_create_params": {"input": ASK}, "pommel": {"task": TASK, "seed": seed}, "_ng_task_index": seed}
    agent = Agent(address)
    try:
        status, raw = await agent.post("/seed_session", row)
        assert status == 200, raw
        seen = await agent.tool("observe", {})
        assert "output" in seen, seen
        goal = seen["output"].split("\n", 1)[0].removeprefix("Task: ")
        wrong = await agent.tool("click", {"bid": "999999"})
        assert wrong["error"] and "not_found" in wrong["output"]
        for name, args in solution(goal) if solve else []:
            seen = await agent.tool(name, args)
        assert seen["done"] == solve
        agent.said("I am done.")
        told = json.dumps([o for o in agent.output if o["type"] == "function_call_output"])
        assert "reward" not in told and "success" not in told
        status, judged = await agent.verify(row)
        assert status == 200 and judged["_ng_task_index"] == seed and judged["response"]["output"] == agent.output
        return judged
    finally:
        await agent.http.close()


def test_rollouts(server: pommel.Server) -> None:
    async def run() -> list[dict[str, Any]]:
        return await asyncio.gather(*(play(server.address, seed, solve=seed % 2 == 1) for seed in (1, 2, 3, 4)))

    for judged in asyncio.run(run()):
        solved = judged["pommel_result"]["seed"] % 2 == 1
        assert judged["success"] == solved and judged["reward"] == pytest.approx(float(solved))
        assert judged["pommel_result"]["terminated"] and judged["pommel_result"]["stages"]


def test_tools(server: pommel.Server) -> None:
    async def run() -> Any:
        async with aiohttp.ClientSession() as http, http.get(f"{server.address}/tools") as response:
            return await response.json()

    tools = asyncio.run(run())
    assert {"observe", "click", "fill", "finish"} <= {t["name"] for t in tools}
    assert all(t["type"] == "function" and t["parameters"]["type"] == "object" for t in tools)
