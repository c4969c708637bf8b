"""Reads the ops that XLA runs on a profile's host: events that have an HLO op and launch nothing. In the trace each HLO
module has a device (a lane) of its own."""

from __future__ import annotations

import numpy as np

from tftracer.trace.arrays.intervals import is_in
from tftracer.trace.arrays.strings import Hasher
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.hlo import Modules, hlo_kind
from tftracer.trace.decode.profile_nodes import Nodes
from tftracer.trace.decode.profile_threads import Owners
from tftracer.trace.decode.xplane_reader import HOST, Plane
from tftracer.trace.decode.xplane_stats import alike, having, stats_of
from tftracer.trace.model import Device, DeviceKind

XLA_HOST = "/host:CPU/XLA"
#: At most this many modules have a device of their own; the others share one. A process that compiles again and again has many.
MAX_MODULES = 32


def add_host_xla(nodes: Nodes, plane: Plane, plane_index: int, owners: Owners, modules: Modules, launches: Int64) -> None:
    """Add the nodes of the ops that XLA runs on the host.

    ``launches``: the host's events that launch work on a device, even if the profile does not have that work.
    """
    rows = having(plane, "hlo_op")[0]
    rows = rows[~is_in(rows, launches)]
    if not len(rows):
        return
    stats, hasher = stats_of(plane, rows, ["hlo_op", "hlo_module", "program_id"]), Hasher.random()
    hlo_op, module, program = (stats[name] for name in ("hlo_op", "hlo_module", "program_id"))
    group, first = alike(hlo_op.keys(hasher), module.keys(hasher), program.number.view(np.uint64))
    ops = [(hlo_op.text(row), module.text(row), int(program.number[row])) for row in first.tolist()]
    nodes.add(
        plane,
        plane_index,
        rows,
        device=_devices(nodes, [name for _, name, _ in ops])[group],
        name=nodes.names.each([modules.name_of(number, name, op) for op, name, number in ops])[group],
        op=nodes.ops.each([hlo_kind(op) for op, _, _ in ops])[group],
        outside=owners.apart(rows),
    )


def _devices(nodes: Nodes, modules: list[str]) -> Int64:
    """Return [modules] the code of each module's device."""
    own = list(dict.fromkeys(modules))[:MAX_MODULES]
    codes = {name: nodes.device(_device(name)) for name in own}
    return np.array([codes[name] if name in codes else nodes.device(_device("")) for name in modules], np.int64)


def _device(module: str) -> Device:
    name = f"{XLA_HOST}/{module}" if module else XLA_HOST
    return Device(name, f"CPU XLA {module}".strip(), DeviceKind.CPU, parent=HOST)
