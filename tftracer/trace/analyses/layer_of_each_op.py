"""Assigns each op of a trace to a layer and a phase, by the rules of op_name_to_layer.py, for all names at once.

Layers are the name scopes of the ops of the forward pass. Other ops (gradients, updates of variables, control flow,
communication) belong to the deepest layer that their names contain. If the op of a gradient has no scope, it becomes a layer
itself: ``gradients/MatMul_3_grad`` makes the layer ``MatMul_3``. One Python iteration for each scope, and for each name of a
variable or a transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tftracer.contract.layers import LayerPhase
from tftracer.trace.analyses.layer_tree import LayerTree
from tftracer.trace.analyses.name_scopes import own_scopes
from tftracer.trace.analyses.op_name_to_layer import (
    MAX_DEPTH,
    Place,
    is_update,
    place_of,
    place_of_variable,
    reduced_gradient,
    updating_scopes,
)
from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.intervals import Numbering, paced
from tftracer.trace.arrays.strings import StringTable, codes_in, find
from tftracer.trace.arrays.types import Bool, Int8, Int32, Int64
from tftracer.trace.decode.labels import parse_received
from tftracer.trace.model import NodeKind, Trace

PHASES: tuple[LayerPhase, ...] = ("forward", "backward", "optimizer", "communication", "input", "variables")

#: Maximum number of scopes and names that are examined: those with the most time.
MAX_EXAMINED = 1 << 15

VARIABLES = frozenset(["VarHandleOp", "_VarHandlesOp", "Variable", "VariableV2", "AutoReloadVariable"])

# An op's *reading* says which text of the op gives its layer: the scope for the first four readings, the name for the next two,
# the label for the last one.
_COMPUTES, _UPDATES, _CONTROLS, _INPUT, _VARIABLE, _TRANSFER, _RECEIVED = range(7)
_READINGS = 7


@dataclass(frozen=True)
class PlacedOps:
    """The layers and phases of ops. The columns have one entry for each entry of ``Work``."""

    tree: LayerTree
    layer: Int32  # the layer's number in the tree; 0: in no layer
    phase: Int8  # index into PHASES
    optimizer: Int32  # index of the optimizer that the op belongs to; -1: none, or unknown
    optimizers: list[str]
    examined: Bool  # whether its scope, name or label is one of those examined (at most ``limit``)
    not_examined: int  # scopes and names beyond the limit


def placed_ops(trace: Trace, work: Work, limit: int = MAX_EXAMINED) -> PlacedOps:
    groups = _groups(trace, work, limit)
    updating = updating_scopes(text for reading, text in zip(groups.reading, groups.texts) if reading == _UPDATES)
    places = [_place(reading, text, updating) for reading, text in zip(groups.reading, groups.texts)]
    tree = LayerTree()
    layer_of_group = _layers(tree, groups, places)
    layer = _values_of_groups(layer_of_group, groups)
    _assign_by_own_name(trace, work, tree, layer)
    optimizers = sorted({place.optimizer for place in places if place.optimizer})
    number = {name: at for at, name in enumerate(optimizers)}
    phase = _values_of_groups([PHASES.index(place.phase) for place in places], groups)
    optimizer = _values_of_groups([number.get(place.optimizer, -1) for place in places], groups, -1)
    examined = _values_of_groups(np.ones(len(places), np.int32), groups).astype(np.bool_)
    return PlacedOps(tree, layer, phase.astype(np.int8), optimizer, optimizers, examined, groups.left_out)


@dataclass(frozen=True)
class _Groups:
    """Groups of ops with the same place, because they have the same reading, and the same scope, name or label."""

    group_of: Int64  # [work] the group of each op
    total: int  # number of groups
    examined: Int64  # the groups that the next two columns describe
    reading: list[int]
    texts: list[str]

    @property
    def left_out(self) -> int:
        return self.total - len(self.examined)


def _groups(trace: Trace, work: Work, limit: int) -> _Groups:
    reading = _readings(trace, work)
    scope, scopes = own_scopes(trace.names, work.name)
    code = np.where(reading <= _INPUT, scope, work.name).astype(np.int64)
    code = np.where(reading == _RECEIVED, trace.label[work.node], code)
    numbers = Numbering(code * _READINGS + reading)
    group = numbers(code * _READINGS + reading)
    spent = np.bincount(group, work.self_ns, len(numbers))
    examined = np.sort(largest_first(spent, limit))
    keys = numbers.values[examined]
    selected = keys % _READINGS
    return _Groups(group, len(numbers), examined, selected.tolist(), _texts(trace, scopes, selected, keys // _READINGS))


def _readings(trace: Trace, work: Work) -> Int8:
    """Return [work] the reading of each op."""
    reading_of_type = [_VARIABLE if op in VARIABLES else _UPDATES if is_update(op) else _COMPUTES for op in trace.ops]
    reading = np.array(reading_of_type or [0], np.int8)[work.op]
    kind = trace.kind[work.node]
    for node_kind, read in ((NodeKind.CONTROL, _CONTROLS), (NodeKind.INPUT, _INPUT), (NodeKind.COMMUNICATION, _TRANSFER)):
        reading[kind == node_kind] = read
    reading[work.op == find(trace.ops, b"RecvTensor")] = _RECEIVED
    return reading


def _texts(trace: Trace, scopes: StringTable, readings: Int64, codes: Int64) -> list[str]:
    """Return the scope, name or label that gives the layer of each group."""
    texts = np.empty(len(codes), object)
    is_received = readings == _RECEIVED
    for table, selected in (
        (scopes, readings <= _INPUT),
        (trace.labels, is_received),
        (trace.names, (readings > _INPUT) & ~is_received),
    ):
        texts[selected] = table.texts(codes[selected])
    return list(texts)


def _place(reading: int, text: str, updating: frozenset[str]) -> Place:
    if reading == _INPUT:
        return Place((), "input")
    if reading == _VARIABLE:
        return place_of_variable(text)
    if reading == _RECEIVED:
        received = parse_received(text)
        text = received.producer if received is not None else ""
    if reading in (_TRANSFER, _RECEIVED):
        return place_of(text.rpartition("/")[0])._replace(phase="communication", optimizer="")
    place = place_of(text, updating)
    return place._replace(phase="optimizer") if reading == _UPDATES and place.phase == "forward" else place


def _layers(tree: LayerTree, groups: _Groups, places: list[Place]) -> list[int]:
    """Return the layer of each group. Groups that create layers come before groups that only look one up."""
    layer_of_group, ranks = [0] * len(places), list(map(_rank, groups.reading, places))
    order = sorted(range(len(places)), key=ranks.__getitem__)
    underscored: dict[str, int] = {}
    for at in paced(order, 500):
        if ranks[at] == _CREATES_LAYER:
            layer_of_group[at] = tree.add(places[at].path)
        elif groups.reading[at] == _TRANSFER and (gradient := reduced_gradient(groups.texts[at])):
            underscored = underscored or tree.by_underscored_path()  # no group creates a layer any more
            layer_of_group[at] = _layer_of_gradient(gradient, underscored)
        else:
            layer_of_group[at] = tree.find(places[at].path) or tree.add(_new_layer(ranks[at], places[at].path))
    return layer_of_group


# The ranks of groups: the order in which their layers are found.
_CREATES_LAYER, _OF_VARIABLE, _DIFFERENTIATES, _LOOKS_UP = range(4)


def _rank(reading: int, place: Place) -> int:
    if reading == _VARIABLE and place.phase == "forward":
        return _OF_VARIABLE
    if reading == _COMPUTES and place.phase in ("forward", "backward"):
        return _CREATES_LAYER if place.phase == "forward" else _DIFFERENTIATES
    return _LOOKS_UP


def _new_layer(rank: int, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of the layer to add if none exists: a variable's scope, or the outermost scope of a differentiated op."""
    return path[:-1] if rank == _OF_VARIABLE else path[:1] if rank == _DIFFERENTIATES else ()


