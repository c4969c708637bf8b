"""Decodes a profile (XSpace) of TensorFlow's or JAX's profiler into the columns of a ``Trace``.

Nodes are the ops of the host's threads, including eager and asynchronous ones; the stages of tf.data; ops that XLA runs on the
CPU; a GPU's kernels and copies. A host op that launches work on a GPU becomes a launch: a node of this GPU. Lines of a device
that repeat its streams become repeating devices. Work that does not belong to the step (``NodeKind.OUTSIDE``) is drawn but not
counted. Other events (executor turns, Python functions, allocations) are not nodes.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from tftracer.trace.arrays.intervals import is_in
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.correlation_ids import Launches
from tftracer.trace.decode.hlo import Modules
from tftracer.trace.decode.left_out_ops import leaves_out_cheap_ops, recorded_part
from tftracer.trace.decode.node_kinds import node_kinds
from tftracer.trace.decode.profile_details import ProfileDetails
from tftracer.trace.decode.profile_graph import graph_of_definitions, graph_of_partitions, names_of_ops
from tftracer.trace.decode.profile_host import TF_DATA, HostNodes, add_host
from tftracer.trace.decode.profile_kernels import DeviceNodes, add_device
from tftracer.trace.decode.profile_nodes import Nodes
from tftracer.trace.decode.profile_steps import Step, steps_of
from tftracer.trace.decode.valid_times import LATEST_NS, valid_times
from tftracer.trace.decode.xplane_reader import DEFINITIONS_PLANE, HOST, PARTITIONS_PLANE, Plane, Space, read_space
from tftracer.trace.device_peaks import Hardware
from tftracer.trace.model import OPS_LEFT_OUT, UNKNOWN_TIME, Content, NodeKind, Trace

#: Ops that wait for a tensor of another device of the same process; this is not communication.
RECEIVES = re.compile(r"_(Host)?Recv")
#: Maximum total length of the profiler's errors, and of its warnings.
_MAX_CHARACTERS = 2_000


def decode_xspace(raw: bytes, communication_ops: str = "") -> Trace:
    """Decode a serialized XSpace. Nodes are in the order of planes and lines, the host's first.

    Raises FormatError for invalid bytes.
    """
    space = read_space(raw)
    nodes, launches, modules = Nodes(), Launches.of(space), Modules(space)
    step = _only_step(space)
    host, device_nodes = HostNodes(), DeviceNodes()
    for plane in space.planes:
        if plane.name == HOST:
            names = partial(names_of_ops, space.plane(PARTITIONS_PLANE), space.plane(DEFINITIONS_PLANE))
            host = add_host(nodes, plane, step, launches.by_device(space), modules, names)
    for plane in space.planes:
        if plane.is_device:
            add_device(nodes, plane, launches, modules, step, device_nodes)
    trace, origin = _trace(raw, space, nodes, communication_ops, host, step is not None)
    _set_launches_and_edges(trace, origin, launches, device_nodes, host)
    _add_notes_and_graph(trace, space, step)
    trace.hardware = hardware_of(space)
    return trace


def _only_step(space: Space) -> Step | None:
    """Return the step of the profile; None if it marks no step, or several."""
    steps = steps_of(space)
    return steps[0] if len(steps) == 1 and steps[0].line >= 0 else None


def _trace(raw: bytes, space: Space, nodes: Nodes, communication_ops: str, host: HostNodes, has_step: bool) -> tuple[Trace, int]:
    """Return (the trace, the profile's time at the trace's time 0)."""
    start, end, outside = nodes.column("start"), nodes.column("end"), nodes.column("outside") != 0
    timed = valid_times(start, np.ones(len(start), np.bool_))
    if has_step:
        outside |= _beyond(nodes, start, end, outside, host)
    origin = _earliest(start[timed], ~outside[timed])
    start, end = np.where(timed, start - origin, UNKNOWN_TIME), np.where(timed, end - origin, UNKNOWN_TIME)
    n = len(start)
    devices = list(nodes.devices.values())
    names, ops = nodes.names.table(), nodes.ops.table()
    device, name, op, label = (nodes.column(key).astype(np.int32) for key in ("device", "name", "op", "label"))
    kind = node_kinds(devices, device, names, name, ops, op, communication_ops)
    stages = [code for code, one in enumerate(devices) if one.name == TF_DATA]
    kind[is_in(device, stages)] = NodeKind.INPUT
    kind[is_in(op, [code for code, text in enumerate(ops) if RECEIVES.fullmatch(text)]) & (kind != NodeKind.REPEAT)] = (
        NodeKind.SYNC
    )
    kind[outside & timed & (kind != NodeKind.REPEAT)] = NodeKind.OUTSIDE
    unknown = np.full(n, UNKNOWN_TIME, np.int64)
    trace = Trace(
        content=Content(raw),
        origin_ns=epoch_of(space) + origin,
        devices=devices,
        names=names,
        ops=ops,
        labels=nodes.labels.table(),
        device=device,
        name=name,
        op=op,
        label=label,
        kind=kind,
        start=start,
        end=end,
        op_start=unknown,
        op_end=unknown.copy(),
        scheduled=unknown.copy(),
        thread=nodes.column("thread"),
        offset=np.zeros(n, np.int64),
        size=np.zeros(n, np.int64),
        bytes_moved=nodes.column("bytes"),
        source="xspace",
        details=ProfileDetails(raw, nodes.column("plane").astype(np.int32), nodes.column("row"), origin),
    )
    if not timed.all():
        trace.notes.append("bad_times")
    return trace, origin


def _beyond(nodes: Nodes, start: Int64, end: Int64, outside: Bool, host: HostNodes) -> Bool:
    """Return [nodes] whether each is tf.data's work for later steps or other threads.

    Such work begins before the step's first op or ends after its last, and no op of the step waited for it.
    """
    input_device = [code for code, device in enumerate(nodes.devices.values()) if device.name == TF_DATA]
    is_input = is_in(nodes.column("device"), input_device)
    own = ~outside & ~is_input
    if not own.any() or not is_input.any():
        return np.zeros(len(start), np.bool_)
    beyond: Bool = is_input & ((start < start[own].min()) | (end > end[own].max()))
    for awaited, waiter in host.waits:
        beyond[awaited[own[waiter]]] = False
    return beyond


def _earliest(start: Int64, inside: np.ndarray) -> int:
    if not len(start):
        return 0
    return int(start[inside].min()) if inside.any() else int(start.min())


def _set_launches_and_edges(trace: Trace, origin: int, launches: Launches, device_nodes: DeviceNodes, host: HostNodes) -> None:
    """Set the launches of nodes, and the edges between stages of tf.data and the nodes that waited for them."""
    trace.launch, moment = device_nodes.columns(trace.n, launches.host, host.op_rows, host.op_nodes)
    trace.launched_at = np.where(moment == UNKNOWN_TIME, UNKNOWN_TIME, np.maximum(moment - origin, 0))
    if host.waits:
        trace.known_edges = tuple(np.concatenate([pair[side] for pair in host.waits]) for side in (0, 1))


def _add_notes_and_graph(trace: Trace, space: Space, step: Step | None) -> None:
    for code, messages in (("profiler_errors", space.errors), ("profiler_warnings", space.warnings)):
        if messages:
            trace.notes.append(f"{code}: {'; '.join(messages)[:_MAX_CHARACTERS]}")
    host = space.plane(HOST)
    if host is not None and leaves_out_cheap_ops(host):
        trace.notes.append(f"{OPS_LEFT_OUT}: {recorded_part(trace, space, step, trace.origin_ns - epoch_of(space))}")
    definitions, partitions = space.plane(DEFINITIONS_PLANE), space.plane(PARTITIONS_PLANE)
    if partitions is not None:
        trace.load_graph, trace.has_definitions = lambda: graph_of_partitions(partitions, trace), False
    elif definitions is not None:
        trace.load_graph, trace.has_definitions = lambda: graph_of_definitions(definitions, trace), True


def epoch_of(space: Space) -> int:
    """Return the epoch ns at which the profile's clock is 0; 0 if its times are epoch times, or if it is not known."""
    environment = space.plane("Task Environment")
    profile_start = environment.stats.get("profile_start_time", 0) if environment else 0
    return profile_start if isinstance(profile_start, int) and 0 <= profile_start <= LATEST_NS else 0


def hardware_of(space: Space) -> dict[str, Hardware]:
    """Return the known hardware by plane name, which is the ``parent`` of a device's streams."""
    known = {plane.name: _hardware(plane) for plane in space.planes if plane.is_device}
    return {name: hardware for name, hardware in known.items() if hardware != Hardware()}


def _hardware(plane: Plane) -> Hardware:
    major, minor = (plane.stats.get(f"compute_cap_{part}") for part in ("major", "minor"))
    capability = f"{major}.{minor or 0}" if isinstance(major, int) and 0 < major < 100 else ""
    return Hardware(
        vendor=str(plane.stats.get("device_vendor", ""))[:50],
        compute_capability=capability,
        multiprocessors=int(_within(plane, "core_count", 1, 1e5) or 0) or None,
        clock_hz=_within(plane, "clock_rate", 1e5, 1e7, 1e3),
        bytes_per_s=_within(plane, "memory_bandwidth", 1e8, 1e15),
    )


def _within(plane: Plane, name: str, minimum: float, maximum: float, unit: float = 1.0) -> float | None:
    """Return a stat of a plane; None if it is missing or implausible."""
    value = plane.stats.get(name)
    return value * unit if isinstance(value, (int, float)) and minimum <= value <= maximum else None
