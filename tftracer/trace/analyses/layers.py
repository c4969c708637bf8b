"""A step's time, and its memory at the peak, by layer of the model: a tree of name scopes.

- A *layer* is a name scope. ``layer_of_each_op`` and ``layers_by_graph`` find each op's layer and phase.
- *Time* is the self time of the ops (``ops``); its sum is the time in which the devices were busy. Kernels and copies of a GPU
  belong to the layer of the op that launched them, and so does the launch.
- *Memory* is everything alive at the peak of the allocator with the highest peak, by the op that allocated it. Variables and
  constants, which live before and after the step, have a phase of their own; memory from before the trace has a row of its own.
- *In no layer*: neither names nor the graph place these ops, such as ops without a scope or with gradients of several layers.
  They are listed by op type, or by the optimizer's name. The input pipeline is not part of the model and has a row of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.layers import Layer, Layers
from tftracer.trace.analyses import memory
from tftracer.trace.analyses.layer_of_each_op import PHASES, PlacedOps
from tftracer.trace.analyses.layer_tree import OTHERS, layer_rows, row
from tftracer.trace.analyses.ops import NO_OP, Work
from tftracer.trace.arrays.groups import largest_in_groups
from tftracer.trace.arrays.intervals import Numbering
from tftracer.trace.arrays.types import Float64, Int64, Rows
from tftracer.trace.model import Trace

#: Limits of an answer's rows.
MAX_LAYERS = 4_000
MAX_IN_NO_LAYER = 50

IN_NO_LAYER = "in no layer"
INPUT_PIPELINE = "input pipeline"
NO_KNOWN_OP = "(allocated before the trace, or by no op of it)"

_INPUT, _VARIABLES = PHASES.index("input"), PHASES.index("variables")


def layers_of_time(trace: Trace, work: Work, placed: PlacedOps, findings: list[Finding], limit: int = MAX_LAYERS) -> Layers:
    """Return the answer for time, with at most ``limit`` layers."""
    spent = Measured(np.arange(len(work.node)), work.self_ns, placed.phase.astype(np.int64))
    return _answer(trace, work, placed, spent, limit, findings)


def layers_of_memory(
    trace: Trace, work: Work, placed: PlacedOps, alive: memory.Alive | None, findings: list[Finding], limit: int = MAX_LAYERS
) -> Layers:
    """Return the answer for memory. ``alive``: None if the trace has no records of memory."""
    if alive is None:
        alive = memory.Alive(np.zeros(0, np.int64), np.zeros(0), "", "", 0.0)
    at = np.searchsorted(work.node, alive.node)
    at = np.where(np.append(work.node, -2)[at] == alive.node, at, -1)
    phase = np.append(placed.phase, 0).astype(np.int64)[at]
    lasting = np.array([op in memory.PERSISTENT for op in trace.ops] + [True])
    phase[lasting[np.append(work.op, len(trace.ops))[at]]] = _VARIABLES
    answer = _answer(trace, work, placed, Measured(at, alive.bytes, phase), limit, findings)
    return {**answer, "of": "memory", "allocator": alive.allocator, "device": alive.device, "at_ns": alive.at_ns}


@dataclass(frozen=True)
class Measured(Rows):
    """The amounts that are distributed over the layers."""

    work: Int64  # positions in Work, -1: the op is not known
    amount: Float64  # ns or bytes
    phase: Int64

    def by_phase(self) -> Float64:
        """Return [phases] sums."""
        return np.bincount(self.phase, self.amount, len(PHASES)).astype(np.float64)


def _answer(trace: Trace, work: Work, placed: PlacedOps, measured: Measured, limit: int, findings: list[Finding]) -> Layers:
    """Return the answer for time."""
    layer = np.append(placed.layer, 0).astype(np.int64)[measured.work]
    node = np.append(work.node, -1)[measured.work]
    total = len(placed.tree)
    own, largest = _sums(layer, measured, total), _largest(layer, measured.amount, node, total)
    rows, folded = layer_rows(placed.tree, own, largest, limit)
    known = np.append(placed.examined, True)[measured.work]
    rows += _input(work, measured.only((layer == 0) & known)) + _not_examined(placed, measured.only((layer == 0) & ~known))
    unplaced = measured.only((layer == 0) & known & (measured.phase != _INPUT))
    rows += _in_no_layer(trace, work, placed, unplaced, len(rows))
    return {
        "of": "time",
        "phases": list(PHASES),
        "layers": rows,
        "total": float(measured.amount.sum()),
        "in_no_layer": float(unplaced.amount.sum()),
        "folded": folded + placed.not_examined,
        "allocator": "",
        "device": "",
        "at_ns": 0.0,
        "findings": findings,
    }


def _sums(group: Int64, measured: Measured, groups: int) -> Float64:
    """Return [groups, phases] sums."""
    key = group * len(PHASES) + measured.phase
    return np.bincount(key, measured.amount, groups * len(PHASES)).reshape(groups, len(PHASES)).astype(np.float64)


def _largest(group: Int64, amount: Float64, node: Int64, groups: int) -> Int64:
    """Return [groups] the node with the largest amount in each, -1: none."""
    return np.append(node, -1)[largest_in_groups(group, amount, groups)]


def _input(work: Work, unplaced: Measured) -> list[Layer]:
    """Return the row of the input pipeline; no row if its amount is 0."""
    of_input = unplaced.only(unplaced.phase == _INPUT)
    if not of_input.amount.sum() > 0:
        return []
    longest = np.append(work.node, -1)[of_input.work[np.argmax(of_input.amount)]]
    return [row(-1, INPUT_PIPELINE, of_input.by_phase(), int(longest), "input")]


def _not_examined(placed: PlacedOps, rest: Measured) -> list[Layer]:
    """Return the row of the scopes and names that were not examined; no row if their amount is 0."""
    if not rest.amount.sum() > 0:
        return []
    return [row(-1, OTHERS, rest.by_phase(), -1, "others", placed.not_examined)]


def _in_no_layer(trace: Trace, work: Work, placed: PlacedOps, unplaced: Measured, first: int) -> list[Layer]:
    """Return a row for all ops in no layer, and child rows for each optimizer and each op type.

    ``first``: the index of the first of these rows in the answer.
    """
    names, codes = _kinds(trace, work, placed, unplaced)
    numbers = Numbering(codes)
    group = numbers(codes)
    own = _sums(group, unplaced, len(numbers))
    total = own.sum(axis=1)
    largest = _largest(group, unplaced.amount, np.append(work.node, -1)[unplaced.work], len(numbers))
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    rows = [row(-1, IN_NO_LAYER, np.zeros(len(PHASES)), -1, "none")] if len(order) else []
    for number in order[:MAX_IN_NO_LAYER].tolist():
        rows.append(row(first, names[int(numbers.values[number])], own[number], int(largest[number]), "none"))
    rest = order[MAX_IN_NO_LAYER:]
    if len(rest):
        rows.append(row(first, OTHERS, own[rest].sum(axis=0), -1, "others", len(rest)))
    return rows


def _kinds(trace: Trace, work: Work, placed: PlacedOps, unplaced: Measured) -> tuple[list[str], Int64]:
    """Return (names of op types and optimizers, [unplaced] index of each entry's name)."""
    ops = [*(op or NO_OP for op in trace.ops), NO_KNOWN_OP]
    code = np.append(work.op, len(ops) - 1).astype(np.int64)[unplaced.work]
    optimizer = np.append(placed.optimizer, -1)[unplaced.work]
    return [*ops, *placed.optimizers], np.where(optimizer >= 0, len(ops) + optimizer, code)
