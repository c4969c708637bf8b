"""Which steps were slow, and which of the times between them: longer than 3 medians and than the median and 20 ms.

Other rules (2 medians, deviations, percentiles, moving averages) called 10 to 100 steps in 1,000 slow where data varied or steps
grew longer. Runs where steps are settled: mostly the writer's thread. What it finds is explained by the watch (stall_watch.py).
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from tftracer.session.recorded_steps import Capture, RunHandle, Traced, tracer_ns

#: A median is of so many times, and is taken anew after so many more; before that nothing is slow.
RECENT, REFRESH, WARM_UP = 201, 16, 20
#: A time is only slow if it is so much longer than the median.
LEAST_NS = 20_000_000
#: So many slow ones in a row are a change, not stalls: the median is begun anew.
CHANGE = 5
#: A time is looked at while it lasts from here on.
WATCH_NS = 30_000_000
#: Slow steps that wait for the watch.
MAX_FOUND = 1000
MAX_THREADS = 1000
NEVER = 1 << 62


class SlowStep(NamedTuple):
    """A step or a time between steps that was slow, as it was found."""

    run: RunHandle
    step: int
    inside: bool
    thread: int
    mark: int  # what ``StepQueue.under_way`` held for its thread meanwhile
    start_ns: int
    end_ns: int
    expected_ns: int
    limit_ns: int  # what takes longer is slow
    is_traced: bool


class Typical:
    """The median of recent times, in nanoseconds."""

    def __init__(self, factor: float) -> None:
        self.median_ns = NEVER
        self.limit_ns = NEVER
        self._factor = factor
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._until_refresh = WARM_UP
        self._slow_in_a_row = 0

    def add(self, ns: int) -> None:
        self._recent.append(ns)
        self._until_refresh -= 1
        if self._until_refresh <= 0:
            self._until_refresh = REFRESH
            self.median_ns = sorted(self._recent)[len(self._recent) // 2]
            self.limit_ns = max(int(self._factor * self.median_ns), self.median_ns + LEAST_NS)

    def is_slow(self, ns: int, allowed_ns: int = 0) -> bool:
        """Whether a time is slow, which may take ``allowed_ns`` longer than others."""
        if ns <= self.limit_ns + allowed_ns:
            self._slow_in_a_row = 0
            return False
        self._slow_in_a_row += 1
        if self._slow_in_a_row >= CHANGE:
            self._recent.clear()
            self.median_ns = self.limit_ns = NEVER
            self._until_refresh, self._slow_in_a_row = WARM_UP, 0
        return True

    def watch_ns(self) -> int:
        """From when on a time under way is worth a look: it is slow, or will be soon."""
        return NEVER if self.median_ns == NEVER else max(int(self._factor * self.median_ns), WATCH_NS)


class Sums(NamedTuple):
    """Of all steps of a thread so far."""

    steps: int = 0
    inside_ns: int = 0
    between_ns: int = 0


NONE_YET = Sums()


def plus_gap(sums: Sums, ns: int) -> Sums:
    return Sums(sums.steps, sums.inside_ns, sums.between_ns + ns)


def plus_step(sums: Sums, ns: int) -> Sums:
    return Sums(sums.steps + 1, sums.inside_ns + ns, sums.between_ns)


@dataclass(eq=False)
class Times:
    """What is usual inside and between the steps of one run or one thread."""

    inside: Typical
    between: Typical


@dataclass(eq=False)
class ThreadState(Times):
    """A thread, as far as its steps are settled."""

    sums: Sums = NONE_YET
    end_ns: int = 0  # of its last step
    after_ns: int = 0  # that the tracer took after it


@dataclass(eq=False)
class RunState(Times):
    """A run, and the sums that tell whether the time between its steps is worth a look."""

    sums: Sums = NONE_YET
    thread: int = 0  # of its last step
    #: Of steps that were traced because they were expected to be slow: how much longer they took than the median, at most as
    #: long as one that is not slow.
    traced_extra_ns: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    traced_extra_sum_ns: int = 0


class SlowSteps:
    """``step`` is called for each settled step, in the order of each thread. Methods may be called from any thread."""

    def __init__(self, factor: float) -> None:
        self.found: deque[SlowStep] = deque(maxlen=MAX_FOUND)
        self.runs: dict[RunHandle, RunState] = {}
        self._factor = factor
        self._threads: dict[int, ThreadState] = {}
        self._lock = threading.Lock()

    def step(self, run: RunHandle, thread: int, start_ns: int, end_ns: int, trace: Traced) -> None:
        with self._lock:
            state = self._run(run)
            self._gap(run, state, thread, start_ns, trace)
            self._inside(run, state, thread, start_ns, end_ns, trace)

    def watch_after_ns(self, thread: int, inside: bool) -> int:
        """How long a step of this thread, or a time between two, may last before it is looked at."""
        state = self._threads.get(thread)
        if state is None:
            return NEVER
        return (state.inside if inside else state.between).watch_ns()

    def sums(self, thread: int) -> Sums:
        state = self._threads.get(thread)
        return state.sums if state else NONE_YET

    def last_end_ns(self, thread: int) -> int:
        """When the last settled step of a thread ended; the sums are of the time until then."""
        state = self._threads.get(thread)
        return state.end_ns if state else 0

    def forget(self, thread: int) -> None:
        """A thread has ended; its number may be used again."""
        with self._lock:
            self._threads.pop(thread, None)

    def _gap(self, run: RunHandle, of_run: RunState, thread: int, start_ns: int, trace: Traced) -> None:
        """The time before a step, without what the tracer took of it."""
        of_thread = self._threads.get(thread)
        if of_thread is None:
            return
        before_ns, _ = tracer_ns(trace)
        gap = start_ns - before_ns - of_thread.end_ns - of_thread.after_ns
        if gap < 0:
            return
        of_run.sums, of_thread.sums = plus_gap(of_run.sums, gap), plus_gap(of_thread.sums, gap)
        typical = of_run.between
        usual = typical.median_ns, typical.limit_ns
        if typical.is_slow(gap):
            mark, end = -of_thread.end_ns, start_ns - before_ns
            self._found(run, False, thread, (mark, end - gap, end), usual, False)
        typical.add(gap)
        of_thread.between.add(gap)

    def _inside(self, run: RunHandle, of_run: RunState, thread: int, start_ns: int, end_ns: int, trace: Traced) -> None:
        is_traced, took, typical = isinstance(trace, Capture), end_ns - start_ns, of_run.inside
        of_thread = self._thread(thread)
        of_run.sums, of_thread.sums = plus_step(of_run.sums, took), plus_step(of_thread.sums, took)
        of_run.thread = thread
        # A trace may double the time of a step.
        allowed = typical.median_ns + LEAST_NS if is_traced else 0
        usual = typical.median_ns, typical.limit_ns
        if typical.is_slow(took, allowed):
            self._found(run, True, thread, (start_ns, start_ns, end_ns), usual, is_traced)
        elif isinstance(trace, Capture) and trace.asked_by == "slow":
            extra = max(0, took - typical.median_ns)
            of_run.traced_extra_ns.append(extra)
            of_run.traced_extra_sum_ns += extra
        if not is_traced:
            typical.add(took)
            of_thread.inside.add(took)
        of_thread.end_ns, (_, of_thread.after_ns) = end_ns, tracer_ns(trace)

    def _found(
        self, run: RunHandle, inside: bool, thread: int, span: tuple[int, int, int], usual: tuple[int, int], is_traced: bool
    ) -> None:
        """``usual``: the median and the limit as they were; the slow one may have ended them."""
        mark, start, end = span
        expected, limit = usual
        self.found.append(SlowStep(run, run.steps, inside, thread, mark, start, end, expected, limit, is_traced))

    def _run(self, run: RunHandle) -> RunState:
        state = self.runs.get(run)
        if state is None:
            state = self.runs[run] = RunState(Typical(self._factor), Typical(self._factor))
        return state

    def _thread(self, thread: int) -> ThreadState:
        state = self._threads.get(thread)
        if state is None:
            if len(self._threads) >= MAX_THREADS:
                self._threads.clear()
            state = self._threads[thread] = ThreadState(Typical(self._factor), Typical(self._factor))
        return state
