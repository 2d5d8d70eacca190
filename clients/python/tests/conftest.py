from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from fake import FakeGym

import pommel


@pytest.fixture
def fake() -> Iterator[FakeGym]:
    f = FakeGym()
    yield f
    f.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[pommel.Server]:
    """The real thing, started once."""
    if not os.environ.get("POMMEL_BIN"):
        pytest.fail("set POMMEL_BIN to the pommel program (make test-python does): these tests need the real server")
    with pommel.serve(world="shop", worlds=2) as s:
        yield s