def _layer_of_gradient(gradient: str, layers: dict[str, int]) -> int:
    """Return the layer of a collective by its gradient, such as ``dense_MatMul_grad_tuple_1``: the one with the longest path."""
    for _ in range(2 * MAX_DEPTH):
        if gradient in layers or not gradient:
            break
        gradient = gradient.rpartition("_")[0]
    return layers.get(gradient, 0)


def _values_of_groups(values: Sequence[int] | Int32, groups: _Groups, otherwise: int = 0) -> Int32:
    """Return for each op of ``work`` the value of its group; ``otherwise`` if its group was not examined."""
    of_groups = np.full(max(groups.total, 1), otherwise, np.int32)
    of_groups[groups.examined] = values
    return of_groups[groups.group_of]


def _assign_by_own_name(trace: Trace, work: Work, tree: LayerTree, layer: Int32) -> None:
    """Assign each op that is in no layer to the outermost layer with its name, such as the one that its gradient created."""
    outermost = tree.outermost()
    unplaced = np.flatnonzero(layer == 0)
    name = work.name[unplaced]
    begin, end = trace.names.offsets[name], trace.names.offsets[name + 1]
    code = codes_in(StringTable.of(list(outermost)), bytes(trace.names.data), begin, end - begin)
    layer[unplaced] = np.append(np.array(list(outermost.values()), np.int32), np.int32(0))[code]
