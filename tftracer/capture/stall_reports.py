"""Puts together what is known of a slow step: its times, what was sampled meanwhile, its cause, and whether such steps come
regularly. Runs on the watch's thread.
"""

from __future__ import annotations

from tftracer.capture.expected_traces import ExpectedTraces
from tftracer.capture.frame_names import FrameNames
from tftracer.capture.gc_pauses import GcPauses
from tftracer.capture.slow_steps import SlowStep
from tftracer.capture.stall_causes import Evidence, cause_of
from tftracer.capture.stall_periods import StallPeriods
from tftracer.capture.watched_step import WatchedStep
from tftracer.capture.watched_threads import WatchedThreads
from tftracer.slow.recorded import SlowRecords, Stall

#: What was sampled of times that may yet turn out slow.
MAX_ENDED = 64
#: Distinct stacks that a stall keeps.
MAX_STACKS = 50


class StallReports:
    def __init__(self, records: SlowRecords, traces: ExpectedTraces, threads: WatchedThreads, names: FrameNames) -> None:
        self._records = records
        self._traces = traces
        self._threads = threads
        self._names = names
        self._ended: dict[int, WatchedStep] = {}  # by their marks
        self._periods = StallPeriods()

    def ended(self, watched: WatchedStep) -> None:
        """Whether it was slow is found out when its step is settled."""
        if len(self._ended) >= MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[watched.mark] = watched

    def report(self, slow: SlowStep, gc: GcPauses | None) -> None:
        watched = self._ended.pop(self._mark_of(slow), None)
        if not slow.inside and watched and not (watched.sampled_s or watched.not_taken):
            return  # the thread ran no Python: a prompt waits for what is typed
        stall = self._stall(slow, watched, gc)
        self._records.add(stall)
        if slow.is_traced:
            self._traces.caught(slow.run)
        period = self._periods.add(stall)
        if period is not None:
            self._records.add(period)

    @property
    def has_periods(self) -> bool:
        return self._periods.has_any

    def request_traces(self) -> None:
        """Of steps that are expected to be slow."""
        self._traces.update(self._periods.expected())

    def cancel_traces(self) -> None:
        self._traces.cancel()

    def end_periods(self) -> None:
        for period in self._periods.missed():
            self._records.add(period)

    def _mark_of(self, slow: SlowStep) -> int:
        """Under which it was watched. With two hooks in a session a step has two ends, and the later one is the mark."""
        if slow.mark in self._ended:
            return slow.mark
        within = [mark for mark in self._ended if (mark > 0) == slow.inside and slow.start_ns <= abs(mark) < slow.end_ns]
        return min(within, key=abs, default=slow.mark)

    def _stall(self, slow: SlowStep, watched: WatchedStep | None, gc: GcPauses | None) -> Stall:
        stacks, others = watched.folded(self._names, self._threads.names) if watched else ((), ())
        thread = watched.thread if watched else slow.thread
        # Inside a step TensorFlow's threads may call Python functions, which wait for a collection on any thread.
        collecting = None if slow.inside else thread
        gc_s = gc.seconds(collecting, slow.start_ns, slow.end_ns) if gc else 0.0
        host = watched.host if watched else None
        took, expected, limit = slow.end_ns - slow.start_ns, slow.expected_ns * 1e-9, slow.limit_ns * 1e-9
        evidence = Evidence(slow.inside, took * 1e-9, expected, limit, stacks, others, gc_s, host)
        left_out = max(0, len(stacks) - MAX_STACKS)
        return Stall(
            run=slow.run,
            step=slow.step,
            inside=slow.inside,
            thread=self._threads.names.get(thread, ""),
            start_ns=slow.start_ns,
            end_ns=slow.end_ns,
            expected_s=expected,
            cause=cause_of(evidence),
            stacks=stacks[:MAX_STACKS],
            other_stacks=others[:MAX_STACKS],
            sampled_s=watched.sampled_s if watched else 0.0,
            gc_s=gc_s,
            host=host,
            is_traced=slow.is_traced,
            stacks_left_out=left_out + (watched.stacks_left_out if watched else 0),
            samples_left_out=sum(stack.samples for stack in stacks[MAX_STACKS:]) + (watched.samples_left_out if watched else 0),
        )
