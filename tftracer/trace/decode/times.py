"""Which times of a file make sense. What lies far from the other times of its trace was not measured with them."""

from __future__ import annotations

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64

#: Nothing takes longer (104 days), and doubles hold as many ns exactly. Sums of some hundred fit an int64, too.
MAX_NS = 1 << 53
#: No clock stands later (the year 2043 in ns since the epoch). Twice as much fits an int64.
LATEST_NS = 1 << 61


def together(times: Int64, known: Bool) -> Bool:
    """[n] which of the known times lie within MAX_NS of each other: those around their median."""
    of_known = times[known]
    if not len(of_known) or float(of_known.max()) - float(of_known.min()) <= MAX_NS:
        return known
    plausible = known & (times >= 0) & (times <= LATEST_NS)
    middle = int(np.median(times[plausible])) if plausible.any() else 0
    near: Bool = plausible & (np.abs(times - middle) <= MAX_NS // 2)
    return near
