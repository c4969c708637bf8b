"""A profile (XSpace) into the columns of a ``Trace``: what TensorFlow's and JAX's profiler record of any step, compiled or not.

Nodes are the ops of the host's threads, eager ones too; the stages of tf.data and the ops of its functions; what XLA runs on the
CPU; a GPU's kernels and copies. Ops that put work on a GPU are launches on that GPU. Lines of a device that say again what its
streams hold become repeating devices. All else (executor turns, Python functions, allocations) is the profiler's account of
these, and no node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from google.protobuf.message import DecodeError

from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.decode.function_graph import inlined, without_numbers
from tftracer.trace.decode.launches import Launches
from tftracer.trace.decode.node_kinds import node_kinds
from tftracer.trace.decode.xplane import GRAPH_PLANE, HOST, Plane, Space, read_space, stats_of
from tftracer.trace.model import UNKNOWN_TIME, Device, DeviceKind, NodeKind, Trace

TF_DATA = "/host:CPU/tf.data"
XLA_HOST = "/host:CPU/XLA"
_TF_DATA_DEVICE = Device(TF_DATA, "tf.data", DeviceKind.CPU, parent=HOST)
_STREAM = re.compile(r"Stream #(\d+)(?:\((.*)\))?")
_EAGER = "EagerLocalExecute: "
_STAGE = "Iterator::"
_TF_DATA_THREADS = "tf_data_private_threadpool"  # they run the functions of map, filter and the like: none of the step's own ops
_FUNCTION = ("__inference_", "__forward_", "__backward_")  # calls of compiled functions: their ops are nodes of their own
_EXECUTOR, _SCHEDULING = b"ExecutorState::Process", (b"ExecutorState::ScheduleReady", b"ExecutorState::Process Scheduled")
_SIZE = re.compile(r"(?:^|\s)size:(\d+)")
_NUMBERED = re.compile(r"\.\d+$")
#: On a device without streams (a TPU), the line that holds its work; the others repeat it.
_WORK_LINES = ("XLA Ops", "TensorFlow Ops")
#: Characters of the profiler's own messages that are kept.
_MAX_MESSAGES = 2_000


@dataclass
class _Codes:
    """Strings, numbered in the order in which they come."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))

    def table(self) -> StringTable:
        return StringTable.of(list(self.codes))


@dataclass
class _Nodes:
    """The columns as they grow, part by part."""

    devices: dict[str, Device] = field(default_factory=dict)
    names: _Codes = field(default_factory=_Codes)
    ops: _Codes = field(default_factory=_Codes)
    labels: _Codes = field(default_factory=_Codes)
    parts: list[dict[str, Int64]] = field(default_factory=list)

    def device(self, device: Device) -> int:
        self.devices.setdefault(device.name, device)
        return list(self.devices).index(device.name)

    def add(self, plane: Plane, rows: Int64, **columns: Int64) -> None:
        """``columns``: device, name, op, label and bytes, each [rows]; what is left out is 0."""
        events = plane.events
        threads = np.array([line.id & 0xFFFFFFFFFFFF for line in plane.lines] or [0], np.int64)
        part = {name: columns.get(name, np.zeros(len(rows), np.int64)) for name in ("device", "name", "op", "label", "bytes")}
        start = events.start[rows]
        self.parts.append({**part, "start": start, "end": start + events.duration[rows], "thread": threads[events.line[rows]]})

    def column(self, name: str) -> Int64:
        return np.concatenate([part[name] for part in self.parts]) if self.parts else np.zeros(0, np.int64)


def decode_xspace(raw: bytes, communication_ops: str = "") -> Trace:
    """The trace in a serialized XSpace. Nodes are in the order of planes and lines; times as the profiler took them, to the ns.

    Raises FormatError for what is no XSpace.
    """
    space = read_space(raw)
    nodes = _Nodes()
    nodes.labels.code("")
    launches = Launches.of(space)
    for plane in space.planes:
        if plane.name == HOST:
            _add_host(nodes, plane, launches)
        elif plane.name.startswith("/device:"):
            _add_device(nodes, plane, launches)
    return _trace(raw, space, nodes, communication_ops)


def _trace(raw: bytes, space: Space, nodes: _Nodes, communication_ops: str) -> Trace:
    start, end = nodes.column("start"), nodes.column("end")
    origin = int(start.min()) if len(start) else 0
    n = len(start)
    devices = list(nodes.devices.values())
    names, ops = nodes.names.table(), nodes.ops.table()
    device, name, op, label = (nodes.column(key).astype(np.int32) for key in ("device", "name", "op", "label"))
    kind = node_kinds(devices, device, names, name, ops, op, communication_ops)
    stages = [code for code, one in enumerate(devices) if one.name == TF_DATA]
    kind[np.isin(device, stages)] = NodeKind.INPUT
    unknown = np.full(n, UNKNOWN_TIME, np.int64)
    trace = Trace(
        raw=raw,
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
        start=start - origin,
        end=end - origin,
        op_start=unknown,
        op_end=unknown.copy(),
        scheduled=unknown.copy(),
        thread=nodes.column("thread"),
        offset=np.zeros(n, np.int64),
        size=np.zeros(n, np.int64),
        bytes_moved=nodes.column("bytes"),
        source="xspace",
    )
    for code, messages in (("profiler_errors", space.errors), ("profiler_warnings", space.warnings)):
        if messages:
            trace.notes.append(f"{code}: {'; '.join(messages)[:_MAX_MESSAGES]}")
    host = space.plane(HOST)
    if host is not None and _leaves_out_cheap_ops(host):
        trace.notes.append("cheap_ops_left_out")
    graph = space.plane(GRAPH_PLANE)
    if graph is not None:
        trace.load_graph = lambda: _graph(graph, trace)
    return trace


