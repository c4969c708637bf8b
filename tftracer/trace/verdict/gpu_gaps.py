"""Gaps between the kernels and copies of a GPU, split by cause: the next work was not launched yet, or was already launched.

Profiles record the launch times (``Trace.launched_at``). A gap before work without a recorded launch is left out.
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
    """The gaps of one GPU, in order of time. ``starved`` and ``queued`` are the two parts of each gap."""

    group: Group
    kernels: Int64  # the kernels of the GPU
    span: Cover  # from its first kernel to the end of the last
    next_node: Int64  # the node that ends each gap
    starved: Int64  # ns from the beginning of the gap to the launch of the node; 0 if it was launched before
    queued: Int64  # ns of the rest of the gap, in which the node is launched but does not run yet
    begin: Int64  # beginning of each gap

    @property
    def starving(self) -> Cover:
        return Cover.of(self.begin, self.begin + self.starved)


def gaps_of(trace: Trace, group: Group, counts_time_before: bool) -> Gaps | None:
    """Find the gaps; None without kernels or without launch times.

    ``counts_time_before``: whether the time before the GPU's first work counts as a gap, too.
    """
    on_gpu = physical_devices.members(trace, group) & physical_devices.on_stream(trace)
    kernels = np.flatnonzero(on_gpu & physical_devices.kernels(trace))
    if trace.launched_at is None or not (trace.launched_at[kernels] != UNKNOWN_TIME).any():
        return None
    span = Cover.span(int(trace.start[kernels].min()), int(trace.end[kernels].max()))
    work = np.flatnonzero(on_gpu if counts_time_before else on_gpu & (trace.start >= span.start[0]) & (trace.start < span.end[0]))
    work = work[np.argsort(trace.start[work], kind="stable")]
    start, launched = trace.start[work], trace.launched_at[work]
    # When the GPU became idle before each piece of work.
    free = np.maximum.accumulate(np.concatenate([[0 if counts_time_before else start[0]], trace.end[work][:-1]]))
    ends_gap: Bool = (launched != UNKNOWN_TIME) & (start > free)
    free, start, launched, next_node = free[ends_gap], start[ends_gap], launched[ends_gap], work[ends_gap]
    ready = np.clip(launched, free, start)
    return Gaps(group, kernels, span, next_node, ready - free, start - ready, free)
