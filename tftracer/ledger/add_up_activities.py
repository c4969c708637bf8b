"""Adds up the activities of this process while it runs. On the writer's thread; pure.

Activities are added when they have ended. The time before all current activities is final: it is added to the sums, and its spans
are dropped. So a week takes as much memory as a minute, and no time is counted twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tftracer.ledger.activity import LOOP, OTHER_THREAD, STEPPING, STEPS, SUSPENDED, Activity, RunOrName
from tftracer.run_handle import RunHandle
from tftracer.slow.answer.texts import place_of
from tftracer.slow.watch_results import Cause, Stall
from tftracer.trace.arrays.intervals import Cover, distinct, is_in
from tftracer.trace.arrays.types import Int64


class Painted(NamedTuple):
    own_ns: Int64  # [spans] the time that counts for the span
    covered: Cover  # the time that any span covers
    above: Cover  # the time that spans with a lower rank than ``rank`` cover, and that counts for them


def paint(spans: Int64, since_ns: int, until_ns: int, rank: int) -> Painted:
    """Assign each moment to the span with the lowest rank, and among equal ranks to the span that began first.

    ``spans``: [n, 3] rank, start, end.
    """
    starts, ends = (np.clip(spans[:, column], since_ns, until_ns) for column in (1, 2))
    own = np.zeros(len(spans), np.int64)
    covered = above = Cover.empty()
    for level in distinct(spans[:, 0]).tolist():
        rows = np.nonzero(spans[:, 0] == level)[0]
        rows = rows[np.argsort(starts[rows], kind="stable")]
        reach = np.maximum.accumulate(ends[rows])  # latest end of a span and of those before it
        begin = np.maximum(starts[rows], np.concatenate([[since_ns], reach[:-1]]))
        end = np.maximum(ends[rows], begin)
        own[rows] = end - begin - covered.within(begin, end)
        covered |= Cover.of(starts[rows], ends[rows])
        if level < rank:
            above = covered
    return Painted(own, covered, above)


SECOND_NS = 10**9
#: The time between two activities of the main thread is LOOP if it is shorter than this; else other threads' activities count.
LOOP_NS = 60 * SECOND_NS
#: Time is final after PATIENCE_NS, or if MAX_PENDING spans wait. If a step has not ended by then, its time so far counts for
#: UNDER_WAY until it ends.
PATIENCE_NS, MAX_PENDING = 120 * SECOND_NS, 200_000
#: Name of the threads of queue runners (TensorFlow 1). They always run a step that waits, so they do not count as training.
HELPERS = "QueueRunnerThread"
UNDER_WAY = "a step that has not ended"
OTHERS = "others"
MAX_NAMES, MAX_SLOW = 300, 200
#: Spans of final time are kept to correct slow steps by them: those of at least KEPT_SPAN_NS, and at most MAX_KEPT_SPANS.
KEPT_SPAN_NS, MAX_KEPT_SPANS = 10_000_000, 4000
#: A stop of the process counts only once: if other activities leave less than this share of a slow step uncovered, the stop is
#: counted already.
STOP_LEFT = 0.5
#: Causes of slow steps whose time already counts for other activities.
COVERED = ("retrace", "checkpoint", "other_run")


@dataclass(frozen=True)
class SlowEntry:
    """The excess of a run's slow steps with one cause at one place."""

    run_id: int
    cause: str
    place: str
    inside: bool
    own_s: float
    times: int


@dataclass
class Sum:
    own_ns: int = 0  # the time that counts for the row
    times: int = 0  # number of its activities that have ended
    first_ns: int | None = None  # of a run: the part of its first step's time that counts for the step


