"""A live run's step times: count, percentiles, recent steps, history. Fed by the writer's thread, read under the store's lock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from tftracer.contract.session import Run, RunStatistics
from tftracer.run_handle import RunHandle
from tftracer.session.steps.history import History
from tftracer.session.steps.percentile_sketch import Sketch
from tftracer.trace.arrays.types import Float64

RECENT_STEPS = 60  # number of steps in the page's sparkline
#: Maximum number of a run's steps that wait to be written. If there are more, the whole history is written instead.
MAX_PENDING = 100_000


def total_s(run: Run) -> float:
    """Return the time that all steps of a run took."""
    return run["steps"] * (run["mean_s"] or 0.0)


class Steps(NamedTuple):
    first_step: int
    starts: Float64
    durations: Float64
    traced: list[int]  # positions among these steps


class UnwrittenSteps:
    """A run's steps that wait to be written to the session's file, and how they are to be written."""

    def __init__(self) -> None:
        self.changed = False
        self.defined = False  # whether the run's definition is in the file
        self.needs_history = False  # too many steps wait: write the whole history instead
        self.written_records = 0
        self.written_bytes = 0  # bytes of the records that the next whole history makes superfluous
        self._columns: list[tuple[Float64, Float64]] = []  # blocks of starts and durations
        self._traced: list[int] = []
        self._count = 0
        self._since_history = 0  # steps written one by one since the last whole history

    def add(self, starts: Float64, durations: Float64, traced: list[int]) -> None:
        self.changed = True
        if self.needs_history:
            return
        self._traced.extend(self._count + position for position in traced)
        self._columns.append((starts, durations))
        self._count += len(starts)
        if self._count > MAX_PENDING:
            self._request_history()

    def take(self, last_step: int, limit: int) -> Steps | None:
        """Return the steps to write now; None if the whole history is to be written instead.

        The whole history is written after more than ``limit`` single steps, after an error, and if there are no new steps.
        """
        self.changed = False
        if self.needs_history or self._since_history + self._count > limit or not self._columns:
            self._request_history()
            return None
        starts, durations = (np.concatenate(columns) for columns in zip(*self._columns))
        taken = Steps(last_step - self._count + 1, starts, durations, self._traced)
        self._clear()
        return taken

    def add_written(self, size: int, steps: int) -> None:
        """Record that ``steps`` steps were written in a record of ``size`` bytes; 0 steps: the whole history was written."""
        self.needs_history = self.needs_history and steps > 0
        self._since_history = self._since_history + steps if steps else 0
        self.written_bytes = self.written_bytes + size if steps else size
        self.written_records = self.written_records + 1 if steps else 1

    def add_failure(self) -> None:
        """Record that writing failed: next time the whole history is written."""
        self._request_history()
        self.changed = True

    def _request_history(self) -> None:
        self.needs_history = True
        self._clear()

    def _clear(self) -> None:
        self._columns, self._traced, self._count = [], [], 0


#: The medians of the times between steps, and of the overhead of tracing, are computed from at most this many recent values.
MAX_GAPS = 501
#: Minimum number of untraced steps for their median: of two, it is the shorter.
MIN_STEPS = 2
#: Times between steps up to this many times their median count as usual.
MAX_USUAL = 3.0


class BetweenSteps(NamedTuple):
    """Seconds before a step; None: not known."""

    outside_s: float | None  # since the run's previous step, outside session.run
    input_s: float | None  # the part of outside_s in which the loop waited for the next element of a dataset


class Between(NamedTuple):
    """Seconds before each of some consecutive steps; NaN: not known."""

    outside_s: Float64
    input_s: Float64

    def before(self, position: int) -> BetweenSteps:
        return BetweenSteps(*(None if np.isnan(seconds[position]) else float(seconds[position]) for seconds in self))


class StepStatistics:
    """All of a run's steps so far, in bounded memory. Times are epoch seconds and seconds."""

    def __init__(self) -> None:
        self.history = History()
        self.steps = 0
        self._first_run_at: float | None = None
        self._last_run_at: float | None = None
        self._last_s: float | None = None
        self._recent: deque[float] = deque(maxlen=RECENT_STEPS)
        self._untraced = Sketch()
        self._all = Sketch()
        self._gaps: deque[float] = deque(maxlen=MAX_GAPS)
        self._inputs: deque[tuple[float, float]] = deque(maxlen=MAX_GAPS)  # (outside_s, input_s) of the same time
        self._overheads: deque[float] = deque(maxlen=MAX_GAPS)

    def add(self, starts: Float64, durations: Float64, between: Between, traced: list[int], measuring: list[int]) -> int:
        """Count consecutive steps, and return the number of the first.

        ``starts``: epoch seconds. ``traced``: positions among them. ``measuring``: positions of those traced steps that show the
        cost of tracing.
        """
        first = self.steps + 1
        self.steps += len(starts)
        untraced = np.ones(len(starts), bool)
        untraced[traced] = False
        self._untraced.add(durations[untraced])
        self._all.add(durations)
        self._gaps.extend(between.outside_s[~np.isnan(between.outside_s)][-MAX_GAPS:].tolist())
        pairs = np.column_stack(between)
        self._inputs.extend(map(tuple, pairs[~np.isnan(pairs).any(axis=1)][-MAX_GAPS:].tolist()))
        if self.median_s is not None:
            self._overheads.extend((durations[measuring] - self.median_s).tolist())
        self.history.add(first, starts, durations, traced)
        if self._first_run_at is None:
            self._first_run_at = float(starts[0])
        self._last_run_at, self._last_s = float(starts[-1]), float(durations[-1])
        self._recent.extend(durations[-RECENT_STEPS:].tolist())
        return first

    @property
    def median_s(self) -> float | None:
        """The median of the untraced steps; None of one step: TensorFlow may trace its function first."""
        return self._untraced.percentile(0.5) if self._untraced.count >= MIN_STEPS else None

    @property
    def between_steps(self) -> BetweenSteps:
        """The median of the recent times between steps, and the part of it in which the loop waits for its dataset.

        This part is the median multiplied by the share that waiting has in the sum of all usual times. A median of the waiting
        itself would mislead: elements may come in pairs, so that the loop waits only for every second one.
        """
        if not self._gaps:
            return BetweenSteps(None, None)
        usual = median(self._gaps)
        pairs = [pair for pair in self._inputs if 0 < pair[0] <= MAX_USUAL * usual]
        total = sum(outside for outside, _ in pairs)
        return BetweenSteps(usual, usual * sum(waited for _, waited in pairs) / total if total else None)

    def message(self) -> RunStatistics:
        """Return the numbers for the page. Traced steps do not count in the times, unless all steps were traced."""
        sketch = self._untraced if self._untraced.count else self._all
        return {
            "steps": self.steps,
            "mean_s": sketch.mean_s,
            "p50_s": sketch.percentile(0.5),
            "p95_s": sketch.percentile(0.95),
            "p99_s": sketch.percentile(0.99),
            "min_s": sketch.min_s if sketch.count else None,
            "max_s": sketch.max_s if sketch.count else None,
            "last_s": self._last_s,
            "first_run_at": self._first_run_at,
            "last_run_at": self._last_run_at,
            "between_steps_s": median(self._gaps) if self._gaps else None,
            "traced_overhead_s": median(self._overheads) if self._overheads else None,
            "recent_s": list(self._recent),
        }


@dataclass(eq=False)
class LiveRun:
    handle: RunHandle
    statistics: StepStatistics = field(default_factory=StepStatistics)
    unwritten: UnwrittenSteps = field(default_factory=UnwrittenSteps)
