"""The traces of one step from the processes of a job, and the process on which each of their nodes ran. No side effects.

A Horovod rank's trace has only that rank's nodes. A worker's trace of a parameter-server step also has nodes of the servers,
timed by the servers' clocks. So each node has an *owner*: the process on which it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.job.analyses.clocks import Clock
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Int64
from tftracer.trace.model import Device, DeviceKind, NodeKind, Trace

#: The job in the device names of a process without a cluster.
NO_CLUSTER = ("", "localhost")


@dataclass(frozen=True)
class ProcessTrace:
    """One process's trace of the step."""

    process: str  # the hub's id of the process
    title: str  # "rank 0", "worker/1"
    trace: Trace
    findings: Sequence[Finding] = ()  # what the trace lacks


@dataclass(frozen=True)
class Owners:
    """The owners of all nodes of a step: the processes that recorded it, in the order of their traces, then those that only
    appear in traces (``ps/0``)."""

    titles: list[str]
    of_device: list[list[int]]  # [traces][devices]

    @classmethod
    def of(cls, traces: Sequence[ProcessTrace]) -> Owners:
        titles = [each.title for each in traces]
        index = {title: i for i, title in enumerate(titles)}
        of_device = []
        for each in traces:
            names = [_owner(device, each.title) for device in each.trace.devices]
            for name in names:
                if name not in index:
                    index[name] = len(titles)
                    titles.append(name)
            of_device.append([index[name] for name in names])
        return cls(titles, of_device)


def _owner(device: Device, recorder: str) -> str:
    """Return the process that a device belongs to.

    GPU streams have no job in their names: only their own process records them.
    """
    if device.job in NO_CLUSTER or device.kind in (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT):
        return recorder
    owner = f"{device.job}/{device.task}"
    return recorder if {owner, recorder} == {"master/0", "chief/0"} else owner


@dataclass(frozen=True)
class AlignedTrace:
    """The nodes of one process's trace on the reference clock: ns since the epoch, and each node's owner."""

    source: ProcessTrace
    start: Int64  # [n]
    end: Int64  # [n]
    owner: Int64  # [n]

    def since(self, origin_ns: int) -> tuple[Int64, Int64]:
        """Return [n] starts and ends relative to ``origin_ns``. Unknown times stay unknown."""
        trace = self.source.trace
        start, end = (
            np.where(trace.drawn, moved - origin_ns, own) for moved, own in ((self.start, trace.start), (self.end, trace.end))
        )
        return start, end


def origin_of(traces: Sequence[AlignedTrace]) -> int:
    """Return the earliest start of all nodes: time 0 of the merged trace."""
    starts = [each.start[each.source.trace.drawn & (each.source.trace.kind != NodeKind.OUTSIDE)] for each in traces]
    return min((int(start.min()) for start in starts if len(start)), default=traces[0].source.trace.origin_ns if traces else 0)


def owners_of_nodes(source: ProcessTrace, of_device: Sequence[int]) -> Int64:
    """Return [n] each node's owner."""
    return np.asarray(of_device, np.int64)[source.trace.device]


def align(traces: Sequence[ProcessTrace], owners: Owners, clocks: Sequence[Clock]) -> list[AlignedTrace]:
    """Convert every node's times to the reference clock. ``clocks``: [owners]."""
    return [_aligned(each, owners_of_nodes(each, owners.of_device[i]), clocks) for i, each in enumerate(traces)]


def _aligned(source: ProcessTrace, owner: Int64, clocks: Sequence[Clock]) -> AlignedTrace:
    start, end = source.trace.start + source.trace.origin_ns, source.trace.end + source.trace.origin_ns
    for owner_number in distinct(owner):
        nodes = owner == owner_number
        start[nodes] = clocks[owner_number].to_reference(start[nodes])
        end[nodes] = clocks[owner_number].to_reference(end[nodes])
    return AlignedTrace(source, start, np.maximum(start, end), owner)
