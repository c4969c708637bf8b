"""What a profile says of memory: the allocations of those allocators that tell the profiler."""

from __future__ import annotations

import numpy as np

from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.profile_nodes import innermost, kind_table
from tftracer.trace.decode.xplane import Plane
from tftracer.trace.decode.xplane_stats import stats_of, texts
from tftracer.trace.model import Allocations

_ALLOCATED, _FREED = "MemoryAllocation", "MemoryDeallocation"
_STATS = ("allocator_name", "bytes_allocated", "allocation_bytes", "addr", "tf_op", "data_type")


def allocations_of(host: Plane, op_rows: Int64, op_nodes: Int64) -> Allocations:
    """``op_rows``: the host's events that are nodes (ascending), and their nodes."""
    which = kind_table(host, [*host.kinds(_ALLOCATED), *host.kinds(_FREED)])
    rows = np.flatnonzero(which)
    stats = stats_of(host, rows, _STATS)
    allocator, allocators = texts(stats["allocator_name"])
    op, ops = texts(stats["tf_op"])
    within = innermost(host, op_rows, rows)
    node = np.where(within >= 0, np.append(op_nodes, -1)[within], -1)
    order = np.argsort(host.events.start[rows], kind="stable")
    return Allocations(
        time=host.events.start[rows][order],
        is_freed=(which[rows] > len(host.kinds(_ALLOCATED)))[order],
        allocator=allocator[order],
        in_use=stats["bytes_allocated"].number[order],
        bytes=stats["allocation_bytes"].number[order],
        address=stats["addr"].number[order],
        op=op[order],
        dtype=stats["data_type"].number[order],
        node=node[order],
        allocators=allocators,
        ops=ops,
    )
