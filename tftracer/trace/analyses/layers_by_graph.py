"""Places ops in layers by the graph, if their names do not: ops of optimizers, ops that sum or send gradients, and variables.

- An op of an optimizer, a collective, or an ``AddN`` of gradients belongs to the layer whose gradient it reads, directly or
  through other such ops. An op that reads gradients of several layers (a norm, or many packed into one tensor) belongs to no
  layer, and neither do the ops that read its result.
- An op of an optimizer that reads no gradient (such as the decay of a slot variable) belongs to the layer of the ops that
  read its output, if that is one layer.
- A variable belongs to the layer whose ops read it, if that is one layer.

One Python iteration per edge to or from an op to place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tftracer.trace.analyses.layer_of_each_op import PHASES, VARIABLES, PlacedOps
from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.intervals import is_in, paced
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.static_graph import StaticGraph
from tftracer.trace.model import Trace

#: If more edges than this lead to or from the ops to place, the edges are not used.
MAX_EDGES = 1 << 18

_BACKWARD, _OPTIMIZER, _COMMUNICATION = (PHASES.index(phase) for phase in ("backward", "optimizer", "communication"))
_OF_GRADIENTS = (_BACKWARD, _OPTIMIZER, _COMMUNICATION)
_SEVERAL = -1


def may_be_placed(trace: Trace, work: Work, placed: PlacedOps) -> Bool:
    """Return [work] whether the graph may place an op."""
    is_variable_or_sum = _of_types(trace, work, VARIABLES | {"AddN"})
    may_place: Bool = (placed.layer == 0) & placed.examined & (is_variable_or_sum | is_in(placed.phase, _OF_GRADIENTS))
    return may_place


def with_graph(trace: Trace, work: Work, placed: PlacedOps, graph: StaticGraph) -> PlacedOps:
    """Place more ops in layers, by the graph."""
    unplaced = may_be_placed(trace, work, placed)
    variables = unplaced & _of_types(trace, work, VARIABLES)
    entity, entities = graph.entity[work.node], len(graph.complete)  # an entity is an op on a device
    layer = np.zeros(entities, np.int64)  # _SEVERAL: the op reads gradients of several layers
    layer[entity] = placed.layer
    start = np.zeros(entities, np.int64)
    start[entity] = trace.start[work.node]
    to_place = _marked(entity, unplaced & ~variables, entities)
    gradients = _marked(entity, (placed.layer > 0) & is_in(placed.phase, _OF_GRADIENTS), entities)
    edges = to_place[graph.consumer] & (to_place[graph.producer] | (gradients[graph.producer] & ~graph.control))
    _spread_layers(layer, graph.producer[edges], graph.consumer[edges], start)
    still_unplaced = to_place & (layer == 0)
    edges = still_unplaced[graph.producer] & (layer[graph.consumer] >= 0) & to_place[graph.consumer]
    _spread_layers(layer, graph.consumer[edges], graph.producer[edges], -start)
    edges = _marked(entity, variables, entities)[graph.producer]
    _spread_layers(layer, graph.consumer[edges], graph.producer[edges], start)
    return _placed(trace, work, placed, unplaced, layer[entity])


def _of_types(trace: Trace, work: Work, types: frozenset[str]) -> Bool:
    """Return [work] whether the op's type is one of ``types``."""
    return trace.op_types_where(types.__contains__)[work.op]


def _marked(entity: Int64, selected: Bool, entities: int) -> Bool:
    """Return [entities] whether an execution of each is ``selected``. ``entity``: [work] the entity of each execution."""
    marks = np.zeros(entities, np.bool_)
    marks[entity[selected]] = True
    return marks


def _spread_layers(layer: Int64, source: Int64, target: Int64, rank: Int64) -> None:
    """Give each target the layer of its sources; ``_SEVERAL`` if they are in different layers. Sources in no layer do not count.

    Targets with a smaller ``rank`` ([entities]) come first. Do nothing if there are more than MAX_EDGES edges.
    """
    if len(target) > MAX_EDGES:
        return
    order = np.lexsort((target, rank[target]))
    layers, sources, targets = layer.tolist(), source[order].tolist(), target[order].tolist()
    for at, to in paced(zip(sources, targets)):
        if layers[at]:
            layers[to] = layers[at] if layers[to] in (0, layers[at]) else _SEVERAL
    layer[:] = layers


def _placed(trace: Trace, work: Work, placed: PlacedOps, unplaced: Bool, new_layer: Int64) -> PlacedOps:
    """Apply the new layers, also to an op's kernels, which have its name and no edges."""
    of_name = np.zeros(max(len(trace.names), 1), np.int64)
    of_name[work.name[unplaced]] = np.where(new_layer[unplaced] > 0, new_layer[unplaced], of_name[work.name[unplaced]])
    layer, phase = placed.layer.copy(), placed.phase.copy()
    layer[unplaced] = of_name[work.name[unplaced]]
    phase[unplaced & (new_layer != 0) & _of_types(trace, work, frozenset(["AddN"]))] = _BACKWARD
    return replace(placed, layer=layer, phase=phase)
