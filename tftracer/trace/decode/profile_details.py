"""Everything that a profile says about one node: its event's stats, and its HLO op's text. Read from the bytes on request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.decode.hlo import Modules
from tftracer.trace.decode.profile_graph import partition_graphs
from tftracer.trace.decode.profile_nodes import innermost, kind_table
from tftracer.trace.decode.profile_tensors import calls_of
from tftracer.trace.decode.wire import LEN, fields
from tftracer.trace.decode.xplane_reader import (
    EVENT_STATS,
    HOST,
    PARTITIONS_PLANE,
    Plane,
    Space,
    plane_messages,
    read_space,
    value_of,
)
from tftracer.trace.decode.xplane_stats import stats_of, texts
from tftracer.trace.model import Allocations, Calls

#: Stats with several values in one text: ``regs:32 static_shared:0 grid:16,1,1 block:512,1,1 occ_pct:100``.
_PACKED = ("kernel_details", "memcpy_details")
_PART = re.compile(r"\b(\w+):(\S*)")
_PROGRAM = re.compile("[0-9]{1,20}")
_DISPLAY_NAMES = {
    "regs": "registers a thread",
    "registers_per_thread": "registers a thread",
    "static_shared": "static shared memory, bytes",
    "static_shared_memory_usage": "static shared memory, bytes",
    "dynamic_shared": "dynamic shared memory, bytes",
    "dynamic_shared_memory_usage": "dynamic shared memory, bytes",
    "shm": "shared memory, bytes",
    "group_mem": "shared memory, bytes",
    "private_mem": "private memory, bytes",
    "occ_pct": "occupancy, %",
    "size": "bytes",
    "dest": "destination",
    "async": "asynchronous",
}
#: Stats that are not shown: ids by which the profiler joins events, and values that the node already has.
_HIDDEN = frozenset(("_c", "_ct", "_p", "_pt", "_r", "device_ordinal", "run_id"))
MAX_TEXT = 2_000


@dataclass
class ProfileDetails:
    """Reads details of nodes.

    ``plane``, ``row``: for each node the index of its event's plane, and of the event in this plane.
    """

    raw: bytes
    plane: Int32
    row: Int64
    origin: int  # the profile's clock at time 0 of the trace

    @cached_property
    def _space(self) -> Space:
        return read_space(self.raw)

    @cached_property
    def _modules(self) -> Modules:
        return Modules(self._space)

    def facts(self, node: int) -> list[tuple[str, str]]:
        """Return (name, value) of the stats of a node's event."""
        return [fact for name, text in self._stats(node).items() for fact in _named_values(name, text)]

    def hlo(self, node: int) -> str:
        """Return the text of the HLO op that a node ran; "" if it ran none."""
        stats = self._stats(node)
        program = stats.get("program_id", "")
        module = self._modules.module(int(program) if _PROGRAM.fullmatch(program) else -1, stats.get("hlo_module", ""))
        return module.text(stats.get("hlo_op", "")) if module is not None else ""

    def allocations(self) -> Allocations | None:
        """Return all allocations in the profile; None if it has no host plane."""
        host = self._space.plane(HOST)
        if host is None:
            return None
        nodes = np.flatnonzero(self.plane == host.index)
        by_row = nodes[np.argsort(self.row[nodes], kind="stable")]
        return allocations_of(host, self.row[by_row], by_row)

    def calls(self) -> Calls:
        return calls_of(self._space, self._modules, self.plane, self.row)

    def graphs(self) -> list[Any]:
        plane = self._space.plane(PARTITIONS_PLANE)
        return [] if plane is None else partition_graphs(plane)

    def _stats(self, node: int) -> dict[str, str]:
        plane, row = self._space.planes[int(self.plane[node])], int(self.row[node])
        events = plane.events
        kind = plane.stats_of_kind(int(events.kind[row])) if int(events.kind[row]) in plane.metadata else {}
        stats = {name: str(value) for name, value in kind.items()}
        raw = events.raw[int(events.stats[row]) : int(events.end_byte[row])]
        for field in fields(raw, 0, len(raw)):
            if field.number == EVENT_STATS and field.wire == LEN:
                stat = plane_messages()["Stat"].FromString(raw[field.offset : field.offset + field.size])
                stats[plane.stat_names.get(stat.metadata_id, "")] = str(value_of(stat, plane.stat_names))[:MAX_TEXT]
        return stats


def _named_values(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name in _PACKED:
        for key, value in _PART.findall(text):
            yield _DISPLAY_NAMES.get(key, key.replace("_", " ")), value
    elif name and name not in _HIDDEN:
        yield name.replace("_", " "), text


_ALLOCATED, _FREED = "MemoryAllocation", "MemoryDeallocation"
_STATS = ("allocator_name", "bytes_allocated", "allocation_bytes", "addr", "tf_op", "data_type")


def allocations_of(host: Plane, op_rows: Int64, op_nodes: Int64) -> Allocations:
    """Read the host's allocations. ``op_rows``, ``op_nodes``: the host's events that are nodes (ascending), and these nodes."""
    kind = kind_table(host, [*host.kinds(_ALLOCATED), *host.kinds(_FREED)])
    rows = np.flatnonzero(kind)
    stats = stats_of(host, rows, _STATS)
    allocator, allocators = texts(stats["allocator_name"])
    op, ops = texts(stats["tf_op"])
    within = innermost(host, op_rows, rows)
    node = np.where(within >= 0, np.append(op_nodes, -1)[within], -1)
    order = np.argsort(host.events.start[rows], kind="stable")
    return Allocations(
        time=host.events.start[rows][order],
        is_freed=(kind[rows] > len(host.kinds(_ALLOCATED)))[order],
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
