"""A server that speaks the wire's JSON and breaks on demand. Its episodes only count."""

from __future__ import annotations

import base64
import io
import json
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from PIL import Image


class Failure(Exception):
    """An error that the fake answers with, as the real server words it."""

    def __init__(self, kind: str, message: str, hint: str = "", code: str = "data_loss", status: int = 500) -> None:
        self.kind, self.message, self.hint, self.code, self.status = kind, message, hint, code, status

    def body(self) -> dict[str, Any]:
        def text(number: int, s: str) -> bytes:
            data = s.encode()
            size, n = b"", len(data)
            while n >= 0x80:
                size, n = size + bytes([n & 0x7F | 0x80]), n >> 7
            return bytes([number << 3 | 2]) + size + bytes([n]) + data

        value = text(1, self.kind) + text(2, self.message) + (text(3, self.hint) if self.hint else b"")
        detail = {"type": "pommel.v1.Error", "value": base64.b64encode(value).decode().rstrip("=")}
        return {"code": self.code, "message": self.message, "details": [detail] if self.kind else []}


def png(width: int, height: int) -> str:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (10, 20, 30)).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


class FakeGym:
    """Attributes that tests set: cut (calls whose connection breaks after they were carried out,
    by name), refuse (status lines instead of an answer), fail (raised by a step), size of pictures."""

    def __init__(self, path: str = "") -> None:
        self.lock = threading.Lock()
        self.episodes: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, str] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.closed: list[str] = []
        self.beats: list[str] = []
        self.beat = threading.Event()
        self.cut: dict[str, int] = {}
        self.refuse: list[tuple[int, bytes]] = []
        self.fail: Callable[[str], None] = lambda action: None
        self.steps = 3
        self.size = (64, 48)
        self.text = "page {n} \u6f22 \U0001f600"
        self.lease_ms = 60_000
        self.lose_resets = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                if not path:
                    self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                name = self.path.rsplit("/", 1)[-1]
                with fake.lock:
                    fake.calls.append((name, body))
                    fake.headers.append(dict(self.headers))
                    if fake.refuse:
                        return self.answer(*fake.refuse.pop(0))
                status, answer = 200, {}
                try:
                    answer = fake.answer(name, body)
                except Failure as e:
                    status, answer = e.status, e.body()
                if fake.cut.get(name, 0) > 0:
                    fake.cut[name] -= 1
                    # A reset, as from a proxy that dies: no farewell, no answer.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    return None
                return self.answer(status, json.dumps(answer).encode())

            def answer(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            address_family = socket.AF_UNIX if path else socket.AF_INET

            def server_bind(self) -> None:
                TCPServer.server_bind(self)  # without HTTPServer's look-up of a name

            def handle_error(self, *args: Any) -> None:
                pass  # cut connections

            def shutdown_request(self, request: Any) -> None:
                self.close_request(request)  # without the farewell of shutdown(2)

        self.http = Quiet(path or ("127.0.0.1", 0), Handler)  # type: ignore[arg-type]
        self.address = f"unix:{path}" if path else f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    def named(self, name: str) -> list[dict[str, Any]]:
        return [body for n, body in self.calls if n == name]

    def answer(self, name: str, r: dict[str, Any]) -> dict[str, Any]:
        return getattr(self, "do_" + name)(r)

    def do_GetServer(self, r: dict[str, Any]) -> dict[str, Any]:
        return {"version": "v1", "world": "shop", "worlds": 2, "freeWorlds": 1, "leaseMs": str(self.lease_ms),
                "viewport": {"width": self.size[0], "height": self.size[1], "scale": 1}}  # fmt: skip

    def do_ListTasks(self, r: dict[str, Any]) -> dict[str, Any]:
        tasks = [
            {"id": "buy-item", "title": "Buy", "difficulty": "easy", "split": "train", "maxSteps": 30, "stages": ["done"]},
            {"id": "refund", "title": "Refund", "difficulty": "hard", "split": "test", "maxSteps": 50},
        ]
        return {"tasks": [t for t in tasks if r["split"] in ("", t["split"]) and r["difficulty"] in ("", t["difficulty"])]}

    def observation(self, e: dict[str, Any], n: int, view: dict[str, Any]) -> dict[str, Any]:
        o: dict[str, Any] = {
            "url": "http://shop/", "title": "Shop", "text": self.text.format(n=n) + f" seed {e['seed']}",
            "tabs": [{"url": "http://shop/", "title": "Shop", "active": True}], "virtualTimeMs": n * 10.5,
        }  # fmt: skip
        if n:
            o["lastAction"] = e["actions"][n - 1]
            if "bad" in o["lastAction"]:
                o["lastActionError"] = {"kind": "not_found", "message": "no element"}
        if view.get("elements"):
            o["elements"] = [{"bid": "1", "role": "button", "name": "Buy", "box": [1, 2, 3, 4], "interactive": True, "inViewport": True}]
        if view.get("screenshot"):
            w, h = self.size
            o["screenshot"] = {"format": "png", "width": w, "height": h, "scale": 1, "data": png(w, h)}
        return o

    def info(self, e: dict[str, Any], success: bool) -> dict[str, Any]:
        return {
            "task": e["task"], "seed": e["seed"], "split": "train", "success": success, "potential": float(success),
            "stages": [{"name": "done", "weight": 1, "holds": success}], "observationHash": "ab",
            "capped": True, "notReproducible": "it was slow",
            "perturbed": bool(e["profile"]), "profile": e["profile"],
            "perturbations": [{
                "virtualMs": "1500", "step": 1, "rule": "http.error", "kind": "http.error", "at": 2, "target": "GET /cart",
                "seen": "503", "numbers": {"status": "503"}, "texts": {"style": "icon"}, "cost": 2,
            }] if e["profile"] else [],
            "messages": e.get("said", []), "timing": {"totalMs": 1.5}, "verdictJson": '{"why":"rows"}',
        }  # fmt: skip

    def do_Reset(self, r: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            if self.lose_resets > 0:
                self.lose_resets -= 1
                raise Failure("world_lost", "no world starts")
            episode = self.requests.setdefault(r["requestId"], f"e{len(self.requests) + 1}")
            e = self.episodes.setdefault(episode, {"task": r["task"], "seed": r["seed"], "profile": r.get("profile", ""), "actions": [], "calls": [], "saved": []})
        if r["task"] == "nope":
            raise Failure("not_found", "task nope is not known", "see ListTasks", "not_found", 404)
        observation = self.observation(e, 0, r["view"])
        return {"episodeId": episode, "instruction": "Buy it.", "observation": observation, "info": self.info(e, False)}

    def do_Step(self, r: dict[str, Any]) -> dict[str, Any]:
        e = self.episodes.get(r["episodeId"])
        if e is not None and "send_msg_to_user" in r["action"]:
            e["said"] = ["It is 42."]
        if e is None:
            raise Failure("not_found", "no such episode", "", "not_found", 404)
        self.fail(r["action"])
        with self.lock:
            if self.fresh(e, r["step"], "step " + r["action"]):
                if len(e["actions"]) >= self.steps:
                    e["calls"].pop()
                    raise Failure("episode_over", "the episode has ended", "call Reset", "failed_precondition", 400)
                e["actions"].append(r["action"])
            n = len(e["actions"])
        over = n == self.steps or r["action"].startswith("finish(")
        answer = {"step": n, "observation": self.observation(e, n, r["view"]), "info": self.info(e, over)}
        if over:
            answer |= {"reward": 1, "terminated": True}
        return answer

    def fresh(self, e: dict[str, Any], n: int, what: str) -> bool:
        """Tell a new call from a repeated one, by the number that all calls share."""
        calls = e["calls"]
        if n == len(calls) + 1:
            calls.append(what)
            return True
        if n != len(calls) or calls[n - 1] != what:
            raise Failure("invalid_argument", f"step {n} is not next", "", "invalid_argument", 400)
        return False

    def do_Checkpoint(self, r: dict[str, Any]) -> dict[str, Any]:
        e = self.episodes[r["episodeId"]]
        with self.lock:
            if self.fresh(e, r["call"], "checkpoint"):
                e["saved"].append(list(e["actions"]))
            return {"checkpointId": f"c{len(e['saved'])}"}

    def do_Restore(self, r: dict[str, Any]) -> dict[str, Any]:
        e = self.episodes[r["episodeId"]]
        with self.lock:
            if self.fresh(e, r["call"], "restore " + r["checkpointId"]):
                e["actions"] = list(e["saved"][int(r["checkpointId"][1:]) - 1])
        n = len(e["actions"])
        return {"step": n, "observation": self.observation(e, n, {}), "info": self.info(e, False)}

    def do_Forget(self, r: dict[str, Any]) -> dict[str, Any]:
        return {}

    def do_Observe(self, r: dict[str, Any]) -> dict[str, Any]:
        e = self.episodes[r["episodeId"]]
        return {"observation": self.observation(e, len(e["actions"]), r["view"])}

    def do_Heartbeat(self, r: dict[str, Any]) -> dict[str, Any]:
        self.beats.append(r["episodeId"])
        self.beat.set()
        return {"leaseMs": str(self.lease_ms)}

    def do_Close(self, r: dict[str, Any]) -> dict[str, Any]:
        self.closed.append(r["episodeId"])
        return {}
