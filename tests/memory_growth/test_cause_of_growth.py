"""How objects are counted to find what grows, and when that is given up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tftracer.memory_growth import object_counts
from tftracer.memory_growth.cause_of_growth import COUNTS, Finding, find_cause


class Kept:
    def __init__(self) -> None:
        self.values = [1]


def found(rate: float) -> Finding:
    """Ten objects of some hundred bytes each become more in a second."""
    kept: list[Kept] = []
    seconds = [0.0]

    def wait(_: float) -> bool:
        seconds[0] += 1.0
        kept.extend(Kept() for _ in range(10))
        return False

    finding = find_cause(rate, wait, 1.0, lambda: seconds[0])
    assert finding is not None
    return finding


def test_small_objects_are_not_what_large_memory_is_put_down_to() -> None:
    finding = found(1e6)
    assert (finding.kind, finding.things[0].kind) == ("unknown", "objects") and 0 < (finding.things[0].bytes_rate or 0.0) < 1e4


def test_objects_that_grow_between_the_counts_are_found() -> None:
    finding = found(2500.0)
    assert finding.kind == "objects"
    assert [thing.name for thing in finding.things] == [f"{Kept.__module__}.Kept"] and finding.things[0].grown == 20
    assert finding.lists == COUNTS + 1  # the objects of the types that grow are listed, too


def test_counts_a_moment_apart_at_the_end_of_the_process_prove_nothing() -> None:
    assert find_cause(1e6, lambda _: True, 1.0) is None


def test_after_a_count_that_took_long_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_counts, "MAX_HELD_S", 0.0)
    finding = find_cause(1e6, lambda _: False, 1.0)
    assert finding is not None and (finding.kind, finding.lists) == ("unknown", 1) and finding.held_s > 0


def test_a_process_of_very_many_objects_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_counts, "MAX_BLOCKS", 1000)
    finding = find_cause(1e6, lambda _: False, 1.0)
    assert finding is not None and (finding.kind, finding.lists) == ("unknown", 0)


@pytest.mark.parametrize(("limit", "lists"), [("MAX_BLOCKS", 0), ("MAX_HELD_S", 1)])
def test_functions_that_are_traced_again_and_again_are_found_without_a_count(
    monkeypatch: pytest.MonkeyPatch, limit: str, lists: int
) -> None:
    """Their graphs make a process of very many objects."""
    monkeypatch.setattr(object_counts, limit, 0)
    call = SimpleNamespace(op=SimpleNamespace(traceback=[("/home/me/train.py", 12, "train", "step(x, number)")]))
    alive: list[Any] = []
    seconds = [0.0]

    def wait(_: float) -> bool:
        seconds[0] += 1.0
        for number in range(len(alive), len(alive) + 50):
            graph = SimpleNamespace(name="train_step", inputs=[call], _graph_key=f"graph-key-{number}/")
            alive.append(SimpleNamespace(graph=graph))
        return False

    finding = find_cause(1e6, wait, 1.0, lambda: seconds[0], lambda: alive)
    assert finding is not None and (finding.kind, finding.lists) == ("functions", lists)
    (thing,) = finding.things
    assert (thing.name, thing.grown, thing.rate, thing.place) == ("train_step", 100, 50.0, "train.py:12")


def test_functions_that_do_not_grow_are_not_named_where_nothing_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_counts, "MAX_BLOCKS", 0)
    finding = find_cause(1e6, lambda _: False, 1.0, functions=lambda: [object()] * 9)
    assert finding is not None and (finding.kind, finding.things) == ("unknown", ())
