"""Finds the valid times of a trace. A time that is far from the trace's other times is invalid."""

from __future__ import annotations

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64

#: The longest valid duration (104 days). A double represents every ns below it, and sums of hundreds of them fit into int64.
MAX_NS = 1 << 53
#: The latest valid time (the year 2043 in ns since the epoch). Twice this fits into int64.
LATEST_NS = 1 << 61


def valid_times(times: Int64, known: Bool) -> Bool:
    """Return [n] whether each time is known and, if known times span more than MAX_NS, within MAX_NS / 2 of their median."""
    of_known = times[known]
    if not len(of_known) or float(of_known.max()) - float(of_known.min()) <= MAX_NS:
        return known
    plausible = known & (times >= 0) & (times <= LATEST_NS)
    middle = int(np.median(times[plausible])) if plausible.any() else 0
    return plausible & (np.abs(times - middle) <= MAX_NS // 2)
