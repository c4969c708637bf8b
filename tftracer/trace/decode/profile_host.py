"""Reads a profile's host: the ops of its threads, including eager and asynchronous ones, the stages of tf.data, and the ops that
XLA runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tftracer.trace.arrays.intervals import distinct, is_in, positions_in
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.decode.hlo import HLO_STATS, Modules, hlo_kind, hlo_ops
from tftracer.trace.decode.profile_nodes import Codes, Kinds, Nodes, innermost, of_kinds, outermost
from tftracer.trace.decode.profile_steps import Step
from tftracer.trace.decode.profile_threads import Owner, Owners
from tftracer.trace.decode.xplane_reader import EAGER, HOST, STAGE, Plane
from tftracer.trace.decode.xplane_stats import Stat, having, stats_of, texts
from tftracer.trace.model import Device, DeviceKind

TF_DATA, XLA_HOST = "/host:CPU/tf.data", "/host:CPU/XLA"
#: At most this many of XLA's modules have a device of their own; the others share one (the process compiles again and again).
MAX_MODULES = 32
CPU = Device(HOST, "CPU", DeviceKind.CPU, parent=HOST)
INPUT = Device(TF_DATA, "tf.data", DeviceKind.CPU, parent=HOST)
_FUNCTION = ("__inference_", "__forward_", "__backward_")  # calls of functions: left out, because their ops are nodes
_STARTED, _DONE = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"
_NEXT = "IteratorGetNextOp::DoCompute"  # the part of an asynchronous IteratorGetNext that runs on a thread of tf.data
_CONSUMED, _PRODUCED = "PrefetchConsume", "PrefetchProduce"


@dataclass
class HostNodes:
    """The nodes of the host's events."""

    op_rows: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))  # events that are ops, ascending
    op_nodes: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))  # their nodes
    waits: list[tuple[Int64, Int64]] = field(default_factory=list)  # (nodes, the nodes that waited for them)


def op_of(name: str, display_name: str) -> tuple[str, str] | None:
    """Return (node, op type) of `dense/MatMul:MatMul`, or of the eager op `EagerLocalExecute: MatMul`; None for other events."""
    if name.startswith(EAGER):
        op = name[len(EAGER) :]
        return None if op.startswith(_FUNCTION) else (op, op)
    if display_name and name.endswith(":" + display_name) and not name.startswith(STAGE):
        return name[: -len(display_name) - 1], display_name
    return None


def _stage_of(name: str, display_name: str) -> tuple[str, str] | None:
    """Return (path, stage) of `Iterator::Root::Prefetch::BatchV2`, a stage of tf.data; None for other events."""
    return (name, name.rsplit("::", 1)[-1]) if name.startswith(STAGE) else None


def add_host(
    nodes: Nodes,
    plane: Plane,
    step: Step | None,
    launches_of: list[tuple[str, Int64]],
    modules: Modules,
    graph_names: Callable[[], frozenset[str]],
) -> HostNodes:
    """Add the host's nodes. ``launches_of``: pairs of a device's name and the host's events that launched work on it.
    ``graph_names``: returns the names of all ops that the step may run; none if not known."""
    ops, stages = Kinds(nodes, plane, op_of), Kinds(nodes, plane, _stage_of)
    staged = stages.rows()
    owners = Owners(plane, staged, step, graph_names)
    started, rows = _started(nodes, plane, ops)
    owner = owners.of(rows)
    device = np.full(len(rows), nodes.device(CPU), np.int64)
    for name, launches in launches_of:
        within = innermost(plane, rows, launches)
        device[within[within >= 0]] = nodes.device(parse_device(name))
    if (owner == Owner.INPUT).any():
        device[owner == Owner.INPUT] = nodes.device(INPUT)
    end = plane.events.end[rows]
    has_event = np.flatnonzero(started.event >= 0)
    event_position = np.searchsorted(rows, started.event[has_event])
    end[event_position] = np.maximum(end[event_position], started.end[has_event])
    columns = {"device": device, "name": ops.name(rows), "op": ops.op(rows), "end": end}
    added = nodes.add(plane, rows, outside=owner == Owner.OTHER, **columns)
    started.nodes[has_event] = added[event_position]
    host_nodes = HostNodes(rows, added)
    _add_without_event(nodes, plane, owners, started)
    if len(staged):
        path, stage, apart = stages.name(staged), stages.op(staged), owners.apart(staged)
        stage_nodes = nodes.add(plane, staged, device=nodes.device(INPUT), name=path, op=stage, outside=apart)
        host_nodes.waits += _stage_waits(plane, staged, stage_nodes)
        host_nodes.waits += _op_waits(plane, staged, stage_nodes, host_nodes, started)
    _add_xla(nodes, plane, owners, modules, having(plane, "correlation_id")[0])
    return host_nodes


