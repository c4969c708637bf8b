"""How long a call of ours takes after a long step, whose data has filled the caches."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

#: Filling so many bytes empties a core's own caches, but not those that all cores share.
_CACHES = 2 << 20


class ColdTimer:
    """Fills the caches with other data before each call, as TensorFlow does."""

    def __init__(self) -> None:
        self._filler = b"x" * _CACHES

    def ns(self, call: Callable[..., Any], *arguments: Any) -> int:
        self._filler.count(b"y")
        start = perf_counter_ns()
        call(*arguments)
        return perf_counter_ns() - start