def _leaves_out_cheap_ops(host: Plane) -> bool:
    """Whether the profile was taken at level 2: at 3 executors say when they schedule ops, too."""
    names = {metadata.name for metadata in host.metadata.values()}
    return _EXECUTOR in names and not any(name.startswith(_SCHEDULING) for name in names)


def _graph(plane: Plane, trace: Trace) -> bytes:
    """The GraphDef of what ran, under the names and devices of the trace; b"" if what the plane holds makes no sense."""
    graphs = []
    for metadata in plane.metadata.values():
        try:
            library = message_class("FunctionDefLibrary").FromString(metadata.content)
        except DecodeError:
            continue
        graphs.append(inlined(library, _text(metadata.name), _executed(trace)).SerializeToString())
    return b"".join(graphs)  # protobuf reads messages behind each other as one


def _executed(trace: Trace) -> dict[str, tuple[str, str]]:
    """``without_numbers(name)`` -> (name, device) of the host's ops and launches."""
    kinds = (DeviceKind.CPU, DeviceKind.GPU)
    hosts = [code for code, device in enumerate(trace.devices) if device.kind in kinds and device.name != TF_DATA]
    rows = np.flatnonzero(np.isin(trace.device, hosts))
    pairs = np.unique(trace.device[rows].astype(np.int64) << 32 | trace.name[rows])
    found: dict[str, tuple[str, str]] = {}
    for pair in pairs.tolist():
        name = trace.names[pair & 0xFFFFFFFF]
        found.setdefault(without_numbers(name), (name, trace.devices[pair >> 32].name))
    return found


def epoch_of(space: Space) -> int:
    """Epoch ns at which the profile's clock stands at 0; 0 where the profile tells the epoch itself, or nothing."""
    environment = space.plane("Task Environment")
    begun = environment.stats.get("profile_start_time", 0) if environment else 0
    return begun if isinstance(begun, int) else 0


# ----------------------------------------------------------------------------------------------------------------- the host


def _add_host(nodes: _Nodes, plane: Plane, launches: Launches) -> None:
    cpu = nodes.device(Device(HOST, "CPU", DeviceKind.CPU, parent=HOST))
    kinds = plane.events.kind
    ops = _Chosen(nodes, plane, _op_of)
    rows = np.flatnonzero(ops.chosen(kinds))
    device = np.full(len(rows), cpu, np.int64)
    for name, of_rows in launches.ops_of_devices(plane, rows):
        device[of_rows] = nodes.device(parse_device(name))
    of_tf_data = np.array([line.name.startswith(_TF_DATA_THREADS) for line in plane.lines] or [False])[plane.events.line[rows]]
    if of_tf_data.any():
        device[of_tf_data] = nodes.device(_TF_DATA_DEVICE)
    nodes.add(plane, rows, device=device, name=ops.name(kinds[rows]), op=ops.op(kinds[rows]))
    stages = _Chosen(nodes, plane, _stage_of)
    rows = np.flatnonzero(stages.chosen(kinds))
    if len(rows):
        device = np.full(len(rows), nodes.device(_TF_DATA_DEVICE))
        nodes.add(plane, rows, device=device, name=stages.name(kinds[rows]), op=stages.op(kinds[rows]))
    _add_host_xla(nodes, plane, launches)


def _op_of(name: str, display_name: str) -> tuple[str, str] | None:
    """(node, op type) of `dense/MatMul:MatMul`, and of the eager op `EagerLocalExecute: MatMul`; None for all else."""
    if name.startswith(_EAGER):
        op = name[len(_EAGER) :]
        return None if op.startswith(_FUNCTION) else (op, op)
    if display_name and name.endswith(":" + display_name) and not name.startswith(_STAGE):
        return name[: -len(display_name) - 1], display_name
    return None


def _stage_of(name: str, display_name: str) -> tuple[str, str] | None:
    """(path, stage) of `Iterator::Root::Prefetch::BatchV2`."""
    return (name, name.rsplit("::", 1)[-1]) if name.startswith(_STAGE) else None


