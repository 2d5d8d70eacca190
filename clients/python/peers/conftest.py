"""Other people's packages, as they are published, against the real server on world shop."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import pommel

WORLDS = 8


@pytest.fixture(scope="session")
def server() -> Iterator[pommel.Server]:
    if not os.environ.get("POMMEL_BIN"):
        pytest.fail("set POMMEL_BIN to the pommel program (make test-peers does): these tests need the real server")
    with pommel.serve(world="shop", worlds=WORLDS, lease=20) as s:
        yield s
