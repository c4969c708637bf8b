"""Records the periods of one run's slow steps whenever a period is proven, continues or ends.

Distances are counted in calls of all signatures of a function, because a retraced call is a step of another signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple

from tftracer.run_handle import RunHandle
from tftracer.slow.cause.equal_distances import Proven
from tftracer.slow.cause.find_periods import Periods
from tftracer.slow.record.sums_by_kind import CODE_CAUSES, HOOK_CAUSES, UNSPECIFIC_CAUSES
from tftracer.slow.watch_results import EPOCH_TURN, MERGED, UNKNOWN, Cause, Frame, Period, SlowRecords, Stall

#: All slow steps of a run with the same one of these causes are of one kind, even if their lines differ.
OF_RUN = ("gc", "retrace", "tensorflow", "input", "checkpoint")
MAX_KINDS = 100  # maximum number of kinds whose newest causes are kept
#: Maximum number of slow calls whose step number in the run is kept.
MAX_STEPS = 1000


class _SlowCall(NamedTuple):
    step: int  # its number in the run
    inside: bool  # whether the step itself was slow
    kind: Hashable
    line: Frame | None


class RunPeriods:
    """The periods of one run. Only one thread may use it."""

    def __init__(self, run: RunHandle) -> None:
        self._run = run
        self._periods = Periods()
        self._causes: dict[Hashable, tuple[Cause, bool]] = {}  # kind -> (its newest cause, whether the step itself was slow)
        #: (first call, length) -> hits, is_active, its record.
        self._reported: dict[tuple[int, int], tuple[int, bool, Period]] = {}
        self._calls: dict[int, _SlowCall] = {}  # by the number of the call
        self._other_calls = 0  # number of earlier calls that are steps of another signature

    def add(self, stall: Stall, records: SlowRecords) -> None:
        kind = kind_of(stall)
        if kind == "gc" and place_of(stall.cause) in self._causes:
            kind = place_of(stall.cause)  # this code also causes other slow steps, so it makes the garbage
        others = [(kind_of(stall._replace(cause=other.cause)), other) for other in stall.others]
        others = [(other_kind, other) for other_kind, other in others if other_kind is not None]
        for each, cause in ((kind, stall.cause), *((other_kind, other.cause) for other_kind, other in others)):
            self._keep_cause(each, cause, stall.inside)
        self._other_calls = stall.call - stall.step
        self._calls[stall.call] = _SlowCall(stall.step, stall.inside, kind, stall.cause.frame)
        own_s = (stall.end_ns - stall.start_ns) * 1e-9 - sum(other.seconds for other in stall.others)
        self._periods.add(stall.call, own_s, kind, [(other.seconds, other_kind) for other_kind, other in others])
        self._report(records)

    def _keep_cause(self, kind: Hashable, cause: Cause, inside: bool) -> None:
        """Keep the newest cause of a kind."""
        if kind not in self._causes and len(self._causes) >= MAX_KINDS:
            self._causes.pop(next(iter(self._causes)))
        self._causes[kind] = (UNKNOWN if kind is None else cause, inside)

    def passed(self, steps: int, records: SlowRecords) -> None:
        """Report the number of steps that have ended. All slow steps among them must have been added."""
        self._periods.passed(steps + self._other_calls)
        self._report(records)

    def passed_before(self, waiting: list[int], records: SlowRecords) -> None:
        """Report that the steps before the first one in ``waiting`` have ended. Steps in it may be slow, and be added later."""
        self.passed(min([self._run.steps, *(step - 1 for step in waiting)]), records)

    def expected(self) -> list[tuple[RunHandle, int, int]]:
        """Return (run, first, last) of each range of steps in which a step itself, not the time before it, is expected to be
        slow."""
        expected = self._periods.expected(self._run.steps + self._other_calls, self._is_inside)
        return [(self._run, first - self._other_calls, last - self._other_calls) for first, last in expected]

    def _is_inside(self, kind: Hashable) -> bool:
        """Return whether the step itself is slow in a kind of slow steps.

        False for retraced calls: they have another signature, so a trace of this run's next step would not show them.
        """
        return kind != "retrace" and self._causes.get(kind, (UNKNOWN, False))[1]

    def _report(self, records: SlowRecords) -> None:
        """Record the periods that have changed since the last report, and those that became parts of other periods."""
        proven = {(period.first, period.length): period for period in self._periods.periods()}
        for key, period in proven.items():
            if self._reported.get(key, ())[:2] != (period.hits, period.is_active):
                self._reported[key] = period.hits, period.is_active, self._record(period)
                records.add(self._reported[key][2])
        for key in self._periods.merged:
            if key in self._reported and key not in proven:
                records.add(self._reported[key][2]._replace(occurrences=MERGED))
        self._periods.merged.clear()
        self._reported = {key: self._reported[key] for key in proven}
        for call in list(self._calls)[:-MAX_STEPS]:
            if all(call != first for first, _ in proven):
                del self._calls[call]

    def _are_inside(self, period: Proven) -> bool:
        """Return whether in most of a period's slow steps the step itself was slow."""
        sides = [call.inside for call in self._calls_of(period)]
        return 2 * sum(sides) > len(sides)

    def _commonest_line(self, period: Proven) -> Frame | None:
        """Return the line of most of a period's slow steps. A hook may have other lines at other steps."""
        lines = Counter(call.line for call in self._calls_of(period) if call.line and call.kind == period.kind)
        return lines.most_common(1)[0][0] if lines else None

    def _calls_of(self, period: Proven) -> list[_SlowCall]:
        return [call for number, call in self._calls.items() if number >= period.first and period.has(number)]

    def _number(self, call: int) -> int:
        """Return the step number of a call in the run."""
        return self._calls[call].step if call in self._calls else call - self._other_calls

    def _record(self, period: Proven) -> Period:
        cause, inside = self._causes.get(period.kind, (UNKNOWN, False))
        if period.kind is None:  # the slow steps have several kinds
            inside = self._are_inside(period)
        if cause.kind in HOOK_CAUSES:
            cause = cause._replace(frame=self._commonest_line(period))
        hits = period.hits if period.is_active else 0
        last = self._number(period.last)
        return Period(
            run=self._run,
            inside=inside,
            steps=period.length,
            occurrences=hits,
            median_s=period.median_s,
            cause=cause,
            last_step=last,
            last_call=period.last,
            next_step=last + period.length,
            first_step=self._number(period.first),
            tolerance=period.tolerance,
        )


def place_of(cause: Cause) -> Hashable:
    return (cause.frame.file, cause.frame.function) if cause.frame else ""


def kind_of(stall: Stall) -> Hashable:
    """Return the kind of a slow step. Lines may differ within a kind. None: not known."""
    cause = stall.cause
    if cause.kind in UNSPECIFIC_CAUSES:
        return None
    place = place_of(cause)
    if cause.kind in CODE_CAUSES and not place and not cause.name:
        return None
    name = cause.name if cause.kind in HOOK_CAUSES or cause.name == EPOCH_TURN else ""
    if cause.kind == "other_run":
        return cause.kind, cause.name.rpartition(": ")[0]  # its title
    if cause.kind in HOOK_CAUSES:
        return cause.kind, name  # without the line, which is not always known
    if cause.kind in CODE_CAUSES and not cause.name:
        return place  # the same code may run, wait, or read from a disk
    return cause.kind if cause.kind in OF_RUN else (cause.kind, name, place)
