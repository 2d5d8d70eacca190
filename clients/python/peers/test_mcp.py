"""The client of the official Python SDK for MCP."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
from plays import TASK, rpc, solution
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import pommel


def text(result: Any) -> str:
    return "".join(c.text for c in result.content if c.type == "text")


async def play(client: Client) -> None:
    """Solve the task with tools alone."""
    names = {t.name for t in (await client.list_tools()).tools}
    assert {"observe", "click", "fill", "finish"} <= names and not names & {"reset", "step", "state", "close"}
    first = await client.call_tool("observe", {})
    goal = text(first).split("\n", 1)[0].removeprefix("Task: ")
    wrong = await client.call_tool("click", {"bid": "999999"})
    assert wrong.is_error and "not_found" in text(wrong)
    for name, args in solution(goal):
        last = await client.call_tool(name, args)
        assert not last.is_error, text(last)
    assert "The episode has ended." in text(last)
    assert any(c.type == "image" and c.mime_type == "image/png" for c in last.content)
    told = json.dumps(last.model_dump(mode="json", exclude={"content": {1: True}}))
    assert "reward" not in told and "success" not in told
    assert (await client.call_tool("observe", {})).is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_task_over_http(server: pommel.Server, mode: Any) -> None:
    episode = rpc(server, "Reset", task=TASK, seed=5, view={"screenshot": "png"})["episodeId"]
    agent = rpc(server, "GetEpisode", episodeId=episode)["agentToken"]

    async def run() -> None:
        headers = {"Authorization": f"Bearer {agent}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{server.address}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                await play(client)
                with pytest.raises(MCPError):
                    await client.call_tool("reset", {})

    asyncio.run(run())
    end = rpc(server, "GetEpisode", episodeId=episode)
    assert end["reward"] == pytest.approx(1) and end["last"]["terminated"] and end["last"]["info"]["success"]
    rpc(server, "Close", episodeId=episode)


def test_task_over_stdio(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    args = ["mcp", "--world", "shop", "--task", TASK, "--seed", "6", "--traces", str(tmp_path), "--result", str(result)]
    server = StdioServerParameters(command=os.environ["POMMEL_BIN"], args=args, env=dict(os.environ))

    async def run() -> None:
        async with Client(stdio_client(server), read_timeout_seconds=120) as client:
            await play(client)

    asyncio.run(run())
    judged = json.loads(result.read_text())
    assert judged["success"] and judged["reward"] == pytest.approx(1) and judged["steps"] == 6