@dataclass
class _Started:
    """Asynchronous ops: one thread starts them, another ends them. Each column has one row per op.

    Ops that have a second event for their work are left out (``_started``).
    """

    row: Int64  # the event in which the op is started
    event: Int64  # the op's own event, which ends when the op is started; -1: the profiler left it out as cheap
    name: Int64
    op: Int64
    step_id: Stat
    start: Int64
    end: Int64
    nodes: Int64  # filled as nodes are added


def _started(nodes: Nodes, plane: Plane, ops: Kinds) -> tuple[_Started, Int64]:
    """Return (the asynchronous ops, the events that are ops).

    An op ends where its Done event begins. The Done event passes the outputs on, and may run their consumers or wait for a CPU.
    Collectives and ops of a GPU have a second event for their work: then only this second event is an op.
    """
    op_rows, start_rows, event_end = ops.rows(), of_kinds(plane, _STARTED), plane.events.end
    stats = stats_of(plane, start_rows, ["name", "kernel_type", "step_id", "_p"])
    name, op = _coded(nodes.names, stats["name"]), _coded(nodes.ops, stats["kernel_type"])
    done = _done(plane, stats["_p"])
    end = np.where(done >= 0, plane.events.start[np.maximum(done, 0)], event_end[start_rows]) if len(event_end) else start_rows
    within = innermost(plane, op_rows, start_rows)
    event = np.append(op_rows, -1)[within]
    event[(within >= 0) & (np.append(ops.name(op_rows), -1)[within] != name)] = -1
    other_rows = _without(op_rows, event)
    has_second_event = _has_second_event(plane, start_rows, end, name, other_rows, ops.name(other_rows))
    kept = np.flatnonzero(~has_second_event)
    started = _Started(
        row=start_rows[kept],
        event=event[kept],
        name=name[kept],
        op=op[kept],
        step_id=stats["step_id"].only(kept),
        start=plane.events.start[start_rows[kept]],
        end=end[kept],
        nodes=np.full(len(kept), -1, np.int64),
    )
    return started, _without(op_rows, event[has_second_event])


def _without(rows: Int64, left_out: Int64) -> Int64:
    return rows[~is_in(rows, left_out)] if len(left_out) else rows


def _add_without_event(nodes: Nodes, plane: Plane, owners: Owners, started: _Started) -> None:
    """Add the asynchronous ops that have no event of their own."""
    which = np.flatnonzero(started.event < 0)
    rows = started.row[which]
    owner = owners.of(rows, started.step_id.only(which))
    device = np.full(len(rows), nodes.device(CPU))
    if (owner == Owner.INPUT).any():
        device[owner == Owner.INPUT] = nodes.device(INPUT)
    columns = {"device": device, "name": started.name[which], "op": started.op[which], "end": started.end[which]}
    started.nodes[which] = nodes.add(plane, rows, outside=owner == Owner.OTHER, **columns)


def _coded(codes: Codes, stat: Stat) -> Int64:
    which, distinct = texts(stat)
    return codes.each(distinct)[which]


def _has_second_event(plane: Plane, started: Int64, end: Int64, name: Int64, rows: Int64, names: Int64) -> Bool:
    """Return [started] whether one of the events ``rows`` has the op's name and begins between its start and its end."""
    start, is_alike = plane.events.start, is_in(names, name)
    recorded, names = rows[is_alike], names[is_alike]
    if not len(recorded) or not len(started):
        return np.zeros(len(started), np.bool_)
    low = min(int(start[recorded].min()), int(start[started].min()))
    stride = max(int(start[recorded].max()), int(end.max())) - low + 1
    keys = np.sort(names * stride + (start[recorded] - low))
    at = np.searchsorted(keys, name * stride + (start[started] - low))
    return np.append(keys, np.iinfo(np.int64).max)[at] <= name * stride + (end - low)


def _done(plane: Plane, produced: Stat) -> Int64:
    """Return [started] the event that ended each op, found by the id that both have; -1 for none."""
    rows = of_kinds(plane, _DONE)
    consumed = stats_of(plane, rows, ["_c"])["_c"]
    return _matching(consumed.number, rows, produced.number, produced.has)


def _matching(keys: Int64, rows: Int64, wanted: Int64, has: Bool) -> Int64:
    """Return [wanted] the row with the same key, -1 for none."""
    order = np.argsort(keys, kind="stable")
    return np.where(has, np.append(rows[order], -1)[positions_in(keys[order], wanted)], -1)


