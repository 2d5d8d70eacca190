"""Where the program pommel and its worlds are on this machine."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .errors import NotFound

_NAME = re.compile(r"[a-z][a-z0-9-]*")


def program(path: str | None = None) -> str:
    """Find the program pommel: path, $POMMEL_BIN, the PATH, or bin/ of the checkout that this package is in."""
    path = path or os.environ.get("POMMEL_BIN")
    if path:
        if not os.access(path, os.X_OK):
            raise NotFound(f"{path} is no program", "build it with `make build`")
        return os.path.abspath(path)
    found = shutil.which("pommel") or _checkout()
    if not found:
        raise NotFound(
            "there is no program pommel",
            "put it on the PATH (`make install`), set POMMEL_BIN to it, or give the address of a running server",
        )
    return found


def worlds() -> list[str]:
    """Name the worlds that `pommel serve --world NAME` finds: without starting it, so that importing stays cheap."""
    places = [Path(p) for p in os.environ.get("POMMEL_WORLDS", "").split(os.pathsep) if p]
    places.append(Path("worlds"))
    try:
        beside = Path(program()).resolve().parent
    except NotFound:
        pass
    else:
        places += [beside / "worlds", beside.parent / "worlds", beside.parent / "share" / "pommel" / "worlds"]
    found = {f.parent.name for p in places for f in _worlds_in(p)}
    return sorted(name for name in found if _NAME.fullmatch(name))


def _worlds_in(place: Path) -> list[Path]:
    try:
        return list(place.glob("*/world.yaml"))
    except OSError:
        return []  # a folder that we may not read has no worlds for us


def _checkout() -> str:
    root = Path(__file__).resolve().parents[4] if len(Path(__file__).resolve().parents) > 4 else Path("/")
    binary = root / "bin" / "pommel"
    return str(binary) if (root / "go.mod").is_file() and os.access(binary, os.X_OK) else ""
