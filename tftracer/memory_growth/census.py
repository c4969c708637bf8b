"""Python's objects counted by type, and those of some types. Where TensorFlow runs, and only while growth is suspected.

A list of all objects is dangerous in the hands of Python code: it holds tuples that other threads are still building, and CPython
fails to build a tuple that somebody else holds. So the list lives within one call of C code, during which no other thread runs
Python, no collection starts and nothing of the objects is looked at but their types. What comes out is types, or the objects
of types that are never unfinished. The other threads wait for Python's lock meanwhile, as they do in a full garbage collection;
the time that takes is measured.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain, compress, islice, tee
from typing import Any, NamedTuple

from tftracer.slow.watch.collections_off import collections_off

#: Types that are counted between two chances for other threads.
AT_ONCE = 20_000
GENERATIONS = (0, 1, 2)  # the youngest objects first
#: A list of all objects holds the other threads up: some 13 ns a block of Python's allocator on a core of its own, many times
#: that where others have the cores. Processes with more blocks, about a million objects, are not counted, nor is one again where
#: its lists took this long.
MAX_BLOCKS, MAX_HELD_S = 3_000_000, 1.5


class Census(NamedTuple):
    at: float  # monotonic
    counts: dict[type, int]
    held_s: float  # for so long no other thread could run Python
    full_collections: int  # of Python's garbage collector, so far


class Listed(NamedTuple):
    objects: list[Any]
    held_s: float


def is_too_large() -> bool:
    return sys.getallocatedblocks() > MAX_BLOCKS


def take(clock: Callable[[], float] = time.monotonic) -> Census:
    types, held_s = _types()
    counts: Counter[int] = Counter()
    by_id: dict[int, type] = {}
    for start in range(0, len(types), AT_ONCE):
        some = types[start : start + AT_ONCE]
        counts.update(map(id, some))
        by_id.update(zip(map(id, some), some))
        time.sleep(0)
    full = gc.get_stats()[-1]["collections"]
    return Census(clock(), {by_id[key]: count for key, count in counts.items()}, held_s, full)


def _types() -> tuple[list[type], float]:
    with collections_off():
        start = time.perf_counter()
        types: list[type] = list(map(type, chain.from_iterable(map(gc.get_objects, GENERATIONS))))
        return types, time.perf_counter() - start


def objects_of(wanted: Iterable[type], limit: int) -> Listed:
    """So many objects of these types, young ones first. Not of ``tuple``."""
    is_wanted = frozenset(id(each) for each in wanted if each is not tuple).__contains__
    with collections_off():
        start = time.perf_counter()
        objects, same = tee(chain.from_iterable(map(gc.get_objects, GENERATIONS)))
        found = list(islice(compress(objects, map(is_wanted, map(id, map(type, same)))), limit))
        return Listed(found, time.perf_counter() - start)


def collects_nothing() -> bool:
    """Python's garbage collection is off, and objects that it would have looked at pile up."""
    return not gc.isenabled() and gc.get_count()[0] > 10 * max(gc.get_threshold()[0], 100)
