"""Reads a profile's devices: kernels and copies on a GPU's streams, joined to the host's calls that launched them.

Lines of a device that repeat its streams become repeating devices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from tftracer.trace.arrays.intervals import concatenated, positions_in
from tftracer.trace.arrays.strings import Hasher
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.correlation_ids import Launches
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.decode.hlo import Modules, hlo_kind
from tftracer.trace.decode.profile_nodes import Nodes, innermost
from tftracer.trace.decode.profile_steps import Step
from tftracer.trace.decode.xplane_reader import Plane
from tftracer.trace.decode.xplane_stats import Stat, alike, stats_of
from tftracer.trace.model import UNKNOWN_TIME, Device, DeviceKind

_STREAM = re.compile(r"Stream #(\d{1,9})(?:\((.*)\))?")
_SIZE = re.compile(r"(?:^|\s)size:(\d{1,15})\b")
#: Names of the line with the work of a device without streams (a TPU). The device's other lines repeat this work.
_WORK_LINES = ("XLA Ops", "TensorFlow Ops")
_STATS = ("tf_op", "annotation", "hlo_op", "hlo_module", "name", "memcpy_details", "kernel_details")


@dataclass
class DeviceNodes:
    """The kernels and copies whose launches are known, and these launches."""

    nodes: list[Int64] = field(default_factory=list)
    launches: list[Int64] = field(default_factory=list)  # the host's events

    def add(self, rows: Int64, nodes: Int64, joined: tuple[Int64, Int64]) -> None:
        """Add nodes. rows: their events, ascending. joined: (events of the device, the host's events that launched them)."""
        events, launches = joined
        position = positions_in(rows, events)
        self.nodes.append(nodes[position[position >= 0]])
        self.launches.append(launches[position >= 0])

    def columns(self, n: int, host: Plane | None, op_rows: Int64, op_nodes: Int64) -> tuple[Int64, Int64]:
        """Return, for each of n nodes, (the node that launched it or -1, when: on the profile's clock or UNKNOWN_TIME)."""
        launch, moment = np.full(n, -1, np.int64), np.full(n, UNKNOWN_TIME, np.int64)
        nodes, rows = concatenated(self.nodes), concatenated(self.launches)
        if host is not None and len(nodes):
            within = innermost(host, op_rows, rows)
            moment[nodes] = host.events.start[rows]
            launch[nodes[within >= 0]] = op_nodes[within[within >= 0]]
        return launch, moment


def add_device(
    nodes: Nodes, plane: Plane, launches: Launches, modules: Modules, step: Step | None, device_nodes: DeviceNodes
) -> None:
    """Add the nodes of a device, also to ``device_nodes``."""
    joined = launches.joined(plane)
    outside = _outside(plane, launches.host, joined, step)
    streams = [_STREAM.fullmatch(line.name) for line in plane.lines]
    work = None if any(streams) else next((name for name in _WORK_LINES if name in [line.name for line in plane.lines]), None)
    for line, stream in zip(plane.lines, streams):
        rows = np.arange(line.first, line.last)
        if len(rows):
            device = _stream(plane, stream) if stream else _other_line(plane, line.name, line.name == work)
            new = _add_work(nodes, plane, rows, nodes.device(device), modules, outside[rows])
            if not device.repeats:
                device_nodes.add(rows, new, joined)


def _outside(plane: Plane, host: Plane | None, joined: tuple[Int64, Int64], step: Step | None) -> Bool:
    """Return [events] whether each was launched before or after the step. If its launch is not known, its own times decide."""
    events = plane.events
    if step is None or host is None:
        return np.zeros(len(events), np.bool_)
    moment, until = events.start.copy(), events.end.copy()
    moment[joined[0]] = until[joined[0]] = host.events.start[joined[1]]
    return step.apart(moment, until)


def _stream(plane: Plane, stream: re.Match[str]) -> Device:
    detail = f"<{stream.group(2)}>" if stream.group(2) else ""
    return parse_device(f"{plane.name}/stream:{stream.group(1)}{detail}")


def _other_line(plane: Plane, name: str, is_work: bool) -> Device:
    unit = plane.name.rsplit("/device:", 1)[-1]
    kind = parse_device(plane.name).kind if is_work else DeviceKind.REPEAT
    return Device(f"{plane.name}/{name}", f"{unit} {name}", kind, parent=plane.name, repeats=not is_work)


def _add_work(nodes: Nodes, plane: Plane, rows: Int64, device: int, modules: Modules, outside: Bool) -> Int64:
    """Add the kernels and copies of one line. A node is named after its HLO op, else its launching op, else itself."""
    stats = stats_of(plane, rows, [*_STATS, "program_id"])
    hasher = Hasher.random()
    keys = [stats[name].keys(hasher) for name in _STATS]
    group, first = alike(plane.events.kind[rows].view(np.uint64), stats["program_id"].number.view(np.uint64), *keys)
    works = [_Work.of(plane, int(rows[row]), stats, row, modules) for row in first.tolist()]
    return nodes.add(
        plane,
        rows,
        device=device,
        name=nodes.names.each([work.name for work in works])[group],
        op=nodes.ops.each([work.op for work in works])[group],
        label=nodes.labels.each([work.label for work in works])[group],
        bytes=np.array([work.bytes for work in works], np.int64)[group],
        outside=outside,
    )


@dataclass
class _Work:
    """The node fields of a kernel or a copy, from its event's stats."""

    name: str
    op: str
    label: str
    bytes: int

    @classmethod
    def of(cls, plane: Plane, event: int, stats: dict[str, Stat], row: int, modules: Modules) -> _Work:
        tf_op, annotation, hlo_op, module, op_name, copy, details = (stats[name].text(row) for name in _STATS)
        kernel_or_copy = plane.kind_name(int(plane.events.kind[event]))
        size = _SIZE.search(copy)
        if hlo_op:
            program = int(stats["program_id"].number[row])
            name, op = modules.name_of(program, module, hlo_op, op_name), hlo_kind(hlo_op)
        else:
            name, op = _named(tf_op or annotation.split("#", 1)[0], kernel_or_copy)
        return cls(name, op, f"{kernel_or_copy} {copy or details}".strip(), int(size.group(1)) if size else 0)


def _named(tf_op: str, event_name: str) -> tuple[str, str]:
    """Return (node name, op type) of a kernel or copy. ``tf_op``: the name of the op that launched it, "" if not known."""
    if event_name.lower().startswith(("memcpy", "memset")):
        return (tf_op.rsplit(":", 1)[0] or event_name), event_name
    name, _, op = tf_op.rpartition(":")
    if name and op:
        return name, op
    name, _, op = event_name.rpartition(":")
    if name and op and "::" not in event_name:
        return name, op
    return event_name, re.split(r"[<(]", event_name, maxsplit=1)[0].removeprefix("void ")