@dataclass
class Sums:
    """The sums up to ``until_ns``. Rows and the three spans without any activity add up to the whole time."""

    since_ns: int
    until_ns: int
    rows: dict[tuple[int, RunOrName], Sum] = field(default_factory=dict)
    covered_ns: int = 0
    first_ns: int | None = None  # start of the first step
    last_ns: int | None = None  # end of the last step
    covered_before_first_ns: int = 0
    covered_until_last_ns: int = 0

    @property
    def rest_ns(self) -> tuple[int, int, int]:
        """The time without any activity: (before the first step, between steps, after the last one)."""
        if self.first_ns is None or self.last_ns is None:
            return self.until_ns - self.since_ns - self.covered_ns, 0, 0
        before = self.first_ns - self.since_ns - self.covered_before_first_ns
        after = self.until_ns - self.last_ns - (self.covered_ns - self.covered_until_last_ns)
        return before, self.until_ns - self.since_ns - self.covered_ns - before - after, after

    def copy(self) -> Sums:
        return replace(self, rows={key: replace(row) for key, row in self.rows.items()})

    def add(self, activities: list[Activity], until_ns: int) -> Painted:
        """Count the time before ``until_ns``, and the activities that have ended by then."""
        spans = np.array([(rank, start, end) for rank, _, start, end, _ in activities], np.int64).reshape(-1, 3)
        painted = paint(spans, self.until_ns, until_ns, STEPS)
        for (rank, run_or_name, _, end, _), own in zip(activities, painted.own_ns.tolist()):
            rank %= OTHER_THREAD
            if rank != LOOP:
                row = self.row(rank, run_or_name)
                row.own_ns += own
                row.times += self.until_ns < end <= until_ns
                if row.first_ns is None and own and not isinstance(run_or_name, str):
                    row.first_ns = own
        ranks = spans[:, 0] % OTHER_THREAD
        counted = ranks != LOOP
        is_stepping = is_in(ranks, STEPPING) & (spans[:, 1] < until_ns)

        def covered_until(at_ns: int) -> int:
            return self.covered_ns + int(paint(spans, self.until_ns, at_ns, STEPS).own_ns[counted].sum())

        if is_stepping.any():
            if self.first_ns is None:
                self.first_ns = max(int(spans[is_stepping, 1].min()), self.until_ns)
                self.covered_before_first_ns = covered_until(self.first_ns)
            self.last_ns = min(int(spans[is_stepping, 2].max()), until_ns)
            self.covered_until_last_ns = covered_until(self.last_ns)
        self.covered_ns += int(painted.own_ns[counted].sum())
        self.until_ns = until_ns
        return painted

    def row(self, rank: int, run_or_name: RunOrName) -> Sum:
        if (rank, run_or_name) not in self.rows and len(self.rows) >= MAX_NAMES:
            run_or_name = OTHERS
        return self.rows.setdefault((rank, run_or_name), Sum())


