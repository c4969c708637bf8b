"""Measures how long one of the tracer's functions takes when the CPU's caches hold other data, as they do after a long step."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

#: Reading this many bytes replaces the content of a core's own caches, but not of the cache that all cores share.
_CACHE_BYTES = 2 << 20


class ColdTimer:
    """Measures calls. Before each call it fills the caches with other data, as a step of TensorFlow does."""

    def __init__(self) -> None:
        self._filler = b"x" * _CACHE_BYTES

    def measure_ns(self, call: Callable[..., Any], *arguments: Any) -> int:
        self._filler.count(b"y")  # reads all bytes
        start = perf_counter_ns()
        call(*arguments)
        return perf_counter_ns() - start
