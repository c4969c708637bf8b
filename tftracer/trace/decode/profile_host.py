"""What a profile's host did: the ops of its threads, eager and asynchronous ones too, and the stages of tf.data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.decode.hlo import Modules
from tftracer.trace.decode.profile_nodes import Codes, Kinds, Nodes, innermost, of_kinds, outermost
from tftracer.trace.decode.profile_steps import Step
from tftracer.trace.decode.profile_threads import Owner, Owners
from tftracer.trace.decode.profile_xla import add_host_xla
from tftracer.trace.decode.profiler_names import EAGER, STAGE
from tftracer.trace.decode.xplane import HOST, Plane
from tftracer.trace.decode.xplane_stats import Stat, having, stats_of, texts
from tftracer.trace.model import Device, DeviceKind

TF_DATA = "/host:CPU/tf.data"
CPU = Device(HOST, "CPU", DeviceKind.CPU, parent=HOST)
INPUT = Device(TF_DATA, "tf.data", DeviceKind.CPU, parent=HOST)
_FUNCTION = ("__inference_", "__forward_", "__backward_")  # calls of compiled functions: their ops are nodes of their own
_STARTED, _DONE = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"
_NEXT = "IteratorGetNextOp::DoCompute"  # what an asynchronous IteratorGetNext runs on a thread of tf.data's
_CONSUMED, _PRODUCED = "PrefetchConsume", "PrefetchProduce"


@dataclass
class HostNodes:
    """Where the host's events ended up."""

    op_rows: Int64  # events that are ops, ascending,
    op_nodes: Int64  # and their nodes
    waits: list[tuple[Int64, Int64]] = field(default_factory=list)  # (nodes, the nodes that waited for them)

    @classmethod
    def none(cls) -> HostNodes:
        return cls(*np.zeros((2, 0), np.int64))


def op_of(name: str, display_name: str) -> tuple[str, str] | None:
    """(node, op type) of `dense/MatMul:MatMul`, and of the eager op `EagerLocalExecute: MatMul`; None for all else."""
    if name.startswith(EAGER):
        op = name[len(EAGER) :]
        return None if op.startswith(_FUNCTION) else (op, op)
    if display_name and name.endswith(":" + display_name) and not name.startswith(STAGE):
        return name[: -len(display_name) - 1], display_name
    return None


def _stage_of(name: str, display_name: str) -> tuple[str, str] | None:
    """(path, stage) of `Iterator::Root::Prefetch::BatchV2`."""
    return (name, name.rsplit("::", 1)[-1]) if name.startswith(STAGE) else None


def add_host(
    nodes: Nodes, plane: Plane, place: int, step: Step | None, launches_of: list[tuple[str, Int64]], modules: Modules
) -> HostNodes:
    """``place``: the plane's in the space. ``launches_of``: (device, events that put work on it)."""
    ops, stages = Kinds(nodes, plane, op_of), Kinds(nodes, plane, _stage_of)
    staged = stages.rows()
    owners = Owners(plane, staged, step)
    started, rows = _started(nodes, plane, ops)
    owner = owners.of(rows)
    device = np.full(len(rows), nodes.device(CPU), np.int64)
    for name, launches in launches_of:
        within = innermost(plane, rows, launches)
        device[within[within >= 0]] = nodes.device(parse_device(name))
    if (owner == Owner.INPUT).any():
        device[owner == Owner.INPUT] = nodes.device(INPUT)
    end = plane.events.until[rows]
    has_event = np.flatnonzero(started.event >= 0)
    own = np.searchsorted(rows, started.event[has_event])
    end[own] = np.maximum(end[own], started.end[has_event])
    columns = {"device": device, "name": ops.name(rows), "op": ops.op(rows), "end": end}
    added = nodes.add(plane, place, rows, outside=owner == Owner.OTHER, **columns)
    started.nodes[has_event] = added[own]
    host_nodes = HostNodes(rows, added)
    _add_unnamed(nodes, plane, place, owners, started)
    if len(staged):
        path, stage, apart = stages.name(staged), stages.op(staged), owners.apart(staged)
        stage_nodes = nodes.add(plane, place, staged, device=nodes.device(INPUT), name=path, op=stage, outside=apart)
        host_nodes.waits += _stage_waits(plane, staged, stage_nodes)
        host_nodes.waits += _op_waits(plane, staged, stage_nodes, host_nodes, started)
    add_host_xla(nodes, plane, place, owners, modules, having(plane, "correlation_id")[0])
    return host_nodes


