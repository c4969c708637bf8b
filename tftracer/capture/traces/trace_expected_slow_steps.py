"""Requests traces of steps that are expected to be slow, shortly before they begin.

The traces add at most 1% to the training's time (estimated). Runs on the thread of the slow-step watch. The training threads find
out whether the next step is an expected one (TraceRequests.claim).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter_ns

from tftracer.capture.traces.requests import TraceRequests
from tftracer.run_handle import RunHandle
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.slow_limit import NEVER
from tftracer.slow.watch.thread_loop import RunState

#: Maximum time that all these traces may add (estimated), as a share of the training's time.
MAX_EXTRA_SHARE = 0.01
#: From NEAR_NS before an expected step, the number of finished steps is read exactly; REQUEST_NS before the step, its trace is
#: requested. It is not requested earlier, because while a trace is requested, the tracer finds the number of each step when the
#: step begins, which takes some microseconds (NUMBERING_NS is assumed).
NEAR_NS, REQUEST_NS = 400_000_000, 100_000_000
NUMBERING_NS = 15_000
#: A request is cancelled if its steps have not begun this long after the expected time, because the run may have ended.
PATIENCE_NS = 5_000_000_000
#: At most MAX_TRACES slow steps of each run are traced, because further traces would show the same. At most MAX_REQUESTS requests
#: are made for each run: more than MAX_TRACES, because not every expected step is slow.
MAX_TRACES, MAX_REQUESTS = 5, 10


class ExpectedTraces:
    """Requests and cancels the traces. ``set_steps`` must be called first."""

    def __init__(
        self, requests: TraceRequests, count_steps: Callable[[], None], clock_ns: Callable[[], int] = perf_counter_ns
    ) -> None:
        self._requests = requests
        self._clock_ns = clock_ns
        self._requested: dict[RunHandle, tuple[range, int]] = {}  # run -> (its requested steps, when to cancel)
        self._step_times = SlowTurnFinder(1.0)  # empty, a placeholder until ``set_steps``
        self._count_steps = count_steps
        self._last_requested: dict[RunHandle, int] = {}  # run -> last requested step
        self._request_counts: Counter[RunHandle] = Counter()
        self._traced_slow_steps: Counter[RunHandle] = Counter()  # run -> number of its slow steps that were traced
        self._numbering_ns = 0  # estimated time for finding step numbers, of all requests (NUMBERING_NS a step)

    def set_steps(self, steps: SlowTurnFinder) -> None:
        """Set the object that holds the step times of all runs."""
        self._step_times = steps

    def count_traced_slow_step(self, run: RunHandle) -> None:
        self._traced_slow_steps[run] += 1

    def update(self, expected: Iterable[tuple[RunHandle, int, int]]) -> None:
        """Request traces of the expected steps that begin soon, and cancel requests whose steps did not come.

        Each of ``expected`` is (run, first step, last step).
        """
        now = self._clock_ns()
        self._cancel([run for run, (_, until_ns) in self._requested.items() if now >= until_ns])
        if "tensorflow" not in sys.modules:
            return  # the steps of a loop without TensorFlow cannot be traced
        for run, first, last in expected:
            state, steps = self._step_times.runs.get(run), range(first, last + 1)
            if state and _is_near(run, steps, state, NEAR_NS) and self._is_wanted(run, steps, state):
                self._count_steps()
                if _is_near(run, steps, state, REQUEST_NS) and last > run.steps:
                    self._request(run, steps, now + PATIENCE_NS + (last - run.steps) * _usual_ns(state))

    def cancel(self) -> None:
        self._cancel(list(self._requested))

    def _request(self, run: RunHandle, steps: range, until_ns: int) -> None:
        self._last_requested[run] = steps[-1]
        self._numbering_ns += (steps[-1] - run.steps) * NUMBERING_NS
        self._requested[run] = steps, until_ns
        self._request_counts[run] += 1
        self._requests.expect(run, steps)

    def _cancel(self, runs: list[RunHandle]) -> None:
        for run in runs:
            steps, _ = self._requested.pop(run)
            self._requests.cancel_expected(run, steps)

    def _is_wanted(self, run: RunHandle, steps: range, state: RunState) -> bool:
        """Return whether the steps were not requested before, and no limit (such as MAX_EXTRA_SHARE) forbids a request."""
        if self._last_requested.get(run, 0) >= steps.start:
            return False
        if self._traced_slow_steps[run] >= MAX_TRACES or self._request_counts[run] >= MAX_REQUESTS:
            return False
        measured_ns = state.traced_extra_ns
        # Until the extra time of a trace was measured, a trace is assumed to add as much time as the step takes. NEVER: unknown.
        per_trace_ns = median(measured_ns) if measured_ns else (0 if state.inside.median_ns == NEVER else state.inside.median_ns)
        states = list(self._step_times.runs.values())  # a copy, because other threads add runs
        extra_so_far_ns = sum(each.traced_extra_sum_ns for each in states) + self._numbering_ns
        training_ns = sum(each.sums.inside_ns + each.sums.between_ns for each in states)
        return extra_so_far_ns + per_trace_ns * len(steps) <= MAX_EXTRA_SHARE * training_ns


def _is_near(run: RunHandle, steps: range, state: RunState, within_ns: int) -> bool:
    """Return whether the first expected step begins within ``within_ns``, or at most one step comes before it.

    The step before it may be the current one, so the expected step may begin at any time.
    """
    steps_before = steps.start - 1 - run.steps
    return steps_before <= 1 or steps_before * _usual_ns(state) <= within_ns


def _usual_ns(state: RunState) -> int:
    """Return the usual time from the beginning of one step to the beginning of the next step; 0 if unknown."""
    return 0 if state.turns.median_ns == NEVER else state.turns.median_ns