class WallTimeSums:
    """The sums of one process. ``since_ns``: start of the process. ``main``: the id of its main thread."""

    def __init__(self, since_ns: int, main: int) -> None:
        self._final = Sums(since_ns, since_ns)
        self._main = main
        self.training = main  # the thread that trains: the main one if it has any activity
        self._main_end_ns: int | None = None  # end of the main thread's last activity
        self._step_end_ns: int | None = None  # end of the training thread's last step
        self._has_other_threads = False
        self._pending: list[Activity] = []
        self._ahead: dict[int, int] = {}  # thread -> time of its current step that is already counted
        self._spans_rest: deque[tuple[int, int]] = deque(maxlen=MAX_KEPT_SPANS)  # without any activity
        self._spans_above: deque[tuple[int, int]] = deque(maxlen=MAX_KEPT_SPANS)  # of activities with a lower rank than STEPS
        self._slow: dict[tuple[RunHandle, str, str, bool], tuple[int, int]] = {}
        self._early: list[Stall] = []  # slow steps that end in the time that is not final yet

    def add(self, activities: Iterable[Activity], helpers: set[int]) -> None:
        """Add activities in the order of their ends. ``helpers``: threads that are not counted."""
        for rank, run_or_name, start, end, thread in activities:
            if thread in helpers:
                continue
            if thread == self._main:
                before = self._main_end_ns
                if self._has_other_threads and before is not None and before < start < before + LOOP_NS:
                    self._pending.append((LOOP, OTHERS, before, start, thread))
                self._main_end_ns = end if before is None else max(before, end)
                self.training = thread
            elif rank != SUSPENDED:
                self._has_other_threads = True
                if self._main_end_ns is None and rank == STEPS:
                    self.training = thread
                rank += OTHER_THREAD
            if thread == self.training and rank % OTHER_THREAD in STEPPING:
                self._step_end_ns = max(end, self._step_end_ns or end)
            if start < self._final.until_ns and rank % OTHER_THREAD == STEPS and thread in self._ahead:
                ahead = self._ahead.pop(thread)
                self._final.row(STEPS, UNDER_WAY).own_ns -= ahead
                self._final.row(STEPS, run_or_name).own_ns += ahead
            self._pending.append((rank, run_or_name, start, end, thread))

    def sums_until(self, now_ns: int, under_way: Sequence[Activity]) -> Sums:
        """Return the sums of all time until now. ``under_way``: current activities, which count as if they ended now.

        The time after the training thread's last step is not final yet: it may be a step of an eager loop, not known yet.
        """
        known = [activity for activity in under_way if activity[2] < now_ns]
        horizon = min([now_ns, *(activity[2] for activity in known)])
        main_end_ns = self._main_end_ns if self._has_other_threads else None
        for end_ns in (main_end_ns, self._step_end_ns):
            if end_ns is not None and now_ns - end_ns < LOOP_NS:
                horizon = min(horizon, end_ns)
        horizon = max(horizon, now_ns - PATIENCE_NS) if len(self._pending) < MAX_PENDING else now_ns
        ranked = [
            (rank + OTHER_THREAD * (thread != self._main), run_or_name, start, end, thread)
            for rank, run_or_name, start, end, thread in known
        ]
        if horizon > self._final.until_ns:
            self._make_final(horizon, ranked)
        sums = self._final.copy()
        sums.add([*self._pending, *ranked], max(now_ns, horizon))
        return sums

    def _make_final(self, horizon: int, under_way: list[Activity]) -> None:
        taken = [activity for activity in self._pending if activity[2] < horizon]
        begun = [activity for activity in under_way if activity[2] < horizon]
        since = self._final.until_ns
        painted = self._final.add([*taken, *begun], horizon)
        for (rank, _, _, _, thread), own in zip(begun, painted.own_ns[len(taken) :].tolist()):
            if rank % OTHER_THREAD == STEPS:
                self._ahead[thread] = self._ahead.get(thread, 0) + own
        self._pending = [activity for activity in self._pending if activity[3] > horizon]
        main_spans = np.array([(rank, start, end) for rank, _, start, end, _ in taken + begun if rank < LOOP], np.int64)
        covered = paint(main_spans, since, horizon, STEPS).covered if len(main_spans) else painted.covered
        rest = Cover.span(since, horizon) - covered
        for kept, spans in ((self._spans_above, painted.above), (self._spans_rest, rest)):
            pairs = zip(spans.start.tolist(), spans.end.tolist())
            kept.extend((start, end) for start, end in pairs if end - start >= KEPT_SPAN_NS)
        early, self._early = self._early, []
        for stall in early:
            self.add_slow(stall)

    def add_slow(self, stall: Stall) -> None:
        """Add a slow step's excess over the usual time, without the parts that other activities cover."""
        if stall.thread_id not in (0, self.training):
            return  # a thread that feeds a queue waits until an element is taken
        if stall.end_ns > self._final.until_ns:
            self._early = [*self._early[-MAX_SLOW:], stall]
            return
        excess = stall.end_ns - stall.start_ns - round(stall.expected_s * 1e9)
        if stall.inside:
            excess -= overlap(self._spans_above, stall.start_ns, stall.end_ns)
        else:
            excess = min(excess, overlap(self._spans_rest, stall.start_ns, stall.end_ns))
        is_counted = stall.cause.kind == "stopped" and excess < STOP_LEFT * (stall.end_ns - stall.start_ns)
        if excess <= 0 or is_counted:
            return
        for cause, share in _shares(stall):
            key: tuple[RunHandle, str, str, bool] = (stall.run, cause.kind, place_of(cause), stall.inside)
            if key not in self._slow and len(self._slow) >= MAX_SLOW:
                key = (stall.run, "unknown", "", stall.inside)
            own_ns, times = self._slow.get(key, (0, 0))
            self._slow[key] = own_ns + round(share * excess), times + 1

    def slow(self) -> list[SlowEntry]:
        return [
            SlowEntry(run.run_id, cause, place, inside, own_ns * 1e-9, times)
            for (run, cause, place, inside), (own_ns, times) in self._slow.items()
        ]


def _shares(stall: Stall) -> list[tuple[Cause, float]]:
    """Return the causes of a slow step with their shares, which add up to 1.

    Causes that other activities cover are left out if there is any other cause. Empty if TensorFlow only traced a function: that
    counts as the first step of its run.
    """
    others = [(other.cause, other.seconds) for other in stall.others if other.cause.kind != "stopped"]  # a stop counts as such
    own_s = stall.excess_s - sum(other.seconds for other in stall.others)
    left = [(cause, max(0.0, seconds)) for cause, seconds in ((stall.cause, own_s), *others) if cause.kind not in COVERED]
    whole_s = sum(seconds for _, seconds in left)
    if whole_s:
        return [(cause, seconds / whole_s) for cause, seconds in left]
    return [] if stall.cause.kind == "retrace" else [(stall.cause, 1.0)]


def overlap(spans: Iterable[tuple[int, int]], start_ns: int, end_ns: int) -> int:
    return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)