@dataclass
class _Started:
    """Ops that were started by one thread and ended by another, [ops] each, but for those that are recorded otherwise."""

    row: Int64  # the event that says so
    event: Int64  # the op's own event, which lasts until it is started; -1: none, TensorFlow found it cheap
    name: Int64
    op: Int64
    step_id: Stat
    start: Int64
    end: Int64
    nodes: Int64  # filled as nodes are added


def _started(nodes: Nodes, plane: Plane, ops: Kinds) -> tuple[_Started, Int64]:
    """The asynchronous ops, and the events that are ops.

    An op ends where its second part begins: that hands its outputs on, may run what reads them, and may wait for a CPU.
    Collectives and ops of a GPU have a second event, of their work: then that is the op, and the one that started it is none.
    """
    rows, row, until = ops.rows(), of_kinds(plane, _STARTED), plane.events.until
    stats = stats_of(plane, row, ["name", "kernel_type", "step_id", "_p"])
    name, op = _coded(nodes.names, stats["name"]), _coded(nodes.ops, stats["kernel_type"])
    done = _done(plane, stats["_p"])
    end = np.where(done >= 0, plane.events.start[np.maximum(done, 0)], until[row]) if len(until) else row
    within = innermost(plane, rows, row)
    event = np.append(rows, -1)[within]
    event[(within >= 0) & (np.append(ops.name(rows), -1)[within] != name)] = -1
    others = _without(rows, event)
    is_twice = _recorded_otherwise(plane, row, end, name, others, ops.name(others))
    kept = np.flatnonzero(~is_twice)
    started = _Started(
        row=row[kept],
        event=event[kept],
        name=name[kept],
        op=op[kept],
        step_id=stats["step_id"].only(kept),
        start=plane.events.start[row[kept]],
        end=end[kept],
        nodes=np.full(len(kept), -1, np.int64),
    )
    return started, _without(rows, event[is_twice])


def _without(rows: Int64, left_out: Int64) -> Int64:
    return rows[~np.isin(rows, left_out)] if len(left_out) else rows


def _add_unnamed(nodes: Nodes, plane: Plane, place: int, owners: Owners, started: _Started) -> None:
    """The asynchronous ops without an event of their own."""
    which = np.flatnonzero(started.event < 0)
    rows = started.row[which]
    owner = owners.of(rows, started.step_id.only(which))
    device = np.full(len(rows), nodes.device(CPU))
    if (owner == Owner.INPUT).any():
        device[owner == Owner.INPUT] = nodes.device(INPUT)
    columns = {"device": device, "name": started.name[which], "op": started.op[which], "end": started.end[which]}
    started.nodes[which] = nodes.add(plane, place, rows, outside=owner == Owner.OTHER, **columns)


def _coded(codes: Codes, stat: Stat) -> Int64:
    which, distinct = texts(stat)
    return codes.each(distinct)[which]


def _recorded_otherwise(plane: Plane, started: Int64, end: Int64, name: Int64, rows: Int64, names: Int64) -> Bool:
    """[started] whether one of the events ``rows``, of the same name, begins before the op's end."""
    start, is_alike = plane.events.start, np.isin(names, name)
    recorded, names = rows[is_alike], names[is_alike]
    if not len(recorded) or not len(started):
        return np.zeros(len(started), np.bool_)
    low = min(int(start[recorded].min()), int(start[started].min()))
    stride = max(int(start[recorded].max()), int(end.max())) - low + 1
    keys = np.sort(names * stride + (start[recorded] - low))
    at = np.searchsorted(keys, name * stride + (start[started] - low))
    is_recorded: Bool = np.append(keys, np.iinfo(np.int64).max)[at] <= name * stride + (end - low)
    return is_recorded


