"""The time between steps by line of code: asked of what was sampled in the last minute, again and again while a run lasts.

Once a run spends 20% and more of its time between its steps, and when the page asks. Runs on the watch's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tftracer.slow.cause.frame_names import FrameNames
from tftracer.slow.cause.stacks import is_in_step, without_tracer
from tftracer.slow.recorded import FoldedStack, GapProfile, SlowRecords, WatchedRun
from tftracer.slow.watch.gc_pauses import GcPauses
from tftracer.slow.watch.stack_source import Answer, StackSource
from tftracer.slow.watch.turns import RunState, SlowSteps, Sums
from tftracer.slow.watch.watched_threads import WatchedThreads
from tftracer.slow.watch.windows import EVERY_NS

#: A run is profiled by itself when so much of its time is between its steps, and it has run for so long.
SHARE, LEAST_STEPS, LEAST_NS = 0.2, 50, 2_000_000_000
#: How long a profile takes, and a run's first one, which ends earlier with the session.
LENGTH_NS, FIRST_NS, SHORTEST_NS = 20_000_000_000, 10_000_000_000, 3_000_000_000
#: The next one comes so much later each time: what is typical now may not be what was typical at the start.
AGAIN_NS, LATER = 30_000_000_000, 2
MAX_RUNS = 20


class Wanted(NamedTuple):
    run: WatchedRun
    thread: int
    start_ns: int
    length_ns: int
    sums: Sums
    gc_ns: int
    only: WatchedRun | None  # the times between its own steps alone: another run is the main one of the thread's loop


class GapProfiles:
    """``settle``: counts the steps that have ended."""

    def __init__(self, records: SlowRecords, steps: SlowSteps, settle: Callable[[], None]) -> None:
        self._records = records
        self._steps = steps
        self._settle = settle
        self._wanted: Wanted | None = None  # whose time is passing
        self._asked: dict[int, GapProfile] = {}  # without its stacks, which are being read
        self._number = 0
        self._next: dict[WatchedRun, tuple[int, int]] = {}  # when it is due again, and how long after that

    def each_second(
        self, now_ns: int, source: StackSource, under_way: Mapping[int, int], threads: WatchedThreads, gc: GcPauses | None
    ) -> None:
        if self._wanted is None:
            self._begin(now_ns, source, under_way, gc)
        elif now_ns - self._wanted.start_ns >= self._wanted.length_ns:
            self._end(now_ns, source, threads, gc)

    @property
    def is_asked(self) -> bool:
        """Stacks of a profile are being read."""
        return bool(self._asked)

    def end_first(self, now_ns: int, source: StackSource, threads: WatchedThreads, gc: GcPauses | None) -> None:
        """The session ends or is saved: a run's first profile is better short than none."""
        wanted = self._wanted
        if wanted is not None and wanted.length_ns == FIRST_NS and now_ns - wanted.start_ns >= SHORTEST_NS:
            self._end(now_ns, source, threads, gc)

    def take(self, answer: Answer, names: FrameNames) -> None:
        """The stacks of a profile have been read."""
        profile = self._asked.pop(answer.number, None)
        if profile is None:
            return
        given = answer.raw["spans"][0]["stacks"]
        sampled = [
            FoldedStack(profile.thread, names.stack(stack), max(1, round(length * 1e9 / EVERY_NS)), length)
            for stack, length in given
        ]
        # A sample is stamped late: it may show the step after the time between.
        outside = tuple(stack for stack in without_tracer(sampled) if not is_in_step(stack))
        self._records.run_profiled = None
        self._records.add(profile._replace(stacks=outside, samples=sum(stack.samples for stack in outside)))

    def _begin(self, now_ns: int, source: StackSource, under_way: Mapping[int, int], gc: GcPauses | None) -> None:
        is_asked_for = self._records.profile_requested.is_set()
        run = self._run_to_profile(is_asked_for, now_ns)
        thread = self._steps.runs[run].thread if run else 0
        if run is None or thread not in under_way:
            return
        self._settle()
        length_ns = LENGTH_NS if run in self._next else FIRST_NS
        _, apart = self._next.get(run, (0, AGAIN_NS))
        self._next[run] = now_ns + apart, apart * LATER
        only = None if self._steps.is_main(thread, run) else run
        self._wanted = Wanted(run, thread, now_ns, length_ns, self._steps.sums(thread, only), _gc_ns(gc, thread), only)
        self._records.run_profiled = run
        source.begin_profile(now_ns + length_ns)
        if is_asked_for:
            self._records.profile_requested.clear()

    def _end(self, now_ns: int, source: StackSource, threads: WatchedThreads, gc: GcPauses | None) -> None:
        wanted, self._wanted = self._wanted, None
        assert wanted is not None
        self._settle()
        native = threads.native_ids.get(wanted.thread)
        sums, before = self._steps.sums(wanted.thread, wanted.only), wanted.sums
        if wanted.only is not None and sums.steps == before.steps:
            self._records.run_profiled = None
            return
        profile = GapProfile(
            run=wanted.run,
            thread=threads.names.get(wanted.thread, ""),
            start_ns=wanted.start_ns,
            end_ns=now_ns,
            steps=sums.steps - before.steps,
            inside_s=(sums.inside_ns - before.inside_ns) * 1e-9,
            between_s=max(0, sums.between_ns - before.between_ns) * 1e-9,
            gc_s=None if wanted.only else max(0, _gc_ns(gc, wanted.thread) - wanted.gc_ns) * 1e-9,
            stacks=(),
            samples=0,
        )
        self._number -= 1  # apart from the numbers of slow turns
        self._asked = {self._number: profile}  # one at a time
        spans = self._steps.gaps(wanted.thread, wanted.start_ns, wanted.only)
        source.ask(self._number, wanted.thread, native or 0, spans, profile=True)

    def _run_to_profile(self, is_asked_for: bool, now_ns: int) -> WatchedRun | None:
        """The run that the page asked for, or the one with the most time between its steps."""
        wanted = self._records.run_to_profile
        if is_asked_for and wanted in self._steps.runs:
            return wanted
        runs = [
            (state.sums.between_ns, run)
            for run, state in list(self._steps.runs.items())
            if is_asked_for or self._is_worth_it(run, state, now_ns)
        ]
        return max(runs, key=lambda candidate: candidate[0])[1] if runs else None

    def _is_worth_it(self, run: WatchedRun, state: RunState, now_ns: int) -> bool:
        due_ns, _ = self._next.get(run, (0, 0))
        steps, inside, between = state.sums
        whole = inside + between
        if now_ns < due_ns or (not due_ns and len(self._next) >= MAX_RUNS):
            return False
        return steps >= LEAST_STEPS and whole >= LEAST_NS and between >= SHARE * whole


def _gc_ns(gc: GcPauses | None, thread: int) -> int:
    if gc is None:
        return 0
    gc.settle()
    return gc.between_ns.get(thread, 0)
