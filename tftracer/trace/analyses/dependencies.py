"""The dependencies between executions: which node of the trace waited for which.

The static graph (static_graph.py) has edges between *entities*: ops on devices, and received tensors. A node of the trace is one
execution of an entity. Each edge of the static graph becomes one edge per execution of its consumer. In a loop an op executes
many times: the consumer reads the producer's latest execution that had ended when the consumer started, or else the latest that
had started. An execution counts as ended at its op_end if that is known, because its end includes the time in which the op passes
its outputs on. A Merge reads only the latest of its inputs. No edge leads back in time, so the graph has no cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tftracer.trace.analyses import op_kinds
from tftracer.trace.arrays.groups import last_in_groups, rows_of_groups
from tftracer.trace.arrays.intervals import is_in
from tftracer.trace.arrays.types import Bool, Int32, Int64
from tftracer.trace.decode.static_graph import Source, StaticGraph, static_graph
from tftracer.trace.model import Trace

NEXT_ITERATIONS, MERGES = ("NextIteration", "RefNextIteration"), ("Merge", "RefMerge", "_XlaMerge")


@dataclass
class Arguments:
    """The input positions of edges, known for matrix ops (op_kinds.py); one entry per input."""

    edge: Int64  # index of the edge
    position: Int64  # among the data inputs, from 0; one edge may stand for several inputs
    equations: dict[str, Int64]  # equation -> the Einsum nodes that have it


@dataclass
class Graph:
    """Edges between executions. ``producer`` and ``consumer`` are indices of the trace's nodes."""

    n: int  # number of nodes in the trace
    producer: Int32  # [e]
    consumer: Int32  # [e]
    slot: Int32  # [e] index of the producer's output; -1 for a control edge
    control: Bool  # [e]
    transfer: Bool  # [e] from one device to another
    source: Source
    complete: Bool  # [n] whether all data inputs are among the edges
    arguments: Arguments

    def __len__(self) -> int:
        return len(self.producer)

    @cached_property
    def by_consumer(self) -> tuple[Int64, Int64]:
        """(edges sorted by consumer, [n + 1] offsets into them)."""
        return _grouped(self.consumer, self.n)

    @cached_property
    def by_producer(self) -> tuple[Int64, Int64]:
        return _grouped(self.producer, self.n)

    def in_edges(self, node: int) -> Int64:
        """Return the indices of the edges that end in a node."""
        order, offsets = self.by_consumer
        return order[offsets[node] : offsets[node + 1]]

    def out_edges(self, node: int) -> Int64:
        order, offsets = self.by_producer
        return order[offsets[node] : offsets[node + 1]]

    def inputs_of(self, node: int) -> Int32:
        """Return the nodes that a node waited for, data and control."""
        return self.producer[self.in_edges(node)]

    def consumers_of(self, node: int) -> Int32:
        return self.consumer[self.out_edges(node)]


def _grouped(ends: Int32, n: int) -> tuple[Int64, Int64]:
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=n), out=offsets[1:])
    return np.argsort(ends, kind="stable"), offsets


def static_graph_of(trace: Trace) -> StaticGraph:
    """Build the static graph with the input positions of matrix ops."""
    return static_graph(trace, trace.op_types_where(op_kinds.is_matrix_op))


def dependencies(trace: Trace, static: StaticGraph | None = None) -> Graph:
    """Compute the edges between executions, from the partition graphs or else from the labels' inputs; ``source`` says which.

    They include the edges that the trace itself has between executions (the stages of tf.data in a profile), which ``source``
    does not mention. ``static``: the result of ``static_graph_of`` for the trace, if it is known.
    """
    graph = _edges_of_static_graph(trace, static if static is not None else static_graph_of(trace))
    if not trace.known_edges:
        return graph
    writer, reader = trace.known_edges
    kept = trace.counted[writer] & trace.counted[reader]
    writer, reader = writer[kept], reader[kept]
    slot = np.concatenate([graph.slot, np.zeros(len(writer), np.int32)])
    both = np.concatenate([graph.producer, writer]), np.concatenate([graph.consumer, reader])
    return _graph(trace, *both, slot, graph.source, graph.complete, graph.arguments)


