"""Counts Python's objects by type and lists those of some types. Runs in the training process, only while growth is suspected.

Python code must not hold a list of all objects: it contains tuples that other threads are still building, and CPython fails to
build a tuple to which another reference exists. So the list lives within one call of C code, which reads it to its end: the list
also contains the iterators that read it, so an iterator that stops earlier keeps the list until the next garbage collection.
During that call no other thread runs Python, no garbage collection starts, and only the types of the objects are read. The result
holds types, or objects of types that are never seen unfinished. Meanwhile the other threads wait for Python's lock, as in a full
garbage collection; the length of this wait is measured.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import chain, groupby, starmap
from typing import Any, NamedTuple

from tftracer.slow.watch.collections_off import collections_off

#: Types whose objects CPython fails to build if another reference exists.
UNFINISHED: frozenset[type] = frozenset((tuple, frozenset))
#: Room in a list for objects of types that the census did not count, such as the iterators that read the list.
MAX_NEW = 1000
#: The number of objects that are counted before other threads get a chance to run.
AT_ONCE = 20_000
GENERATIONS = (0, 1, 2)  # the youngest objects first
#: A list of all objects stops the other threads: for about 13 ns per block of Python's allocator on an idle core, and for many
#: times that on busy cores. A process with more blocks (about a million objects) is not counted; a process whose lists took
#: longer than MAX_HELD_S is not counted again.
MAX_BLOCKS, MAX_HELD_S = 3_000_000, 1.5


class Census(NamedTuple):
    at: float  # seconds of a monotonic clock
    counts: dict[type, int]
    held_s: float  # seconds in which no other thread could run Python
    full_collections: int  # number of full garbage collections so far


class Listed(NamedTuple):
    objects: list[Any]
    held_s: float


def is_too_large() -> bool:
    return sys.getallocatedblocks() > MAX_BLOCKS


def take(clock: Callable[[], float] = time.monotonic) -> Census:
    """Count the objects of each type."""
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
    """Return the type of each object, and the seconds for which the other threads waited."""
    with collections_off():
        start = time.perf_counter()
        types: list[type] = list(map(type, chain.from_iterable(map(gc.get_objects, GENERATIONS))))
        return types, time.perf_counter() - start


def objects_of(wanted: Iterable[type], counted: Iterable[type], limit: int) -> Listed:
    """Return at most ``limit`` objects of the wanted types, the youngest ones. ``tuple`` and ``frozenset`` are never listed.

    Args:
        counted: The types of a census. Objects of these types are skipped, except those of the wanted types.
    """
    listed = set(wanted) - UNFINISHED
    skipped: dict[type, Iterable[Any]] = dict.fromkeys({*counted, *UNFINISHED, type(None)} - listed, ())
    if any(type(each).__eq__ is not type.__eq__ or type(each).__hash__ is not type.__hash__ for each in skipped):
        return Listed([], 0.0)  # groupby and the dictionary would run Python code
    with collections_off():
        start = time.perf_counter()
        lists = map(gc.get_objects, reversed(GENERATIONS))
        everything = chain(chain.from_iterable(lists), [None])  # None: groupby keeps the last object that it reads
        objects = deque(chain.from_iterable(starmap(skipped.get, groupby(everything, type))), limit + MAX_NEW)
        held_s = time.perf_counter() - start
    wanted_objects = [each for each in objects if type(each) in listed]
    return Listed(wanted_objects[-limit:], held_s)


def is_collection_off() -> bool:
    """Return whether garbage collection is off and objects that it would have checked pile up."""
    return not gc.isenabled() and gc.get_count()[0] > 10 * max(gc.get_threshold()[0], 100)
