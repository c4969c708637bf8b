"""Profiles the time between steps by line of code, from the samples of the last minute.

A run is profiled repeatedly if it spends at least 20% of its time between its steps, and whenever the page requests it. If it
spends less time there, but Python code of the script runs in its steps (an eager loop, a session with hooks), its whole turns
are profiled. All of this happens on the watch's thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tftracer.run_handle import RunHandle
from tftracer.slow.cause.blamed_code import is_in_step, usual_lines, without_tracer
from tftracer.slow.cause.frame_names import FrameNames
from tftracer.slow.watch.capture_protocols import WatchedQueue
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.gc_pauses import GcPauses
from tftracer.slow.watch.outside_client import Question
from tftracer.slow.watch.stack_source import Answer, StackSource
from tftracer.slow.watch.thread_loop import RunState, Sums
from tftracer.slow.watch.watched_threads import WatchedThreads
from tftracer.slow.watch_results import FoldedStack, Frame, GapProfile

#: A run is profiled without a request if at least this share of its time is between steps, after this number of steps and this
#: time.
SHARE, MIN_STEPS, MIN_NS = 0.2, 50, 2_000_000_000
#: Length of a profile, length of a run's first profile, and minimum length of a first profile that the session's end cuts short.
LENGTH_NS, FIRST_NS, SHORTEST_NS = 20_000_000_000, 10_000_000_000, 3_000_000_000
#: Time until a run's second profile, and the factor by which the time until the next one grows. Later profiles show later
#: changes.
AGAIN_NS, LATER = 30_000_000_000, 2
MAX_RUNS = 20  # after this number of runs, no other run is profiled without a request
#: Minimum share of the time between steps that a usual line has.
USUAL = 0.1


class Profiled(NamedTuple):
    """A profile that is being taken."""

    run: RunHandle
    thread: int
    start_ns: int
    length_ns: int
    sums: Sums  # the sums of its steps at the start
    gc_ns: int  # the time of its thread's collections between steps at the start
    only: RunHandle | None  # the run if it is not its thread's main run, so that only times between its steps count; or None


class GapProfiles:
    """Begins and ends profiles."""

    def __init__(self, queue: WatchedQueue, steps: SlowTurnFinder) -> None:
        self._queue = queue
        self._records = queue.slow
        self._finder = steps
        self._current: Profiled | None = None  # the profile that is being taken
        self._without_stacks: dict[int, GapProfile] = {}  # number of the question for its stacks -> profile
        self._number = 0  # number of the last question; questions have the numbers -1, -2, ...
        self.usual_lines: dict[RunHandle, frozenset[Frame]] = {}  # where the run usually is between its steps
        self._next: dict[RunHandle, tuple[int, int]] = {}  # run -> (when its next profile is due, time until the one after that)

    def each_second(
        self, now_ns: int, source: StackSource, under_way: Mapping[int, int], threads: WatchedThreads, gc: GcPauses | None
    ) -> None:
        if self._current is None:
            self._begin(now_ns, source, under_way, gc)
        elif now_ns - self._current.start_ns >= self._current.length_ns:
            self._end(now_ns, source, threads, gc)

    @property
    def is_reading(self) -> bool:
        """Whether an answer with the stacks of a profile is outstanding."""
        return bool(self._without_stacks)

    def end_first(self, now_ns: int, source: StackSource, threads: WatchedThreads, gc: GcPauses | None) -> None:
        """End a run's first profile early, because the session ends or is saved."""
        current = self._current
        if current is not None and current.length_ns == FIRST_NS and now_ns - current.start_ns >= SHORTEST_NS:
            self._end(now_ns, source, threads, gc)

    def take(self, answer: Answer, names: FrameNames) -> None:
        """Record the profile that the answer's stacks belong to."""
        profile = self._without_stacks.pop(answer.number, None)
        if profile is None:
            return
        sampled = [
            FoldedStack(profile.thread, names.stack(stack), times, length)
            for stack, length, times in answer.raw["spans"][0]["stacks"]
        ]
        # A sample may be taken later than its time stamp says, so it may show the next step: leave out stacks of steps.
        kept = tuple(stack for stack in without_tracer(sampled) if profile.whole_turns or not is_in_step(stack))
        if not profile.whole_turns:
            self.usual_lines[profile.run] = usual_lines(kept, USUAL)
        self._records.run_profiled = None
        self._records.add(profile._replace(stacks=kept, samples=sum(stack.samples for stack in kept)))

    def _begin(self, now_ns: int, source: StackSource, under_way: Mapping[int, int], gc: GcPauses | None) -> None:
        is_requested = self._records.profile_requested.is_set()
        run = self._run_to_profile(is_requested, now_ns)
        thread = self._finder.runs[run].thread if run else 0
        if run is None or thread not in under_way:
            return
        self._queue.count_steps()
        length_ns = LENGTH_NS if run in self._next else FIRST_NS
        _, interval_ns = self._next.get(run, (0, AGAIN_NS))
        self._next[run] = now_ns + interval_ns, interval_ns * LATER
        only = None if self._finder.is_main(thread, run) else run
        self._current = Profiled(run, thread, now_ns, length_ns, self._finder.sums(thread, only), _gc_ns(gc, thread), only)
        self._records.run_profiled = run
        source.begin_profile(now_ns + length_ns)
        if is_requested:
            self._records.profile_requested.clear()

    def _end(self, now_ns: int, source: StackSource, threads: WatchedThreads, gc: GcPauses | None) -> None:
        profiled, self._current = self._current, None
        assert profiled is not None
        self._queue.count_steps()
        native = threads.native_ids.get(profiled.thread)
        sums, before = self._finder.sums(profiled.thread, profiled.only), profiled.sums
        if sums.steps == before.steps:  # no step ended, for example because the training is over: keep the earlier profile
            self._records.run_profiled = None
            return
        profile = GapProfile(
            run=profiled.run,
            thread=threads.names.get(profiled.thread, ""),
            start_ns=profiled.start_ns,
            end_ns=now_ns,
            steps=sums.steps - before.steps,
            inside_s=(sums.inside_ns - before.inside_ns) * 1e-9,
            between_s=max(0, sums.between_ns - before.between_ns) * 1e-9,
            gc_s=None if profiled.only else max(0, _gc_ns(gc, profiled.thread) - profiled.gc_ns) * 1e-9,
            stacks=(),
            samples=0,
        )
        whole = profile.inside_s + profile.between_s
        profile = profile._replace(whole_turns=self._runs_python(profiled.run) and profile.between_s < SHARE * whole)
        if profile.whole_turns and gc is not None:
            profile = profile._replace(gc_s=gc.by_thread(profiled.start_ns, now_ns).get(profiled.thread, 0.0))
        self._number -= 1  # the questions about slow turns have positive numbers
        self._without_stacks = {self._number: profile}  # drops a profile whose question has no answer yet
        spans = self._finder.gaps(profiled.thread, profiled.start_ns, profiled.only, profile.whole_turns)
        source.ask(self._number, Question(profiled.thread, native or 0, spans, profile=True))

    def _run_to_profile(self, is_requested: bool, now_ns: int) -> RunHandle | None:
        """Return the run that the page requests, or the run with the most time between its steps; None if none is worth a
        profile."""
        requested = self._records.run_to_profile
        if is_requested and requested in self._finder.runs:
            return requested
        runs = [
            (state.sums.between_ns, run)
            for run, state in list(self._finder.runs.items())
            if is_requested or self._is_worth_it(run, state, now_ns)
        ]
        return max(runs, key=lambda candidate: candidate[0])[1] if runs else None

    def _is_worth_it(self, run: RunHandle, state: RunState, now_ns: int) -> bool:
        due_ns, _ = self._next.get(run, (0, 0))
        steps, inside, between = state.sums
        whole = inside + between
        if now_ns < due_ns or (not due_ns and len(self._next) >= MAX_RUNS):
            return False
        return steps >= MIN_STEPS and whole >= MIN_NS and (between >= SHARE * whole or self._runs_python(run))

    def _runs_python(self, run: RunHandle) -> bool:
        """Return whether Python code of the script runs in the run's steps.

        The steps of a session that a hook of the tracer records include the script's other hooks.
        """
        return run.has_python or (run.is_session and not self._queue.sees_all_sessions)


def _gc_ns(gc: GcPauses | None, thread: int) -> int:
    """Return the time of a thread's garbage collections between its steps so far."""
    if gc is None:
        return 0
    gc.settle()
    return gc.between_ns.get(thread, 0)
