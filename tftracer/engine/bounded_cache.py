"""An LRU cache with limits on the number of entries and on their size. Not thread-safe."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class BoundedCache(Generic[V]):
    """Keeps the entries that were used last; the newest one is always kept. ``size``: in bytes or another unit."""

    def __init__(self, entries: int, size: int) -> None:
        self._entries = entries
        self._size = size
        self._held: OrderedDict[Any, tuple[V, int]] = OrderedDict()

    def get(self, key: Any) -> V | None:
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def put(self, key: Any, value: V, size: int) -> None:
        self._held[key] = (value, size)
        self._held.move_to_end(key)
        while len(self._held) > 1 and (len(self._held) > self._entries or self.size > self._size):
            self._held.popitem(last=False)

    def clear(self) -> None:
        self._held.clear()

    @property
    def size(self) -> int:
        return sum(size for _, size in self._held.values())

    def __len__(self) -> int:
        return len(self._held)
