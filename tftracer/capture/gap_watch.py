"""When the time between steps is sampled: once for each run where it is 20% and more of the time, and when the page asks.

Runs on the watch's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FrameType

from tftracer.capture.frame_names import FrameNames
from tftracer.capture.gap_profile import GapSampling
from tftracer.capture.gc_pauses import GcPauses
from tftracer.capture.slow_steps import RunState, SlowSteps
from tftracer.capture.watched_threads import WatchedThreads
from tftracer.session.recorded_steps import RunHandle
from tftracer.slow.recorded import SlowRecords

#: A run is sampled by itself when so much of its time is between its steps, and it has run for so long.
SHARE, LEAST_STEPS, LEAST_NS = 0.2, 50, 2_000_000_000
#: Profiles that are taken by themselves.
MAX_PROFILES = 5


class GapWatch:
    """``settle``: counts the steps that have ended."""

    def __init__(
        self,
        records: SlowRecords,
        steps: SlowSteps,
        threads: WatchedThreads,
        names: FrameNames,
        settle: Callable[[], None],
    ) -> None:
        self.sampling: GapSampling | None = None
        self._records = records
        self._steps = steps
        self._threads = threads
        self._names = names
        self._settle = settle
        self._profiled: set[RunHandle] = set()

    def is_due(self, now_ns: int) -> bool:
        return self.sampling is not None and now_ns >= self.sampling.due_ns

    def begin(self, now_ns: int, under_way: Mapping[int, int], gc: GcPauses | None) -> None:
        """Begin a profile where one is wanted. None is under way."""
        asked = self._records.profile_requested.is_set()
        run = self._run_to_sample(asked)
        thread = self._thread_of(run, under_way) if run else None
        if run is None or thread is None:
            return
        self._profiled.add(run)
        self._settle()
        self.sampling = GapSampling(run, thread, asked, now_ns, self._steps.sums(thread), self._between_ns(gc, thread))
        self._records.run_profiled = run
        if asked:
            self._records.profile_requested.clear()

    def sample(
        self, frames: Mapping[int, FrameType], now_ns: int, under_way: Mapping[int, int], state: str, gc: GcPauses | None
    ) -> None:
        assert self.sampling is not None
        mark = under_way.get(self.sampling.thread, 0)
        self.sampling.sample(frames, now_ns, mark, state, self._threads.ours, gc)

    def end(self, now_ns: int, gc: GcPauses | None) -> None:
        """Hand the profile over."""
        sampling, self.sampling = self.sampling, None
        if sampling is not None:
            self._settle()
            self._records.run_profiled = None
            thread = sampling.thread
            profile = sampling.profile(
                now_ns, self._steps.sums(thread), self._between_ns(gc, thread), self._names, self._threads.names
            )
            self._records.add(profile)

    def _run_to_sample(self, asked: bool) -> RunHandle | None:
        """The run that the page asked for, or the one with the most time between its steps.

        Unless the user asked, only one that is worth it and was not sampled.
        """
        wanted = self._records.run_to_profile
        if asked and wanted in self._steps.runs:
            return wanted
        runs = [
            (state.sums.between_ns, run) for run, state in list(self._steps.runs.items()) if asked or self._is_wanted(run, state)
        ]
        return max(runs, key=lambda candidate: candidate[0])[1] if runs else None

    def _is_wanted(self, run: RunHandle, state: RunState) -> bool:
        steps, inside, between = state.sums
        whole = inside + between
        return (
            run not in self._profiled
            and len(self._profiled) < MAX_PROFILES
            and steps >= LEAST_STEPS
            and whole >= LEAST_NS
            and between >= SHARE * whole
        )

    def _thread_of(self, run: RunHandle, under_way: Mapping[int, int]) -> int | None:
        """The thread that ran its last step."""
        thread = self._steps.runs[run].thread
        return thread if thread in under_way else None

    def _between_ns(self, gc: GcPauses | None, thread: int) -> int:
        """Of the time that the sums of the steps are of."""
        return gc.between_until(thread, self._steps.last_end_ns(thread)) if gc else 0
