"""What is known of a slow turn of a training loop. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tftracer.slow.recorded import WatchedRun
from tftracer.slow.watch.typical import LEAST_NS

#: The part of a turn's excess from which on each of its sides is slow by itself.
BOTH = 0.25
#: How runs are titled that measure or use a model: no training loop.
NO_LOOPS = ("evaluate", "predict", "test_")


class OtherSteps(NamedTuple):
    """Steps of another run within a turn. Calls that traced its function anew are apart from the others."""

    title: str
    steps: int
    ns: int
    retraced: str  # why its function was traced anew, "" if it was not
    start_ns: int = 0  # of the first
    end_ns: int = 0  # of the last


class Save(NamedTuple):
    """A checkpoint was saved or restored."""

    name: str  # "CheckpointSaverHook.save"
    start_ns: int
    end_ns: int


class SlowTurn(NamedTuple):
    """A slow turn as it was found. Times are perf_counter nanoseconds, without what the tracer took."""

    run: WatchedRun
    step: int  # the step that ends it, or that comes next where a call of another signature ends it
    call: int  # the number of that call among those of all signatures
    thread: int
    start_ns: int  # the end of the step before
    step_ns: int  # when the step that ends it began
    end_ns: int
    tracer_ns: int  # what the tracer took of it
    usual_ns: int
    usual_inside_ns: int  # of the step alone
    limit_ns: int  # what takes longer is slow
    others: tuple[OtherSteps, ...]
    retraced: str  # why the function of the step that ends it was traced anew, "" if it was not
    is_traced: bool
    #: Before the step, and in it: the thread waited for the next element of a dataset.
    input_ns: int = 0
    usual_input_ns: int = 0
    inside_input_ns: int = 0
    saves: tuple[Save, ...] = ()  # before the step

    @property
    def inside_ns(self) -> int:
        return self.end_ns - self.step_ns

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns - self.tracer_ns

    @property
    def is_inside(self) -> bool:
        """Whether the step itself took most of the excess."""
        return 2 * (self.inside_ns - self.usual_inside_ns) >= self.length_ns - self.usual_ns


def sides(turn: SlowTurn) -> list[SlowTurn]:
    """The time before a turn's step, or its step, or both: those that were slow."""
    before_ns, usual_before_ns = turn.length_ns - turn.inside_ns, turn.usual_ns - turn.usual_inside_ns
    before = turn._replace(end_ns=turn.step_ns, usual_ns=usual_before_ns, usual_inside_ns=0, retraced="", inside_input_ns=0)
    step = turn._replace(start_ns=turn.step_ns, usual_ns=turn.usual_inside_ns, tracer_ns=0, others=())
    step = step._replace(input_ns=0, usual_input_ns=0, saves=())
    excesses = before_ns - usual_before_ns, turn.inside_ns - turn.usual_inside_ns
    if min(excesses) >= max(LEAST_NS, BOTH * sum(excesses)):
        return [before, step]
    return [step if turn.is_inside else before]


def is_no_loop(run: WatchedRun | OtherSteps) -> bool:
    return run.title.startswith(NO_LOOPS)


def waited_ns(waits: Sequence[tuple[int, int]], start_ns: int, end_ns: int, evaluations: Sequence[tuple[int, int]]) -> int:
    """What the waits took from ``start_ns`` to ``end_ns``, but for those of evaluations: these are the evaluations' own."""
    return sum(
        min(end, end_ns) - max(start, start_ns)
        for start, end in waits
        if start < end_ns and end > start_ns and not any(begun <= start < over for begun, over in evaluations)
    )