def _stage_waits(plane: Plane, rows: Int64, nodes: Int64) -> list[tuple[Int64, Int64]]:
    """Return (stages, stages that wait for them): a stage waits for stages that it calls, and for those that fill its queue."""
    caller = _caller(plane, rows)
    called = np.flatnonzero(caller >= 0)
    waits = [(nodes[called], nodes[caller[called]])]
    produce_rows, produced = _elements(plane, _PRODUCED)
    consume_rows, consumed = _elements(plane, _CONSUMED)
    producer = _matching(produced, produce_rows, consumed, np.ones(len(consumed), np.bool_))
    consumer = innermost(plane, rows, consume_rows)
    matched = np.flatnonzero((producer >= 0) & (consumer >= 0))
    if len(matched):
        outer = distinct(producer[matched])
        within = outermost(plane, outer, rows)
        first = np.flatnonzero((within >= 0) & (caller < 0))  # the stage that the producing thread called
        by_producer = dict(zip(outer[within[first]].tolist(), nodes[first].tolist()))
        pairs = [
            (by_producer[int(producer[i])], int(nodes[consumer[i]])) for i in matched.tolist() if int(producer[i]) in by_producer
        ]
        waits.append(_columns(pairs))
    return waits


def _elements(plane: Plane, kind: str) -> tuple[Int64, Int64]:
    """Return (events of this kind, the id of the element that each puts into a queue or takes from it)."""
    rows = of_kinds(plane, kind)
    stat = stats_of(plane, rows, ["element_id"])["element_id"]
    return rows[stat.has], stat.number[stat.has]


def _caller(plane: Plane, rows: Int64) -> Int64:
    """Return [rows] the index of each stage's caller on its thread; -1 for none. A stage's name begins with its caller's."""
    caller = np.full(len(rows), -1, np.int64)
    kinds = plane.events.kind[rows]
    positions_by_name = {plane.kind_name(kind): np.flatnonzero(kinds == kind) for kind in distinct(kinds).tolist()}
    for name, positions in positions_by_name.items():
        outer = positions_by_name.get(name.rpartition("::")[0])
        if outer is not None:
            within = innermost(plane, rows[outer], rows[positions])
            caller[positions] = np.where(within >= 0, outer[within], -1)
    return caller


def _op_waits(plane: Plane, rows: Int64, nodes: Int64, ops: HostNodes, started: _Started) -> list[tuple[Int64, Int64]]:
    """Return (stages, ops that wait for them): an op that gets a batch waits for the outermost stage in its event.

    The stage may also be in the event of the op's asynchronous part.
    """
    top = np.flatnonzero(_caller(plane, rows) < 0)
    within = innermost(plane, ops.op_rows, rows[top])
    direct = np.flatnonzero(within >= 0)
    waits = [(nodes[top[direct]], ops.op_nodes[within[direct]])]
    parts = of_kinds(plane, _NEXT)
    step_id = stats_of(plane, parts, ["id"])["id"].number
    holder = outermost(plane, parts, rows[top])
    pairs = []
    for position in np.flatnonzero(holder >= 0).tolist():
        part = int(holder[position])
        start = int(plane.events.start[parts[part]])
        fits = (started.step_id.number == step_id[part]) & (started.start <= start) & (started.end >= start)
        if fits.any():
            pairs.append((int(nodes[top[position]]), int(started.nodes[int(np.flatnonzero(fits)[0])])))
    return [*waits, _columns(pairs)]


def _columns(pairs: list[tuple[int, int]]) -> tuple[Int64, Int64]:
    """Return the two columns of a list of pairs."""
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    return first, second


def _add_xla(nodes: Nodes, plane: Plane, owners: Owners, modules: Modules, launches: Int64) -> None:
    """Add the ops that XLA runs on the host: events that have an HLO op and launch nothing. Each HLO module has a device (a lane)
    of its own.

    ``launches``: the host's events that launch work on a device, even if the profile lacks that work.
    """
    rows = having(plane, "hlo_op")[0]
    rows = rows[~is_in(rows, launches)]
    if not len(rows):
        return
    group, ops = hlo_ops(stats_of(plane, rows, HLO_STATS), np.arange(len(rows)))
    nodes.add(
        plane,
        rows,
        device=_devices(nodes, [name for _, name, _ in ops])[group],
        name=nodes.names.each([modules.name_of(number, name, op) for op, name, number in ops])[group],
        op=nodes.ops.each([hlo_kind(op) for op, _, _ in ops])[group],
        outside=owners.apart(rows),
    )


def _devices(nodes: Nodes, modules: list[str]) -> Int64:
    """Return [modules] codes of devices."""
    own = list(dict.fromkeys(modules))[:MAX_MODULES]
    codes = {name: nodes.device(_device(name)) for name in own}
    return np.array([codes[name] if name in codes else nodes.device(_device("")) for name in modules], np.int64)


def _device(module: str) -> Device:
    name = f"{XLA_HOST}/{module}" if module else XLA_HOST
    return Device(name, f"CPU XLA {module}".strip(), DeviceKind.CPU, parent=HOST)
