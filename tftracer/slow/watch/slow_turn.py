"""A slow turn of a training loop: from the end of one step of the loop's main run to the end of its next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tftracer.run_handle import RunHandle
from tftracer.slow.record.sums_by_kind import CODE_CAUSES
from tftracer.slow.watch.slow_limit import MIN_EXCESS_NS
from tftracer.slow.watch_results import FIRST_CALL, Cause

#: Both sides of a turn are slow if each has at least this share of the turn's excess.
BOTH = 0.25
#: The smaller side is reported, too, if it alone makes the turn slow and takes at least this much longer than usual.
MIN_ALONE_NS = 100_000_000
#: Steps of other runs took a notable part of a turn if they have at least this share of it.
NOTABLE = 0.1
#: Steps of another run count as one span of time if they fill at least this share of the time from the first to the last one.
WITHOUT_GAPS = 0.9
#: Linux's counters of shorter times are too rough: they are read 10 to 20 times a second.
MIN_CLOCKED_NS = 100_000_000
#: Recording a step of thousands of ops takes up to this long.
TRACING_NS = 500_000_000
#: Beginnings of the titles of runs that only evaluate or use a model, so they are no training loops.
NO_LOOPS = ("evaluate", "predict", "test_")


class OtherSteps(NamedTuple):
    """Steps of another run within a turn: either its retraced calls or its other calls."""

    title: str
    steps: int
    ns: int
    retraced: str  # why its function was retraced, "" if it was not
    start_ns: int = 0  # start of the first step
    end_ns: int = 0  # end of the last step
    usual_ns: int = 0  # usual time of its steps in a turn, counting at most ``steps`` of them; 0: many turns have none


class Save(NamedTuple):
    """Saving or restoring a checkpoint."""

    name: str  # "CheckpointSaverHook.save"
    start_ns: int
    end_ns: int


class SlowTurn(NamedTuple):
    """A slow turn. Times are perf_counter nanoseconds; lengths are without the tracer's own time."""

    run: RunHandle
    step: int  # number of the step that ends it; of the next step if a call of another signature ends it
    call: int  # number of the call that ends it, among the calls of all signatures
    thread: int
    start_ns: int  # end of the previous step
    step_ns: int  # start of the step that ends the turn
    end_ns: int
    tracer_ns: int  # time of the tracer within the turn
    usual_ns: int  # median length of a turn
    usual_inside_ns: int  # median length of the step alone
    limit_ns: int  # turns that are longer than this are slow
    other_runs: tuple[OtherSteps, ...]
    retraced: str  # why the function of the step that ends the turn was retraced, "" if it was not
    is_traced: bool
    #: Waits for the next element of a dataset, before the step and inside it.
    input_ns: int = 0
    usual_input_ns: int = 0
    inside_input_ns: int = 0
    saves: tuple[Save, ...] = ()
    is_usual_traced: bool = False  # whether its step was traced, for another reason than that it was expected to be slow
    follows_traced: bool = False  # whether the step before it was traced
    of_other_signature: bool = False  # whether calls of other signatures of the function end both it and the previous turn

    @property
    def inside_ns(self) -> int:
        return self.end_ns - self.step_ns

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns - self.tracer_ns

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The time before the step, and the step."""
        return [(self.start_ns, self.step_ns), (self.step_ns, self.end_ns)]

    @property
    def clocked(self) -> list[tuple[int, int]]:
        """The spans before the step that were measured directly: saves, and steps of other runs. They do not overlap."""
        known = [(save.start_ns, save.end_ns) for save in self.saves]
        known += [(other.start_ns, other.end_ns) for other in self.other_runs if _is_without_gaps(other)]
        spans: list[tuple[int, int]] = []
        for start, end in sorted(known):
            start, end = max(start, spans[-1][1] if spans else self.start_ns), min(end, self.step_ns)
            if end - start >= MIN_CLOCKED_NS:
                spans.append((start, end))
        return spans

    @property
    def has_other_steps(self) -> bool:
        """Whether steps of other runs took a notable part of the turn."""
        return sum(other.ns for other in self.other_runs) >= NOTABLE * self.length_ns

    def may_be_cost_of_tracing(self, cause: Cause) -> bool:
        """Return whether tracing alone may explain the slow step, or the slow time before it if the previous step was traced.

        The time of tracing looks like work of TensorFlow. After a session's traced step TensorFlow reads the trace, which looks
        like Python code whose line is not known.
        """
        is_unexplained = cause.kind in ("tensorflow", "machine", "unknown")
        if not self.is_inside:
            has_code = cause.frame is not None or bool(cause.name)
            is_unexplained = self.follows_traced and (is_unexplained or cause.kind in CODE_CAUSES) and not has_code
        elif not self.is_usual_traced:
            return False
        return is_unexplained and self.length_ns - self.usual_ns < TRACING_NS

    @property
    def is_inside(self) -> bool:
        """Whether the step itself took most of the excess."""
        return 2 * (self.inside_ns - self.usual_inside_ns) >= self.length_ns - self.usual_ns


def sides(turn: SlowTurn) -> list[SlowTurn]:
    """Return the slow sides of a turn: the time before its step, the step, or both."""
    before_ns, usual_before_ns = turn.length_ns - turn.inside_ns, turn.usual_ns - turn.usual_inside_ns
    before = turn._replace(end_ns=turn.step_ns, usual_ns=usual_before_ns, usual_inside_ns=0, retraced="", inside_input_ns=0)
    step = turn._replace(start_ns=turn.step_ns, usual_ns=turn.usual_inside_ns, tracer_ns=0, other_runs=())
    step = step._replace(input_ns=0, usual_input_ns=0, saves=saves_inside(turn))
    excesses = before_ns - usual_before_ns, turn.inside_ns - turn.usual_inside_ns
    alone_ns = max(MIN_ALONE_NS, turn.limit_ns - turn.usual_ns)
    if min(excesses) >= max(MIN_EXCESS_NS, min(BOTH * sum(excesses), alone_ns)):
        return [before, step]
    return [step if turn.is_inside else before]


def saves_inside(turn: SlowTurn) -> tuple[Save, ...]:
    """Return the saves in the step itself, such as those of an eager loop."""
    return tuple(save for save in turn.saves if save.start_ns >= turn.step_ns)


def _is_without_gaps(other: OtherSteps) -> bool:
    return is_no_loop(other) or other.ns >= WITHOUT_GAPS * (other.end_ns - other.start_ns)


def is_no_loop(run: RunHandle | OtherSteps) -> bool:
    return run.title.startswith(NO_LOOPS)


def tracing_of(run: RunHandle, tracings: int) -> str:
    """Return why TensorFlow traced the function in the call that has just ended; "" if it did not.

    ``tracings``: ``run.tracings`` before the call.
    """
    return (run.changed or FIRST_CALL) if run.tracings > tracings else ""


def waited_ns(waits: Sequence[tuple[int, int]], start_ns: int, end_ns: int, evaluations: Sequence[tuple[int, int]]) -> int:
    """Return how many ns of the waits lie between ``start_ns`` and ``end_ns``, without waits that begin in an evaluation."""
    return sum(
        min(end, end_ns) - max(start, start_ns)
        for start, end in waits
        if start < end_ns and end > start_ns and not any(eval_start <= start < eval_end for eval_start, eval_end in evaluations)
    )
