"""The host's calls in a profile that put work on a device: kernels and copies carry their correlation id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.decode.xplane import HOST, Plane, Space, stats_of


@dataclass
class Launches:
    """The host's calls that put work on a device, by the correlation id that the work carries, too."""

    rows: Int64  # events of the host's plane, ascending
    correlation: Int64  # [rows]
    device: dict[int, str]  # correlation id -> plane on which the work ran

    @classmethod
    def of(cls, space: Space) -> Launches:
        host = space.plane(HOST)
        if host is None or "correlation_id" not in host.stat_names.values():
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), {})
        stat = stats_of(host, np.arange(len(host.events.start)), ["correlation_id"])["correlation_id"]
        device: dict[int, str] = {}
        for plane in space.planes:
            if plane.name.startswith("/device:"):
                stats = stats_of(plane, np.arange(len(plane.events.start)), ["correlation_id"])["correlation_id"]
                device.update(dict.fromkeys(stats.number[stats.has].tolist(), plane.name))
        rows = np.flatnonzero(stat.has)
        return cls(rows, stat.number[rows], device)

    def times(self, host: Plane) -> dict[int, int]:
        """Correlation id -> when the host made the call."""
        return dict(zip(self.correlation.tolist(), host.events.start[self.rows].tolist()))

    def ops_of_devices(self, host: Plane, ops: Int64) -> Iterable[tuple[str, Int64]]:
        """(device, which of ``ops`` launched work on it): a launch lies within its op, on the same thread."""
        if not len(self.rows) or not len(ops):
            return
        events = host.events
        order = ops[np.lexsort((events.start[ops], events.line[ops]))]
        place = np.searchsorted(ops, order)
        at = _last_before(events.line[order], events.start[order], events.line[self.rows], events.start[self.rows])
        inside = at >= 0
        inside[inside] = (events.start + events.duration)[order[at[inside]]] >= events.start[self.rows[inside]]
        names = np.array([self.device.get(number, "") for number in self.correlation.tolist()])
        for name in dict.fromkeys(names[inside].tolist()):
            if name:
                yield name, place[np.unique(at[inside & (names == name)])]


def _last_before(line: Int32, start: Int64, of_line: Int32, at: Int64) -> Int64:
    """For each moment the last of the sorted (line, start) that began on its line before it, -1 where there is none."""
    low = int(min(start.min(), at.min()))
    stride = int(max(start.max(), at.max())) - low + 1
    key = line.astype(np.int64) * stride + (start - low)
    found = np.searchsorted(key, of_line.astype(np.int64) * stride + (at - low), "right") - 1
    return np.where((found >= 0) & (line[found] == of_line), found, -1)
