"""Counting and listing objects: what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tftracer.memory_growth import object_counts


class Kept:
    pass


class Odd(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError("Python code runs while all objects are listed")

    __hash__ = type.__hash__


def test_a_tuple_that_is_being_built_is_not_kept() -> None:
    """CPython fails to finish a tuple to which another reference exists, also one in garbage that is not collected yet."""

    def items(look: Callable[[], object]) -> Iterator[int]:
        for number in range(30):
            look()
            yield number

    def listed() -> object:
        return object_counts.objects_of([Kept, tuple], object_counts.take().counts, 1)

    kept = [Kept(), Kept()]
    for look in (object_counts.take, listed):
        assert tuple(items(look)) == tuple(range(30))
    assert len(kept) == 2


def test_the_youngest_objects_of_the_wanted_types_are_listed() -> None:
    kept = [Kept() for _ in range(10)]
    counts = object_counts.take().counts
    assert {id(each) for each in object_counts.objects_of([Kept, tuple], counts, 100).objects} == set(map(id, kept))
    assert len(object_counts.objects_of([Kept], counts, 3).objects) == 3
    del counts[tuple]
    assert object_counts.objects_of([Kept], counts, 100_000).objects == kept


def test_nothing_is_listed_where_comparing_types_runs_python_code() -> None:
    class Compared(metaclass=Odd):
        pass

    kept = [Kept(), Compared()]
    types = {type(each): 1 for each in kept}
    assert object_counts.objects_of([Kept], types, 100) == ([], 0.0)
