"""A progress bar on standard error; where that is no terminal, a line for each stage."""

from __future__ import annotations

import sys
import time
from typing import Final, Self

_WIDTH: Final = 30
_PAUSE: Final = 0.05


class Bar:
    """A bar over `total` steps, advanced by calling it; as a context it ends its line."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._drawn = 0.0
        self._is_terminal = sys.stderr.isatty()

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __call__(self) -> None:
        self._done += 1
        if time.monotonic() - self._drawn > _PAUSE:
            self._draw()

    def __exit__(self, *_: object) -> None:
        if self._is_terminal:
            self._draw()
            sys.stderr.write("\n")
        else:
            sys.stderr.write(f"{self._what}: {self._done} of {self._total}\n")

    def _draw(self) -> None:
        if self._is_terminal:
            filled = _WIDTH * self._done // max(self._total, 1)
            bar = "█" * filled + "░" * (_WIDTH - filled)
            sys.stderr.write(f"\r{self._what:<34} {bar} {self._done}/{self._total}")
            sys.stderr.flush()
            self._drawn = time.monotonic()
