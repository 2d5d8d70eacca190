"""Environments without an address: they start a server, share it, and end it."""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest
from test_serve import ended

import pommel
from pommel.discover import worlds
from pommel.local import servers

# The fake server as a program: notes each start, and asks for the token as the real one does.
STAND_IN = """\
#!{python}
import json, os, signal, sys
sys.path.insert(0, {tests!r})
from fake import FakeGym
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
f = FakeGym()
with open({log!r}, "a") as log:
    print(json.dumps(dict(pid=os.getpid(), argv=sys.argv[1:], token=os.environ.get("POMMEL_TOKEN", ""))), file=log)
print(json.dumps(dict(address=f.address)), flush=True)
signal.sigwait([signal.SIGTERM])
"""


class Program:
    def __init__(self, folder: Path) -> None:
        self.log = folder / "starts"
        self.path = folder / "pommel"
        tests = str(Path(__file__).parent)
        self.path.write_text(STAND_IN.format(python=sys.executable, tests=tests, log=str(self.log)))
        self.path.chmod(0o755)

    def starts(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    p = Program(tmp_path)
    monkeypatch.setenv("POMMEL_BIN", str(p.path))
    monkeypatch.delenv("POMMEL_ADDRESS", raising=False)
    yield p
    servers.stop()
    assert all(ended(int(str(s["pid"]))) for s in p.starts())


def test_env_starts_its_server_and_ends_it(program: Program) -> None:
    env = pommel.make("buy-item", world="shop", serve_args=["--driver", "respawn"])
    assert not program.starts()  # the first reset needs it
    obs, _ = env.reset(seed=7)
    assert obs["text"].endswith("seed 7")
    (start,) = program.starts()
    argv = start["argv"]
    assert isinstance(argv, list) and argv[argv.index("--world") + 1] == "shop" and argv[argv.index("--worlds") + 1] == "1"
    assert argv[-2:] == ["--driver", "respawn"]
    assert len(str(start["token"])) == 32 and env.unwrapped.session.client._token == start["token"]  # type: ignore[attr-defined]
    env.close()
    env.close()
    assert ended(int(str(start["pid"])))
    env.reset(seed=8)
    assert len(program.starts()) == 2
    env.close()


def test_vector_has_one_server_with_room_for_all(program: Program) -> None:
    envs = pommel.make_vec(3, "buy-item")
    envs.reset(seed=0)
    (start,) = program.starts()
    argv = start["argv"]
    assert isinstance(argv, list) and "--world" not in argv and argv[argv.index("--worlds") + 1] == "3"
    envs.close()
    assert ended(int(str(start["pid"])))


def test_room_is_shared(program: Program) -> None:
    rooms = [servers.take("shop", 2)]
    rooms[0].close()
    rooms = [servers.take("shop", 2)]
    assert servers.take("bank").address != rooms[0].address
    assert servers.take("shop").address != rooms[0].address  # it is full
    gc.collect()


def test_forgotten_env_gives_its_room_back(program: Program) -> None:
    pommel.PommelEnv(task="buy-item").reset(seed=1)
    gc.collect()
    (start,) = program.starts()
    assert ended(int(str(start["pid"])))


def test_copy_has_a_server_of_its_own(program: Program) -> None:
    env = pommel.PommelEnv(task="buy-item")
    env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.reset(seed=2)[0]["text"].endswith("seed 2")
    env.close()
    assert copy.step("noop()")[0]["text"].startswith("page 1")
    copy.close()
    assert len(program.starts()) == 2


def test_processes_have_servers_of_their_own(program: Program) -> None:
    envs = gymnasium.vector.AsyncVectorEnv([lambda: pommel.PommelEnv(task="buy-item")] * 2, shared_memory=False)
    envs.reset(seed=0)
    assert len(program.starts()) == 2
    envs.close()


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_server_ends_with_the_process(program: Program, end: str) -> None:
    code = f"import os, signal, pommel\nenv = pommel.PommelEnv(task='buy-item')\nenv.reset(seed=1)\n{end}"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "POMMEL_BIN": str(program.path)}, capture_output=True)
    assert done.returncode == (-signal.SIGKILL if end else 0), done.stderr.decode()
    (start,) = program.starts()
    assert ended(int(str(start["pid"])))


def test_names_of_worlds_and_tasks(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("w/bank", "w/Not-A-Name", "worlds/desk"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "world.yaml").touch()
    monkeypatch.setenv("POMMEL_WORLDS", str(tmp_path / "w"))
    assert {"bank", "desk"} <= set(worlds()) and "Not-A-Name" not in worlds()
    before = set(gymnasium.registry)
    try:
        pommel.register_envs()
        assert gymnasium.spec("pommel/bank-v0").kwargs == {"world": "bank"}
        assert "pommel/shop-refund-v0" in pommel.register_tasks()
        (start,) = program.starts()
        assert ended(int(str(start["pid"])))
        with gymnasium.make("pommel/shop-refund-v0") as env:
            assert env.reset(seed=1)[1]["task"] == "refund"
    finally:
        for name in set(gymnasium.registry) - before:
            del gymnasium.registry[name]
        pommel.register_envs()
