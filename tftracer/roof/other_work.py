"""What else runs on the machine: a training that tftracer records, or anything that takes the processors' time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

#: A larger share of the processors that others took makes the rates doubtful.
TOLERATED = 0.05
_STAT = Path("/proc/stat")
_IDLE, _IOWAIT, _GUESTS = 3, 4, 8  # positions in the first line of /proc/stat; guests are counted as users already


@dataclass(frozen=True)
class Clock:
    """CPU seconds until now; None where the system does not tell."""

    busy_s: float | None  # of all processes, with what a hypervisor took
    whole_s: float
    own_s: float

    @classmethod
    def now(cls) -> Clock:
        own = os.times()
        own_s = own.user + own.system + own.children_user + own.children_system
        try:
            ticks = [int(field) for field in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:]]
            unit = os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError, AttributeError):
            return cls(None, 0.0, own_s)
        counted = sum(ticks[:_GUESTS])
        return cls((counted - ticks[_IDLE] - ticks[_IOWAIT]) / unit, counted / unit, own_s)


def others_share(before: Clock, after: Clock) -> float | None:
    """Of the processors' time between two moments, what others than this process took: 0..1. None: not known."""
    if before.busy_s is None or after.busy_s is None or after.whole_s <= before.whole_s:
        return None
    others = after.busy_s - before.busy_s - (after.own_s - before.own_s)
    return min(1.0, max(0.0, others / (after.whole_s - before.whole_s)))


def doubt_about(share: float | None) -> str:
    """ "" for no reason to doubt."""
    if share is None or share <= TOLERATED:
        return ""
    return f"Other programs used {share:.0%} of the processors while the machine was measured: its rates may be higher."
