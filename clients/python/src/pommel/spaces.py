"""Spaces for text: Gymnasium's own Text knows only a fixed set of characters."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np

# Letters from several scripts, an emoji and the characters that break naive code.
_SAMPLE = "abcxyz ABC 0123 \u00e9\u00df\u0416\u05d0\u6f22\U0001f600'\"\\<>&\n\t"


class Unicode(gymnasium.Space[str]):
    """Any Unicode text of at most ``max_length`` characters.

    Vector environments batch it to a tuple of strings. It does not fit in shared memory,
    so AsyncVectorEnv needs ``shared_memory=False``.
    """

    def __init__(self, max_length: int = 1 << 26, seed: int | np.random.Generator | None = None) -> None:
        self.max_length = max_length
        super().__init__(shape=None, dtype=None, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        length = int(self.np_random.integers(0, min(self.max_length, 40) + 1))
        return "".join(_SAMPLE[i] for i in self.np_random.integers(0, len(_SAMPLE), length))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode) and type(self) is type(other) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]


class Action(Unicode):
    """Action strings such as ``click(selector="#submit-order")``.

    Every text is a legal action: one that is no call of the grammar, or that does not work on
    the page, is answered with ``last_action_error`` and costs a step. ``sample`` draws a
    well-formed action that needs no knowledge of the page.
    """

    def __init__(
        self,
        max_length: int = 1 << 16,
        viewport: tuple[int, int] = (1280, 720),
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self.viewport = viewport
        super().__init__(max_length, seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        x, y = (int(self.np_random.integers(0, size)) for size in self.viewport)
        actions = (
            f"mouse_click({x}, {y})",
            f"mouse_move({x}, {y})",
            f"scroll(0, {y - self.viewport[1] // 2})",
            'keyboard_press("Tab")',
            'keyboard_press("PageDown")',
            "noop()",
        )
        return actions[int(self.np_random.integers(len(actions)))]


class Records(gymnasium.Space[list[dict[str, Any]]]):
    """A list of dicts of plain values (text, numbers, booleans, lists of them), as JSON has."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> list[dict[str, Any]]:
        return [{"index": i, "name": f"record {i}"} for i in range(int(self.np_random.integers(0, 4)))]

    def contains(self, x: Any) -> bool:
        if not isinstance(x, list) or not all(isinstance(r, dict) for r in x):
            return False
        try:
            json.dumps(x)
        except (TypeError, ValueError):
            return False
        return True

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Records()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None  # type: ignore[assignment]


class Record(gymnasium.Space[dict[str, Any]]):
    """A dict of plain values and of dicts and lists of them, as JSON has."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        return {"index": int(self.np_random.integers(0, 100)), "names": ["a", "b"]}

    def contains(self, x: Any) -> bool:
        return isinstance(x, dict) and [x] in Records()

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Record()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None  # type: ignore[assignment]
