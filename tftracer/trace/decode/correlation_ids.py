"""Finds the host's call that launched each kernel or copy: both have the same correlation id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.intervals import positions_in
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.xplane_reader import HOST, Plane, Space
from tftracer.trace.decode.xplane_stats import having


@dataclass
class Launches:
    """The host's calls that launched work on a device."""

    host: Plane | None
    rows: Int64  # events of the host's plane, sorted by correlation id
    correlation: Int64  # their ids, ascending
    of_plane: dict[int, tuple[Int64, Int64]]  # index of a device's plane -> (its launched events, the host's events)

    @classmethod
    def of(cls, space: Space) -> Launches:
        host = space.plane(HOST)
        rows, stat = having(host, "correlation_id") if host else (np.zeros(0, np.int64), None)
        correlation = stat.number if stat else rows
        order = np.argsort(correlation, kind="stable")
        launches = cls(host, rows[order], correlation[order], {})
        for plane in space.planes:
            if plane.is_device and len(rows):
                launches.of_plane[plane.index] = launches._launched_on(plane)
        return launches

    def _launched_on(self, plane: Plane) -> tuple[Int64, Int64]:
        rows, stat = having(plane, "correlation_id")
        position = positions_in(self.correlation, stat.number)
        return rows[position >= 0], self.rows[position[position >= 0]]

    def joined(self, plane: Plane) -> tuple[Int64, Int64]:
        """Return (launched events of the device's plane, the host's events that launched them)."""
        none = np.zeros(0, np.int64)
        return self.of_plane.get(plane.index, (none, none))

    def by_device(self, space: Space) -> list[tuple[str, Int64]]:
        """Return (device name, the host's events that launched work on it)."""
        return [(space.planes[index].name, launches) for index, (_, launches) in self.of_plane.items() if len(launches)]
