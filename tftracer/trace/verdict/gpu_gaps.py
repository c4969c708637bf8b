"""When a GPU runs nothing between its kernels and copies: because the host had not launched the next yet, or though it had.

Profiles tell when each was launched (``Trace.launched_at``). Nothing is known of gaps before work whose launch is not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.model import UNKNOWN_TIME, Trace


@dataclass(frozen=True)
class Gaps:
    """The gaps of one GPU. ``starved[i]`` and ``queued[i]``: ns of the gap before ``before[i]``, in the order of time."""

    group: Group
    kernels: Int64  # the kernels of the GPU
    span: Cover  # from its first kernel or copy to the end of the last
    before: Int64  # the node that ends each gap
    starved: Int64  # it was not launched yet
    queued: Int64  # it was launched, and had not begun
    begin: Int64  # when each gap began

    @property
    def starving(self) -> Cover:
        return Cover.of(self.begin, self.begin + self.starved)


def gaps_of(trace: Trace, group: Group, since: int | None) -> Gaps | None:
    """``since``: the step's beginning, if the time before the GPU's first work counts, too. None without times of launches."""
    work = np.flatnonzero(physical_devices.members(trace, group) & physical_devices.on_stream(trace))
    if trace.launched_at is None or not len(work) or not (trace.launched_at[work] != UNKNOWN_TIME).any():
        return None
    work = work[np.argsort(trace.start[work], kind="stable")]
    start, launched = trace.start[work], trace.launched_at[work]
    free = np.maximum.accumulate(np.concatenate([[start[0] if since is None else since], trace.end[work][:-1]]))
    known: Bool = (launched != UNKNOWN_TIME) & (start > free)
    free, start, launched, work_there = free[known], start[known], launched[known], work[known]
    ready = np.clip(launched, free, start)
    return Gaps(
        group,
        np.flatnonzero(physical_devices.members(trace, group) & physical_devices.kernels(trace)),
        Cover.span(int(trace.start[work].min()), int(trace.end[work].max())),
        work_there,
        ready - free,
        start - ready,
        free,
    )
