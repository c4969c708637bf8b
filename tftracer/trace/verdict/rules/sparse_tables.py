"""Tables of which a step updates all rows, although it looks up only some."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.dependencies import dependencies
from tftracer.trace.analyses.op_kinds import ELEMENTWISE, is_matrix_op
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.types import Bool, Int32, Int64
from tftracer.trace.decode.labels import parse_label
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.rules.tiny_ops import TINY_NS
from tftracer.trace.verdict.step import Step, evidence_of, sentence

DENSE_SHARE = 0.20  # minimal part of the op time that works on whole tables
MAX_OPS = 10_000  # only the longest ops are searched

#: Stands for the table if its name is not known.
DENSE_GRADIENT = "a table whose gradient becomes dense"

_SCATTER = re.compile(r"(Resource)?Scatter(Nd)?(Add|Sub|Update)")
_GATHER = re.compile(r"ResourceGather(Nd)?")
_ASSIGN = re.compile(r"ResourceApply\w+|Assign(Add|Sub)?(VariableOp)?")
_APPLY = re.compile(r"ResourceApply\w+")
#: Ops of an update that are followed even if they are short.
_ALSO_SHORT = re.compile(r"ReadVariableOp|AssignVariableOp")
#: Ops that scale a variable, as a decaying momentum does.
_SCALES = frozenset(("Mul", "RealDiv"))
#: Ops of an update that touch only the rows that were looked up.
_SPARSE = re.compile(rf"{_SCATTER.pattern}|{_GATHER.pattern}|GatherV2|Unique\w*|UnsortedSegment\w+|StridedSlice|Shape")


def dense_update(step: Step) -> Sentence | None:
    """Name a table's update that computes with all rows, although the step looks up only some: its gradient may be dense."""
    time = OpTime.of(step)
    selected, where = dense_ops(step, time)
    if time.least_share(selected) < DENSE_SHARE:
        return None
    # The optimizer in use is not suggested: here its update is not sparse.
    sparse_optimizers = "".join(f"{name}, " for name in ("SGD", "Adagrad") if name.lower() not in where.lower())
    share, nodes, spent = time.share(selected), time.longest(selected), float(time.work.self_ns[selected].sum())
    return sentence(
        "dense_update",
        f"{_what(where)} That takes {percent(share)} of the op time ({time.types(selected)}; {duration(spent)}); the longest is "
        f"{step.describe(nodes[0])}.",
        f"Use an optimizer that leaves the other rows alone: {sparse_optimizers}or a lazy Adam (Adam decays the moments of all "
        "rows in each step). See that the table's gradient stays sparse (tf.IndexedSlices): tf.convert_to_tensor, clipping it by "
        "value, or a regularizer of the whole table makes it dense.",
        time.share_of_step(selected),
        {"dense_ns": spent, "executions": float(selected.sum())},
        {**evidence_of(step, nodes, "ops"), "op": time.op(selected)},
    )


def _what(where: str) -> str:
    if where == DENSE_GRADIENT:
        return (
            "The gradient of a table becomes dense: its update works on all rows, although the step looks up only some of them."
        )
    return f"The update of {where} works on all rows of a table, although the step looks up only some of them."


def dense_ops(step: Step, time: OpTime) -> tuple[Bool, str]:
    """Return the ops that work on whole tables, and the scope or table with most of their time."""
    looks_up = time.of_kinds(lambda kind: _SCATTER.fullmatch(kind) or _GATHER.fullmatch(kind)).any()
    if not looks_up and not time.of_kinds(lambda kind: kind == "GatherV2").any():
        return np.zeros(len(time.work.node), bool), ""
    # These ops show which tables are looked up, so they are read even if they are short.
    is_evidence = time.of_kinds(lambda kind: kind == "ReadVariableOp" or _SCATTER.fullmatch(kind) or _GATHER.fullmatch(kind))
    rows = np.flatnonzero((time.work.duration >= TINY_NS) | is_evidence)
    rows = rows[largest_first(time.work.duration[rows], MAX_OPS)]
    labels = [parse_label(step.trace.labels[code]) for code in step.trace.label[time.work.node[rows]].tolist()]
    kinds = [time.kinds[code] for code in time.work.op[rows].tolist()]
    scopes = [name.rpartition("/")[0] for name in step.trace.names.texts(time.work.name[rows])]
    first_input = [label.inputs[0] if label.inputs else "" for label in labels]
    updates = {scope for scope, kind in zip(scopes, kinds) if scope and _SCATTER.fullmatch(kind)}
    is_long = time.work.duration[rows] >= TINY_NS
    assigns = {scope for scope, kind, long in zip(scopes, kinds, is_long.tolist()) if long and _ASSIGN.fullmatch(kind)}
    tables = {table for table, kind in zip(first_input, kinds) if table and _GATHER.fullmatch(kind)}
    reads = zip(first_input, kinds, scopes)
    # A table that is also read as a whole, outside of an update, does not count.
    tables -= {table for table, kind, scope in reads if kind == "ReadVariableOp" and scope not in updates}
    spent: dict[str, float] = {}
    selected = np.zeros(len(time.work.node), bool)
    for row, scope, kind, table in zip(rows.tolist(), scopes, kinds, first_input):
        if time.work.duration[row] < TINY_NS:
            continue
        if scope in updates & assigns and not _SPARSE.fullmatch(kind):  # without a long assignment the update uses only some rows
            where = scope
        elif _APPLY.fullmatch(kind) and table in tables:
            where = table
        else:
            continue
        selected[row] = True
        spent[where] = spent.get(where, 0.0) + float(time.work.self_ns[row])
    knows_tables = any(first_input)  # in a session's trace the labels name an op's inputs; in a profile nothing does
    may_become_dense = tables or not knows_tables or not looks_up
    for row in _ops_on_dense_gradient(time, rows, scopes, kinds, bool(looks_up)) if may_become_dense else []:
        selected[row] = True
        where = DENSE_GRADIENT if not spent else max(spent, key=spent.__getitem__)
        spent[where] = spent.get(where, 0.0) + float(time.work.self_ns[row])
    return selected, max(spent, key=spent.__getitem__, default="")


