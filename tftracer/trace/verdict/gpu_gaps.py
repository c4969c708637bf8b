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
    span: Cover  # from its first kernel to the end of the last
    before: Int64  # the node that ends each gap
    starved: Int64  # it was not launched yet
    queued: Int64  # it was launched, and had not begun
    begin: Int64  # when each gap began

    @property
    def starving(self) -> Cover:
        return Cover.of(self.begin, self.begin + self.starved)


def gaps_of(trace: Trace, group: Group, is_step: bool) -> Gaps | None:
    """None without kernels, or times of launches. ``is_step``: the time before the GPU's first work counts, too."""
    there = physical_devices.members(trace, group) & physical_devices.on_stream(trace)
    kernels = np.flatnonzero(there & physical_devices.kernels(trace))
    if trace.launched_at is None or not (trace.launched_at[kernels] != UNKNOWN_TIME).any():
        return None
    span = Cover.span(int(trace.start[kernels].min()), int(trace.end[kernels].max()))
    work = np.flatnonzero(there if is_step else there & (trace.start >= span.start[0]) & (trace.start < span.end[0]))
    work = work[np.argsort(trace.start[work], kind="stable")]
    start, launched = trace.start[work], trace.launched_at[work]
    free = np.maximum.accumulate(np.concatenate([[0 if is_step else start[0]], trace.end[work][:-1]]))
    is_launched: Bool = (launched != UNKNOWN_TIME) & (start > free)
    free, start, launched, work_there = free[is_launched], start[is_launched], launched[is_launched], work[is_launched]
    ready = np.clip(launched, free, start)
    return Gaps(group, kernels, span, work_there, ready - free, start - ready, free)
