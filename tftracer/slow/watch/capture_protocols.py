"""The parts of the capture package that the watch uses: the queue of steps, and traces of steps that are expected to be slow."""

from __future__ import annotations

from typing import Protocol

from tftracer.run_handle import RunHandle
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.function_times import FunctionTimes
from tftracer.slow.watch.thread_clocks import ThreadClocks
from tftracer.slow.watch_results import SlowRecords


class WatchedQueue(Protocol):
    """The attributes of the queue of steps that the watch uses (capture/steps/queue.py)."""

    under_way: dict[int, int]  # thread -> start of its step (perf_counter ns), or minus the end of its last step
    thread_clocks: ThreadClocks
    function_times: FunctionTimes
    slow: SlowRecords
    slow_step_watch: SlowTurnFinder | None
    other_problems: dict[str, str]
    sees_all_sessions: bool  # False: the queue has only steps of sessions with the hook

    @property
    def off(self) -> bool: ...

    def count_steps(self) -> None: ...


class ExpectedTraceRequests(Protocol):
    """Requests traces of steps that are expected to be slow (capture/traces/trace_expected_slow_steps.py)."""

    def set_steps(self, steps: SlowTurnFinder) -> None: ...

    def update(self, expected: list[tuple[RunHandle, int, int]]) -> None: ...

    def count_traced_slow_step(self, run: RunHandle) -> None: ...

    def cancel(self) -> None: ...