def _ops_on_dense_gradient(time: OpTime, rows: Int64, scopes: list[str], kinds: list[str], looks_up: bool) -> list[int]:
    """Return the entries (in ``OpTime.work``) of the ops that turn the gradient of some rows of a table into a gradient of all
    rows, and of the op that applies it.

    Optimizers also add up rows that were looked up twice: scopes with a Unique or a scatter are left out.
    If an AddN adds another gradient, which makes the sum dense in any case, nothing is returned unless that gradient is from a
    regularizer: the graph has an L2Loss, or each AddN has known addends, none of them from a matrix product.
    ``looks_up``: whether a table is certainly looked up. If not, GatherV2 may read something else, and only sums that update a
    variable count.
    """
    flow = _Flow(time)
    long_rows = [
        (row, scope, kind) for row, scope, kind in zip(rows.tolist(), scopes, kinds) if time.work.duration[row] >= TINY_NS
    ]
    sparse = {scope for scope, kind in zip(scopes, kinds) if kind.startswith("Unique") or _SCATTER.fullmatch(kind)}
    optimizers = {scope for scope, kind in zip(scopes, kinds) if scope and _ASSIGN.fullmatch(kind)}
    sums = [
        row
        for row, scope, kind in long_rows
        if kind == "UnsortedSegmentSum" and scope not in sparse and (looks_up or scope in optimizers or flow.updates(row))
    ]
    addn_rows = [row for row, _, kind in long_rows if kind == "AddN" and (looks_up or flow.updates(row))]
    if addn_rows and not any(kind == "L2Loss" for _, _, kind in long_rows) and any(map(flow.may_add_a_dense_gradient, addn_rows)):
        return []
    applied = [row for row, _, kind in long_rows if looks_up and _APPLY.fullmatch(kind)][:1]  # the longest
    return sorted({*sums, *applied, *flow.readers(sums)}) if sums else []


class _Flow:
    """The graph of dependencies between rows of ``OpTime.work``."""

    def __init__(self, time: OpTime) -> None:
        self._time = time
        self._graph = dependencies(time.trace)
        self._row_of = {node: row for row, node in enumerate(time.work.node.tolist())}

    def _kind(self, row: int) -> str:
        return str(self._time.kinds[self._time.work.op[row]])

    def _is_long(self, row: int) -> bool:
        return bool(self._time.work.duration[row] >= TINY_NS)

    def readers(self, sums: list[int]) -> set[int]:
        """Return the long ops that read these sums, directly or indirectly.

        Short reads and assignments of variables are followed, too: an update may read variables that it has just assigned. Also
        returned: long Mul or RealDiv ops that feed these ops and have no long input, such as the decay of a momentum.
        """
        reached = self._reachable(
            sums, self._graph.consumers_of, lambda row: self._is_long(row) or _ALSO_SHORT.fullmatch(self._kind(row)) is not None
        )
        long = {row for row in reached if self._is_long(row)}
        scales = {row for each in long for row in self._inputs(each) if self._is_long(row) and self._kind(row) in _SCALES}
        return long | {row for row in scales if not any(map(self._is_long, self._inputs(row)))}

    def _inputs(self, row: int) -> set[int]:
        nodes = self._graph.inputs_of(int(self._time.work.node[row])).tolist()
        return {self._row_of[node] for node in nodes if node in self._row_of}

    def updates(self, row: int) -> bool:
        """Tell whether the row reaches an assignment through elementwise ops alone, as in an optimizer."""
        return any(
            _ASSIGN.fullmatch(self._kind(each))
            for each in self._reachable(
                [row],
                self._graph.consumers_of,
                lambda row: bool(ELEMENTWISE.fullmatch(self._kind(row)) or _ASSIGN.fullmatch(self._kind(row))),
            )
        )

    def may_add_a_dense_gradient(self, add_n_row: int) -> bool:
        """Tell whether an addend comes from a matrix product, or all known addends are segment sums."""
        addends = self._reachable(
            [add_n_row], self._graph.inputs_of, lambda row: self._is_long(row) and self._kind(row) != "UnsortedSegmentSum"
        ) - {add_n_row}
        return not addends or any(is_matrix_op(self._kind(row)) for row in addends)

    def _reachable(self, rows: list[int], neighbours: Callable[[int], Int32], passes: Callable[[int], bool]) -> set[int]:
        """Return ``rows``, and the rows that are reached from them through rows for which ``passes`` is true."""
        reached, waiting = set(rows), list(rows)
        while waiting:
            nodes = neighbours(int(self._time.work.node[waiting.pop()])).tolist()
            new = {row for node in nodes if (row := self._row_of.get(node)) is not None and passes(row)} - reached
            reached |= new
            waiting += new
        return reached
