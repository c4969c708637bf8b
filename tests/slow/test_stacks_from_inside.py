"""When stacks are read from inside."""

from __future__ import annotations

from time import perf_counter_ns

from tftracer.slow.watch.stacks_from_inside import FIRST_NS, InsideStacks

THREAD = 7


class Counting(InsideStacks):
    def __init__(self) -> None:
        super().__init__()
        self.samples = 0

    def _sample(self) -> None:
        self.samples += 1


def looked(turns: list[int], apart_ns: int = 50_000_000) -> list[bool]:
    """Whether each of some ticks reads stacks; given of each: when the turn began that takes too long."""
    inside, now, done = Counting(), perf_counter_ns(), []
    for number, since in enumerate(turns):
        before = inside.samples
        inside.tick(now + number * apart_ns, {THREAD: since} if since else {})
        done.append(inside.samples > before)
    return done


def test_a_turn_is_looked_at_ever_more_seldom() -> None:
    assert FIRST_NS < 50_000_000
    assert looked([1] * 8) == [True, True, True, False, True, False, False, True]


def test_the_next_turn_is_looked_at_as_often_as_the_first() -> None:
    assert looked([1] * 8 + [2, 2])[-2:] == [True, True]


def test_what_is_not_overdue_is_not_looked_at() -> None:
    assert looked([0, 0]) == [False, False]
