"""Stalls that come at equal distances: "every 97th step". Found at the third, and the next one told ahead.

They are of one run, all inside its steps or all between them, with the same hook or function where one is known. A period goes on
when one of its stalls had another cause, or one that is not known.

Sampling each tenth step, or the steps after a slow one, met next to none of those in recorded trainings; the steps told ahead
were slow 12 times of 15. Pure: no clocks, no threads.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import cast

from tftracer.session.recorded_steps import RunHandle
from tftracer.slow.recorded import Cause, Period, Stall, WatchedRun

#: Distances between stalls may differ by this part of them: at the third stall, and later.
FIRST_TOLERANCE, TOLERANCE = 0.01, 0.02
#: Shorter periods are none: such steps are just uneven.
SHORTEST = 4
#: Stalls that are remembered of one kind; kinds of one session.
REMEMBERED, MAX_KINDS = 6, 64


@dataclass(eq=False)
class _Kind:
    """Stalls of one run with one cause."""

    steps: deque[int] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    occurrences: int = 0
    period: int = 0  # 0: none
    tolerance: int = 0
    cause: Cause | None = None
    stood_in: bool = False  # the last that fitted was of another cause
    is_late: bool = False  # the next did not come, when that was looked at last

    def is_due(self, step: int) -> bool:
        return self.period > 0 and abs(step - self.steps[-1] - self.period) <= self.tolerance


@dataclass(frozen=True)
class Expected:
    """Steps that one slow step is expected among."""

    run: RunHandle
    first: int
    last: int


class StallPeriods:
    """Used by one thread at a time."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[WatchedRun, bool, object], _Kind] = {}

    def add(self, stall: Stall) -> Period | None:
        """Count a stall. The period that it is part of; one with no occurrences takes an earlier one back."""
        key = (stall.run, stall.inside, _kind_of(stall.cause))
        if key not in self._kinds and len(self._kinds) >= MAX_KINDS:
            self._kinds.pop(next(iter(self._kinds)))
        kind = self._kinds.setdefault(key, _Kind())
        if kind.steps and stall.step <= kind.steps[-1]:
            return None
        kind.cause, kind.stood_in = stall.cause, False
        return self._count(stall, kind) or self._stand_in(stall, kind)

    def _stand_in(self, stall: Stall, own: _Kind) -> Period | None:
        """The period that a stall of another cause, or of an unknown one, was due of. Two of them in a row end it."""
        for (run, inside, _), kind in self._kinds.items():
            if kind is not own and (run, inside) == (stall.run, stall.inside) and kind.is_due(stall.step) and not kind.stood_in:
                kind.stood_in = True
                return self._count(stall, kind)
        return None

    def _count(self, stall: Stall, kind: _Kind) -> Period | None:
        kind.steps.append(stall.step)
        kind.seconds.append((stall.end_ns - stall.start_ns) * 1e-9)
        kind.is_late = False
        return self._update(stall.run, stall.inside, kind)

    @property
    def has_any(self) -> bool:
        return any(kind.period for kind in self._kinds.values())

    def missed(self) -> list[Period]:
        """Periods whose next stall did not come: each is taken back, once.

        At the second call that misses it: a stall that has just been counted may not have been added yet.
        """
        over = []
        for (run, inside, _), kind in self._kinds.items():
            is_late = kind.period > 0 and run.steps > kind.steps[-1] + kind.period + kind.tolerance + 1
            if is_late and kind.is_late:
                over.append(self._over(run, inside, kind))
            kind.is_late = is_late
        return over

    def expected(self) -> list[Expected]:
        """The steps where the next stalls inside steps are expected."""
        return [
            Expected(cast(RunHandle, run), next_step - kind.tolerance, next_step + kind.tolerance)
            for (run, inside, _), kind in self._kinds.items()
            if kind.period and inside and (next_step := kind.steps[-1] + kind.period) + kind.tolerance > run.steps
        ]

    def _update(self, run: WatchedRun, inside: bool, kind: _Kind) -> Period | None:
        steps = list(kind.steps)
        distances = [later - earlier for earlier, later in zip(steps, steps[1:])]
        if len(distances) < 2:
            return None
        length = round(median(distances))
        tolerance = max(1, round((FIRST_TOLERANCE if len(distances) == 2 else TOLERANCE) * length))
        fitting = [distance for distance in distances if abs(distance - length) <= tolerance]
        if length < SHORTEST or len(fitting) < max(2, len(distances) - 1) or distances[-1] not in fitting:
            return self._over(run, inside, kind) if kind.period else None
        kind.occurrences = kind.occurrences + 1 if kind.period else len(fitting) + 1
        kind.period = length
        kind.tolerance = max(abs(distance - length) for distance in fitting)
        return self._period(run, inside, kind)

    def _over(self, run: WatchedRun, inside: bool, kind: _Kind) -> Period:
        period = self._period(run, inside, kind)._replace(occurrences=0)
        kind.period = kind.occurrences = 0
        for _ in range(len(kind.steps) - 1):
            kind.steps.popleft()
        return period

    def _period(self, run: WatchedRun, inside: bool, kind: _Kind) -> Period:
        assert kind.cause is not None
        last = kind.steps[-1]
        return Period(run, inside, kind.period, kind.occurrences, median(kind.seconds), kind.cause, last, last + kind.period)


def _kind_of(cause: Cause) -> object:
    """What stalls of one kind share. Their line may differ from one to the next."""
    if cause.kind == "gc":  # which strikes any line, or holds the GIL for so long that none is seen
        return cause.kind
    place = (cause.frame.file, cause.frame.function) if cause.frame else None
    return (cause.name, place) if cause.kind in ("hook", "callback") else place
