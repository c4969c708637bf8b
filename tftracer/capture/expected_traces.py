"""Traces of steps that are expected to be slow: requested just before they begin, for at most 1% of extra time.

Runs on the watch's thread. Which step is next is found out by the training threads themselves (TraceRequests.claim).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from statistics import median

from tftracer.capture.slow_steps import NEVER, RunState, SlowSteps
from tftracer.capture.stall_periods import Expected
from tftracer.capture.trace_requests import TraceRequests
from tftracer.session.recorded_steps import RunHandle

#: Of the training's time.
EXTRA = 0.01
#: Steps are counted afresh when an expected one is so near, and it is requested when it is nearer than that: every step that
#: begins after the request is asked for its number, which takes some microseconds.
NEAR_NS, REQUEST_NS = 400_000_000, 100_000_000
ASKING_NS = 15_000
#: Slow steps that are traced of each run: a few tell what more would tell.
MAX_TRACES = 5


class ExpectedTraces:
    def __init__(self, requests: TraceRequests, steps: SlowSteps, settle: Callable[[], None]) -> None:
        self._requests = requests
        self._steps = steps
        self._settle = settle
        self._asked: dict[RunHandle, int] = {}  # the last step that was requested
        self._caught: dict[RunHandle, int] = {}
        self._asking_ns = 0

    def caught(self, run: RunHandle) -> None:
        """A slow step has been traced."""
        self._caught[run] = self._caught.get(run, 0) + 1

    def update(self, expected: Iterable[Expected]) -> None:
        """Request those that come soon."""
        if "tensorflow" not in sys.modules:
            return  # steps of a loop without it: there is nothing to trace them with
        for steps in expected:
            state = self._steps.runs.get(steps.run)
            if state and self._ahead_ns(steps, state) <= NEAR_NS and self._is_wanted(steps, state):
                self._settle()
                if self._ahead_ns(steps, state) <= REQUEST_NS and steps.last > steps.run.steps:
                    self._asked[steps.run] = steps.last
                    self._asking_ns += max(0, steps.last - steps.run.steps) * ASKING_NS
                    self._requests.expect(steps.run, range(steps.first, steps.last + 1))

    def _is_wanted(self, steps: Expected, state: RunState) -> bool:
        if self._asked.get(steps.run, 0) >= steps.first or self._caught.get(steps.run, 0) >= MAX_TRACES:
            return False
        extra = state.traced_extra_ns
        # Before any was measured, a trace is expected to take as long as the step.
        each = median(extra) if extra else (0 if state.inside.median_ns == NEVER else state.inside.median_ns)
        caught = sum(self._caught.values())
        so_far = sum(run.traced_extra_sum_ns for run in self._steps.runs.values()) + caught * each + self._asking_ns
        whole = sum(run.sums.inside_ns + run.sums.between_ns for run in self._steps.runs.values())
        return so_far + each * (steps.last - steps.first + 1) <= EXTRA * whole

    def _ahead_ns(self, steps: Expected, state: RunState) -> int:
        """The time until the first of them begins."""
        usual = sum(typical.median_ns for typical in (state.inside, state.between) if typical.median_ns != NEVER)
        return max(0, steps.first - 1 - steps.run.steps) * usual
