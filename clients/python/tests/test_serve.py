"""Starting and ending `pommel serve`, with a stand-in for the program."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pommel

STAND_IN = """\
#!{python}
import json, os, signal, sys
if "--fail" in sys.argv:
    sys.exit("pommel: no such world")
if "--babble" in sys.argv:
    print("hello", flush=True)
print("warming up", file=sys.stderr, flush=True)
print(json.dumps({{"address": "http://127.0.0.1:1", "pid": os.getpid(), "argv": sys.argv[1:]}}), flush=True)
signal.sigwait({{signal.SIGTERM}})
"""


@pytest.fixture
def binary(tmp_path: Path) -> str:
    path = tmp_path / "pommel"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def ended(pid: int) -> bool:
    """Wait for the end of a process that is not our child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(fd):
        return bool(select.select([fd], [], [], 30)[0])


def test_serve(binary: str) -> None:
    with pommel.serve("shop", 3, binary=binary, lease=90, args=["--log"]) as server:
        assert server.address == "http://127.0.0.1:1" and "warming up" in server.log
        assert server.ready["argv"] == [
            "serve", "--json", "--addr", "127.0.0.1:0", "--worlds", "3", "--world", "shop", "--drain", "0s", "--lease", "90s", "--log",
        ]  # fmt: skip
    assert ended(server.ready["pid"])
    server.close()


def test_failed_start_says_why(binary: str) -> None:
    with pytest.raises(pommel.Unavailable, match="status 1\npommel: no such world"):
        pommel.serve(binary=binary, args=["--fail"])
    with pytest.raises(pommel.Unavailable, match="hello"):
        pommel.serve(binary=binary, args=["--babble"])


def test_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pommel.NotFound, match="is no program"):
        pommel.serve(binary="/nonexistent/pommel")
    monkeypatch.delenv("POMMEL_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("pommel.discover._checkout", lambda: "")
    with pytest.raises(pommel.NotFound, match="POMMEL_BIN"):
        pommel.serve()


def test_server_ends_with_a_killed_trainer(binary: str) -> None:
    trainer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(f"""
            import json, sys, threading, pommel
            started = []
            t = threading.Thread(target=lambda: started.append(pommel.serve(binary={binary!r})))
            t.start(); t.join()  # the end of the starting thread is not the end of the trainer
            print(json.dumps(started[0].ready), flush=True)
            sys.stdin.read()
        """)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert trainer.stdout is not None
    pid = json.loads(trainer.stdout.readline())["pid"]
    os.kill(pid, 0)
    trainer.send_signal(signal.SIGKILL)
    trainer.communicate()
    assert ended(pid)