def _done(plane: Plane, produced: Stat) -> Int64:
    """[started] the event that ended each, by the number that both carry; -1 for none."""
    rows = of_kinds(plane, _DONE)
    consumed = stats_of(plane, rows, ["_c"])["_c"]
    return _matching(consumed.number, rows, produced.number, produced.has)


def _matching(keys: Int64, rows: Int64, wanted: Int64, has: Bool) -> Int64:
    """[wanted] the row with the same key, -1 for none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(has & (keys[order[at]] == wanted), rows[order[at]], -1)


def _stage_waits(plane: Plane, rows: Int64, nodes: Int64) -> list[tuple[Int64, Int64]]:
    """A stage waits for the stages that it calls, and for the element that another thread made for it."""
    around = _caller(plane, rows)
    called = np.flatnonzero(around >= 0)
    waits = [(nodes[called], nodes[around[called]])]
    produced, made = _elements(plane, _PRODUCED)
    consumed, taken = _elements(plane, _CONSUMED)
    maker = _matching(made, produced, taken, np.ones(len(taken), np.bool_))
    taker = innermost(plane, rows, consumed)
    both = np.flatnonzero((maker >= 0) & (taker >= 0))
    if len(both):
        outer = np.unique(maker[both])
        held = outermost(plane, outer, rows)
        first = np.flatnonzero((held >= 0) & (around < 0))  # the stage that the making thread called
        by_maker = dict(zip(outer[held[first]].tolist(), nodes[first].tolist()))
        pairs = [(by_maker[int(maker[i])], int(nodes[taker[i]])) for i in both.tolist() if int(maker[i]) in by_maker]
        waits.append((np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)))
    return waits


def _elements(plane: Plane, kind: str) -> tuple[Int64, Int64]:
    rows = of_kinds(plane, kind)
    stat = stats_of(plane, rows, ["element_id"])["element_id"]
    return rows[stat.has], stat.number[stat.has]


def _caller(plane: Plane, rows: Int64) -> Int64:
    """[rows] the place of the stage that called each, on its thread; -1 for none. A stage's name begins with its caller's."""
    caller = np.full(len(rows), -1, np.int64)
    kinds = plane.events.kind[rows]
    of_name = {plane.kind_name(kind): np.flatnonzero(kinds == kind) for kind in np.unique(kinds).tolist()}
    for name, places in of_name.items():
        outer = of_name.get(name.rpartition("::")[0])
        if outer is not None:
            within = innermost(plane, rows[outer], rows[places])
            caller[places] = np.where(within >= 0, outer[within], -1)
    return caller


def _op_waits(plane: Plane, rows: Int64, nodes: Int64, ops: HostNodes, started: _Started) -> list[tuple[Int64, Int64]]:
    """The op that asks for a batch waits for the outermost stage: the op's event holds it, or its asynchronous part does."""
    top = np.flatnonzero(_caller(plane, rows) < 0)
    within = innermost(plane, ops.op_rows, rows[top])
    direct = np.flatnonzero(within >= 0)
    waits = [(nodes[top[direct]], ops.op_nodes[within[direct]])]
    parts = of_kinds(plane, _NEXT)
    step_id = stats_of(plane, parts, ["id"])["id"].number
    holder = outermost(plane, parts, rows[top])
    pairs = []
    for place in np.flatnonzero(holder >= 0).tolist():
        part = int(holder[place])
        start = int(plane.events.start[parts[part]])
        fits = (started.step_id.number == step_id[part]) & (started.start <= start) & (started.end >= start)
        if fits.any():
            pairs.append((int(nodes[top[place]]), int(started.nodes[int(np.flatnonzero(fits)[0])])))
    return [*waits, (np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))]