class _Chosen:
    """The kinds of events that are nodes, with their names and ops: asked once a kind, not once an event."""

    def __init__(self, nodes: _Nodes, plane: Plane, choose: Callable[[str, str], tuple[str, str] | None]) -> None:
        ids, names, ops = [], [], []
        for number in np.unique(plane.events.kind).tolist():
            metadata = plane.metadata.get(number)
            pair = choose(_text(metadata.name), _text(metadata.display_name)) if metadata is not None else None
            if pair:
                ids.append(number)
                names.append(nodes.names.code(pair[0]))
                ops.append(nodes.ops.code(pair[1]))
        self.ids, self.names, self.ops = (np.array(column, np.int64) for column in (ids, names, ops))

    def chosen(self, kinds: Int64) -> Bool:
        return np.isin(kinds, self.ids)

    def name(self, kinds: Int64) -> Int64:
        return self.names[np.searchsorted(self.ids, kinds)]

    def op(self, kinds: Int64) -> Int64:
        return self.ops[np.searchsorted(self.ids, kinds)]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _add_host_xla(nodes: _Nodes, plane: Plane, launches: Launches) -> None:
    """What XLA runs on the CPU: events that name their HLO op and launch nothing."""
    if "hlo_op" not in plane.stat_names.values():
        return
    rows = np.setdiff1d(np.arange(len(plane.events.start)), launches.rows)
    hlo = stats_of(plane, rows, ["hlo_op"])["hlo_op"]
    rows, names = rows[hlo.has], [text for text, has in zip(hlo.texts(plane), hlo.has) if has]
    if len(rows):
        device = nodes.device(Device(XLA_HOST, "CPU XLA", DeviceKind.CPU, parent=HOST))
        name = np.array([nodes.names.code(text) for text in names], np.int64)
        op = np.array([nodes.ops.code(_NUMBERED.sub("", text)) for text in names], np.int64)
        nodes.add(plane, rows, device=np.full(len(rows), device), name=name, op=op)


# -------------------------------------------------------------------------------------------------------------- the devices


def _add_device(nodes: _Nodes, plane: Plane, launches: Launches) -> None:
    streams = [_STREAM.fullmatch(line.name) for line in plane.lines]
    work = None if any(streams) else next((name for name in _WORK_LINES if name in [line.name for line in plane.lines]), None)
    for line, stream in zip(plane.lines, streams):
        rows = np.arange(line.first, line.last)
        if not len(rows):
            continue
        if stream:
            detail = f"<{stream.group(2)}>" if stream.group(2) else ""
            device = parse_device(f"{plane.name}/stream:{stream.group(1)}{detail}")
        else:
            repeats = work is None or line.name != work
            unit = plane.name.rsplit("/device:", 1)[-1]
            kind = DeviceKind.REPEAT if repeats else parse_device(plane.name).kind
            device = Device(f"{plane.name}/{line.name}", f"{unit} {line.name}", kind, parent=plane.name, repeats=repeats)
        _add_work(nodes, plane, rows, nodes.device(device))


def _add_work(nodes: _Nodes, plane: Plane, rows: Int64, device: int) -> None:
    """Kernels and copies of one line: named after the op that launched them, or their HLO op, or themselves."""
    stats = stats_of(plane, rows, ["tf_op", "annotation", "hlo_op", "memcpy_details", "kernel_details"])
    annotations = [text.split("#", 1)[0] for text in stats["annotation"].texts(plane)]
    op_texts = [one or other for one, other in zip(stats["tf_op"].texts(plane), annotations)]
    hlo_texts = stats["hlo_op"].texts(plane)
    details = [a or b for a, b in zip(stats["memcpy_details"].texts(plane), stats["kernel_details"].texts(plane))]
    own = [_text(plane.metadata[kind].name) if kind in plane.metadata else "" for kind in plane.events.kind[rows].tolist()]
    named = [_named(*texts) for texts in zip(op_texts, hlo_texts, own)]
    copied = [_copied(text) for text in stats["memcpy_details"].texts(plane)]
    nodes.add(
        plane,
        rows,
        device=np.full(len(rows), device),
        name=np.array([nodes.names.code(name) for name, _ in named], np.int64),
        op=np.array([nodes.ops.code(op) for _, op in named], np.int64),
        label=np.array([nodes.labels.code(_label(*texts)) for texts in zip(own, details)], np.int64),
        bytes=np.array(copied, np.int64),
    )


def _named(tf_op: str, hlo_op: str, own: str) -> tuple[str, str]:
    """(node, op type) of a kernel."""
    if own.lower().startswith(("memcpy", "memset")):
        return (tf_op.rsplit(":", 1)[0] or own), own
    if hlo_op:
        return hlo_op, _NUMBERED.sub("", hlo_op)
    name, _, op = tf_op.rpartition(":")
    if name and op:
        return name, op
    name, _, op = own.rpartition(":")
    return (name, op) if name and op and "::" not in own else (own, re.split(r"[<(]", own, maxsplit=1)[0].removeprefix("void "))


def _label(own: str, details: str) -> str:
    return f"{own} {details}".strip()


def _copied(details: str) -> int:
    size = _SIZE.search(details)
    return int(size.group(1)) if size else 0
