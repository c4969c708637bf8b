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
    op_nodes: Int64  # and their nodes,
    op_names: Int64  # and the codes of their names
    waits: list[tuple[Int64, Int64]] = field(default_factory=list)  # (nodes, the nodes that waited for them)

    @classmethod
    def none(cls) -> HostNodes:
        return cls(*np.zeros((3, 0), np.int64))


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
    rows, staged = ops.rows(), stages.rows()
    owners = Owners(plane, staged, step)
    owner = owners.of(rows)
    device = np.full(len(rows), nodes.device(CPU), np.int64)
    for name, launches in launches_of:
        within = innermost(plane, rows, launches)
        device[within[within >= 0]] = nodes.device(parse_device(name))
    if (owner == Owner.INPUT).any():
        device[owner == Owner.INPUT] = nodes.device(INPUT)
    added = nodes.add(plane, place, rows, device=device, name=ops.name(rows), op=ops.op(rows), outside=owner == Owner.OTHER)
    host_nodes = HostNodes(rows, added, ops.name(rows))
    asynchronous = _add_asynchronous(nodes, plane, place, owners, host_nodes)
    if len(staged):
        path, stage, apart = stages.name(staged), stages.op(staged), owners.apart(staged)
        stage_nodes = nodes.add(plane, place, staged, device=nodes.device(INPUT), name=path, op=stage, outside=apart)
        host_nodes.waits += _stage_waits(plane, staged, stage_nodes)
        host_nodes.waits += _op_waits(plane, staged, stage_nodes, host_nodes, asynchronous)
    add_host_xla(nodes, plane, place, owners, modules, having(plane, "correlation_id")[0])
    return host_nodes


# ------------------------------------------------------------------------------------------------------ asynchronous ops


@dataclass
class _Asynchronous:
    """Ops that were started by one thread and ended by another."""

    nodes: Int64
    step_id: Int64
    start: Int64
    end: Int64


def _add_asynchronous(nodes: Nodes, plane: Plane, place: int, owners: Owners, ops: HostNodes) -> _Asynchronous:
    """One node for each pair of events, started and done; none where the op has an event of its own in between."""
    started = of_kinds(plane, _STARTED)
    stats = stats_of(plane, started, ["name", "kernel_type", "step_id", "_p"])
    name, op = _coded(nodes.names, stats["name"]), _coded(nodes.ops, stats["kernel_type"])
    done = _done(plane, stats["_p"])
    events = plane.events
    end = np.where(done >= 0, events.until[np.maximum(done, 0)], events.until[started]) if len(events) else started
    owner = owners.of(started, stats["step_id"])
    device = np.full(len(started), nodes.device(CPU))
    if (owner == Owner.INPUT).any():
        device[owner == Owner.INPUT] = nodes.device(INPUT)
    kept = np.flatnonzero(~_recorded_otherwise(plane, started, end, name, ops))
    columns = {"device": device, "name": name, "op": op, "end": end, "outside": (owner == Owner.OTHER).astype(np.int64)}
    added = nodes.add(plane, place, started[kept], **{key: column[kept] for key, column in columns.items()})
    return _Asynchronous(added, stats["step_id"].number[kept], events.start[started[kept]], end[kept])


def _coded(codes: Codes, stat: Stat) -> Int64:
    which, distinct = texts(stat)
    return codes.each(distinct)[which]


def _recorded_otherwise(plane: Plane, started: Int64, end: Int64, name: Int64, ops: HostNodes) -> Bool:
    """[started] whether an op of the same name has an event of its own before the end: collectives do, and ops of a GPU."""
    start, is_alike = plane.events.start, np.isin(ops.op_names, name)
    recorded, names = ops.op_rows[is_alike], ops.op_names[is_alike]
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


# --------------------------------------------------------------------------------------------------- stages of tf.data


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


def _op_waits(plane: Plane, rows: Int64, nodes: Int64, ops: HostNodes, asynchronous: _Asynchronous) -> list[tuple[Int64, Int64]]:
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
        fits = (asynchronous.step_id == step_id[part]) & (asynchronous.start <= start) & (asynchronous.end >= start)
        if fits.any():
            pairs.append((int(nodes[top[place]]), int(asynchronous.nodes[int(np.flatnonzero(fits)[0])])))
    return [*waits, (np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))]