def _edges_of_static_graph(trace: Trace, static: StaticGraph) -> Graph:
    entity, edge, reader = static.entity, *_executions(static)
    writer = _latest(trace, entity, static.producer[edge], reader)
    keep = writer >= 0
    keep &= ~_backwards(trace, writer, reader)
    complete = _complete(static, reader[~keep], static.control[edge[~keep]])
    edge, writer, reader = edge[keep], writer[keep], reader[keep]
    kept = _one_input_per_merge(trace, writer, reader, static.control[edge])
    slot, arguments = static.slot[edge[kept]], _arguments(static, edge[kept])
    return _graph(trace, writer[kept], reader[kept], slot, static.source, complete, arguments)


def _complete(static: StaticGraph, reader: Int64 | Int32, control: Bool) -> Bool:
    """Return [n] whether all data inputs of a node are among the edges. ``reader``: the consumers of dropped edges."""
    complete: Bool = np.append(static.complete, False)[static.entity]
    complete[reader[~control]] = False
    return complete


def _arguments(static: StaticGraph, edge: Int64) -> Arguments:
    """Return the arguments of the graph. ``edge``: [e] for each edge, the edge of the static graph that it comes from."""
    equations = {text: np.flatnonzero(is_in(static.entity, entities)) for text, entities in static.equations.items()}
    stop = np.cumsum(np.bincount(static.argument_edge, minlength=len(static.producer)))
    first = np.append(0, stop[:-1])
    graph_edge, place = rows_of_groups(stop[edge] - first[edge])
    return Arguments(graph_edge, static.argument_position[first[edge][graph_edge] + place], equations)


def _graph(
    trace: Trace, writer: Int64, reader: Int64, slot: Int64 | Int32, source: Source, complete: Bool, arguments: Arguments
) -> Graph:
    return Graph(
        n=trace.n,
        producer=writer.astype(np.int32),
        consumer=reader.astype(np.int32),
        slot=slot.astype(np.int32),
        control=slot < 0,
        transfer=trace.device[writer] != trace.device[reader],
        source=source if len(writer) else "none",
        complete=complete,
        arguments=arguments,
    )


def _executions(static: StaticGraph) -> tuple[Int64, Int64]:
    """Return (static edge, consumer node) for each execution of each edge's consumer."""
    timed = np.flatnonzero(static.entity >= 0)
    entity = static.entity[timed]
    total = np.bincount(entity)
    if total.max(initial=0) == 1:
        return np.arange(len(static.consumer)), _only(entity, timed)[static.consumer]
    stop = np.cumsum(total)
    order = timed[np.argsort(entity, kind="stable")]
    edge, position = rows_of_groups(total[static.consumer])
    return edge, order[(stop - total)[static.consumer][edge] + position]


def _only(entity: Int64, node: Int64) -> Int64:
    """Return the only node of each entity."""
    nodes = np.empty(len(node), np.int64)
    nodes[entity] = node
    return nodes


def _latest(trace: Trace, entity: Int64, producer: Int64, reader: Int64) -> Int64:
    """Return the execution of the producer that each reader reads, -1 for none."""
    ready = np.where(trace.op_end >= 0, trace.op_end, trace.end)
    moment = trace.start[reader]
    timed = np.flatnonzero(entity >= 0)
    if len(timed) == int(entity.max(initial=-1)) + 1:  # a step without loops
        writer = _only(entity[timed], timed)[producer]
        return np.where((ready[writer] <= moment) | (trace.start[writer] < moment), writer, -1)
    candidate = last_in_groups(entity, ready, producer, moment)
    missing = np.flatnonzero(candidate < 0)
    candidate[missing] = last_in_groups(entity, trace.start, producer[missing], moment[missing] - 1)
    return candidate


def _backwards(trace: Trace, writer: Int64, reader: Int64) -> Bool:
    """Return whether each edge could close a cycle.

    Such an edge leads from a node to itself, or from a NextIteration that did not start before the edge's consumer.
    """
    back = trace.op_types_where(NEXT_ITERATIONS.__contains__)[trace.op[writer]]
    result: Bool = (back & (trace.start[writer] >= trace.start[reader])) | (writer == reader)
    return result


def _one_input_per_merge(trace: Trace, writer: Int64, reader: Int64, control: Bool) -> Any:
    """Return which edges to keep: all, except that a Merge keeps only one data input, the one that ended last."""
    merges = np.flatnonzero(trace.op_types_where(MERGES.__contains__)[trace.op[reader]] & ~control)
    keep = np.ones(len(writer), np.bool_)
    order = merges[np.lexsort((trace.end[writer[merges]], reader[merges]))]
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = reader[order[1:]] != reader[order[:-1]]
    keep[order[~is_last]] = False
    return keep
