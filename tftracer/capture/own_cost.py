"""Measures how long one of the tracer's functions takes just after a long step, whose data has filled the caches."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

#: Reading this many bytes empties a core's own caches, but not those that all cores share.
_CACHE_BYTES = 2 << 20


class ColdTimer:
    """Fills the caches with other data before each call, as TensorFlow does. For the tracer's estimate of its own cost."""

    def __init__(self) -> None:
        self._filler = b"x" * _CACHE_BYTES

    def measure_ns(self, call: Callable[..., Any], *arguments: Any) -> int:
        self._filler.count(b"y")
        start = perf_counter_ns()
        call(*arguments)
        return perf_counter_ns() - start
