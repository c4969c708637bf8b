"""An LRU cache with limits on the number of entries and on their size. Not thread-safe."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class BoundedCache(Generic[V]):
    """Keeps the entries that were used most recently; the newest entry is kept even if it exceeds the limits.

    ``entries``: maximum number of entries. ``size``: maximum sum of their sizes, in bytes or another unit.
    """

    def __init__(self, entries: int, size: int) -> None:
        self._max_entries = entries
        self._max_size = size
        self._cached: OrderedDict[Any, tuple[V, int]] = OrderedDict()

    def get(self, key: Any) -> V | None:
        if key not in self._cached:
            return None
        self._cached.move_to_end(key)
        return self._cached[key][0]

    def put(self, key: Any, value: V, size: int) -> None:
        self._cached[key] = (value, size)
        self._cached.move_to_end(key)
        while len(self._cached) > 1 and (len(self._cached) > self._max_entries or self.size > self._max_size):
            self._cached.popitem(last=False)

    def clear(self) -> None:
        self._cached.clear()

    @property
    def size(self) -> int:
        return sum(size for _, size in self._cached.values())

    def __len__(self) -> int:
        return len(self._cached)
