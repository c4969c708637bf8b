"""The usual time of a series of durations. A duration is slow if it exceeds ``factor`` times the median, and the median by more
than 20 ms."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

#: The median is taken of the RECENT newest times, again after every REFRESH times. The first WARM_UP times are never slow.
RECENT, REFRESH, WARM_UP = 201, 16, 20
#: A slow time exceeds the median by more than this.
MIN_EXCESS_NS = 20_000_000
#: After CHANGE slow times in a row, the usual time may have changed: the median starts again. Until the new median is known, the
#: second shortest of them (index SHORTER) sets the limit.
CHANGE, SHORTER = 5, 1
NEVER = 1 << 62  # a median or limit that is not known yet


@dataclass
class Change:
    """A possible change of the usual time, after several slow times in a row.

    If most times since then are as short as before, nothing has changed. The slow times in the row also count: otherwise two
    alternating phases would look like no change.
    """

    limit_ns: int  # the limit before the change
    as_before_ns: int  # times up to this are as short as before
    times: int = CHANGE  # number of times: the slow times in the row, and all later ones
    as_before: int = 0  # how many of these times are as short as before


class UsualTime:
    """The median of recent times, in nanoseconds."""

    def __init__(self, factor: float) -> None:
        self.median_ns = NEVER
        self.limit_ns = NEVER
        self._factor = factor
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._until_refresh = WARM_UP
        self._in_a_row: list[int] = []  # the slow times in a row
        self._change: Change | None = None  # a change that is not certain yet

    @property
    def has_restarted(self) -> bool:
        """Whether no time was added since the median was started again."""
        return not self._recent

    @property
    def lowest_limit_ns(self) -> int:
        """The limit; while a change is not certain, the limit before it."""
        change = self._change  # read once, because the watch's thread also reads it
        return change.limit_ns if change else self.limit_ns

    @property
    def is_certain(self) -> bool:
        return self._change is None

    def add(self, ns: int) -> None:
        """Add a time to those of which the median is taken."""
        self._recent.append(ns)
        self._until_refresh -= 1
        if self._until_refresh <= 0:
            self._until_refresh = REFRESH
            self.median_ns = sorted(self._recent)[len(self._recent) // 2]
            self.limit_ns = self._limit_of(self.median_ns)

    def restart(self) -> None:
        """Start a new median; the old median stays until the new one is known."""
        self._recent.clear()
        self._until_refresh = WARM_UP

    def _limit_of(self, usual_ns: int) -> int:
        return max(int(self._factor * usual_ns), usual_ns + MIN_EXCESS_NS)

    def judge(self, ns: int, allowed_ns: int = 0) -> bool:
        """Return whether a time that may be ``allowed_ns`` longer than others is slow. Only ``add`` adds it to the median.

        After CHANGE slow times in a row, the median starts again. Until the new median is known, a short one of them sets the
        limit, because long ones may be exceptions.
        """
        if ns <= self.limit_ns + allowed_ns:
            self._in_a_row.clear()
            return False
        self._in_a_row.append(ns)
        if len(self._in_a_row) >= CHANGE:
            shorter_ns = sorted(self._in_a_row)[SHORTER]
            as_before_ns = min(self.limit_ns, (self.median_ns + shorter_ns) // 2)
            self._change = self._change or Change(self.limit_ns, as_before_ns)
            self.restart()
            self.limit_ns = self._limit_of(shorter_ns)
            self._in_a_row.clear()
        return True

    def judge_change(self, ns: int, allowed_ns: int = 0) -> bool:
        """Count a time after a change that is not certain. Return whether the times show that the usual time has not changed;
        then restore the earlier limit."""
        change = self._change
        if change is None:
            return False
        change.times += 1
        change.as_before += ns <= change.as_before_ns + allowed_ns
        is_unchanged = 2 * change.as_before > change.times
        if is_unchanged:
            self.limit_ns = change.limit_ns
        if is_unchanged or change.times >= WARM_UP + CHANGE:
            self._change = None
        return is_unchanged
