"""Builds the static graph of a step: edges between names on devices, not between single executions.

Edges come from the partition graphs if the trace has them, or else from the inputs in the labels. TensorFlow does not record its
own _Send and _Recv nodes: a consumer of a _Recv is linked to the RecvTensor of the tensor, or to the producer on the other
device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tftracer.errors import FormatError, TruncatedError
from tftracer.trace.arrays.groups import rows_of_groups
from tftracer.trace.arrays.intervals import Numbering, distinct, paced
from tftracer.trace.arrays.strings import Hasher, codes_in, codes_of, find, hashed
from tftracer.trace.arrays.types import Bool, Int64, UInt64
from tftracer.trace.decode.executed_graph import RECEIVES, SENDS, channel
from tftracer.trace.decode.graphdef import GraphNodes, read_graph
from tftracer.trace.decode.labels import Received, label_inputs, parse_input, parse_received, split_parentheses
from tftracer.trace.decode.outputs_and_memory import message
from tftracer.trace.model import Span, Trace

Source = Literal["partition_graph", "function_graph", "labels", "none"]

#: Producer and consumer as entities; index of the producer's output; index of the consumer's input, -1 if not needed.
_Row = tuple[int, int, int, int]

_RECEIVED_SUFFIX = re.compile(r"(.+?)(?:_S\d+|/_\d+)", re.DOTALL)


@dataclass
class StaticGraph:
    """A graph of entities.

    An entity is an op (its name) on a device, or the receipt of a tensor on a device.
    """

    entity: Int64  # [n] the entity of each node of the trace, -1 for nodes without a time
    producer: Int64  # [edges] entities
    consumer: Int64  # [edges]
    slot: Int64  # [edges] index of the producer's output, -1 for control edges
    control: Bool  # [edges]
    source: Source
    complete: Bool  # [entities] whether all data inputs of each are among the edges
    argument_edge: Int64  # [arguments] the index of the edge of each input whose position is known
    argument_position: Int64  # [arguments] position of that input; several inputs may share one edge
    equations: dict[str, list[int]]  # equation -> the Einsum entities that have it


@dataclass
class _Entities:
    """Gives each entity a number: device * width + code. Codes after those of the names stand for received tensors."""

    trace: Trace
    needs_positions: Bool  # [ops] whether input positions of this op type are needed
    tensors: dict[str, int] = field(default_factory=dict)
    received: dict[tuple[int, str], int] = field(default_factory=dict)  # (device, tensor or its producer) -> entity
    arrivals: list[tuple[int, Received]] = field(default_factory=list)  # each received tensor's entity and label

    def __post_init__(self) -> None:
        trace = self.trace
        self.devices = {device.name: i for i, device in enumerate(trace.devices)}
        rows, which, transfers = self._transfers()
        self.width = len(trace.names) + len(self.tensors) + 1
        self.of_node: Int64 = trace.device.astype(np.int64) * self.width + trace.name
        entities = [self._arrival(device, transfer) for device, transfer in transfers]
        if len(rows):
            self.of_node[rows] = np.array(entities, np.int64)[which]
        self.present = Numbering(self.of_node[trace.start >= 0])
        self.present_set: set[int] = set()
        self.entity_needs_positions = np.zeros(len(self.present) + 1, np.bool_)  # last: for entities that did not run
        self.entity_needs_positions[self.present(self.of_node[self.needs_positions[trace.op]])] = True
        self.entity_needs_positions[-1] = False
        self.is_complete = np.zeros(len(self.present) + 1, np.bool_)
        self.equations: dict[str, list[int]] = {}

    def _arrival(self, device: int, transfer: Received) -> int:
        """Return the entity of a tensor received on a device."""
        entity = device * self.width + len(self.trace.names) + self.tensors[transfer.tensor]
        if (device, transfer.tensor) not in self.received:
            self.received[device, transfer.tensor] = entity
            self.received.setdefault((device, transfer.producer), entity)
            self.arrivals.append((entity, transfer))
        return entity

    def _transfers(self) -> tuple[Int64, Int64, list[tuple[int, Received]]]:
        """Return (nodes of all RecvTensors, index of each in the list, list of (device, parsed label))."""
        trace = self.trace
        rows = np.flatnonzero(trace.op == find(trace.ops, b"RecvTensor"))
        pair = trace.device[rows].astype(np.int64) << 32 | trace.label[rows]
        pairs, which = np.unique(pair, return_inverse=True)
        transfers: list[tuple[int, Received]] = []
        for device, label in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist()):
            transfer = parse_received(trace.labels[label]) or Received(0, "", "", "")
            self.tensors.setdefault(transfer.tensor, len(self.tensors))
            transfers.append((device, transfer))
        return rows, which.reshape(-1), transfers

    def executed(self, entities: Int64) -> Bool:
        """Return [entities] whether each was executed."""
        return self.present(entities) >= 0

    def positions(self, consumer: Int64, owner: Int64, slot: Int64) -> Int64:
        """Return [inputs] the index of each among its op's data inputs, if it is needed; else -1.

        ``owner``: [inputs] the number of the op; the inputs of each op are in the op's input order.
        """
        position = np.full(len(consumer), -1, np.int64)
        rows = np.flatnonzero(self.entity_needs_positions[self.present(consumer)] & (slot >= 0))
        rows = rows[np.argsort(owner[rows], kind="stable")]
        position[rows] = np.arange(len(rows)) - np.searchsorted(owner[rows], owner[rows])
        return position

    def has(self, entity: int) -> bool:
        """Return whether one entity was executed."""
        if not self.present_set:
            self.present_set.update(self.present.values.tolist())
        return entity in self.present_set


def static_graph(trace: Trace, needs_positions: Bool | None = None) -> StaticGraph:
    """Build the edges between executed entities. A partition graph that cannot be read is ignored.

    ``needs_positions``: [ops] the op types whose ``argument_position`` are needed; None: no types.
    """
    entities = _Entities(trace, np.zeros(len(trace.ops), np.bool_) if needs_positions is None else needs_positions)
    edges = _from_graphs(entities)
    source_of_graph: Source = "function_graph" if trace.has_definitions else "partition_graph"
    source: Source = source_of_graph if edges else "labels"
    if not edges:
        edges = _from_labels(entities)
    numbers = entities.present
    producer, consumer, slot, position = np.concatenate(edges).T if edges else np.zeros((4, 0), np.int64)
    producer, consumer = numbers(producer), numbers(consumer)
    entities.is_complete[consumer[(producer < 0) & (slot >= 0)]] = False
    (producer, consumer, slot), argument, position = _distinct(producer, consumer, slot, position, len(numbers))
    return StaticGraph(
        entity=numbers(entities.of_node),
        producer=producer,
        consumer=consumer,
        slot=slot,
        control=slot < 0,
        source=source if len(slot) else "none",
        complete=entities.is_complete[:-1],
        argument_edge=argument,
        argument_position=position,
        equations=entities.equations,
    )


def _distinct(
    producer: Int64, consumer: Int64, slot: Int64, position: Int64, n: int
) -> tuple[tuple[Int64, Int64, Int64], Int64, Int64]:
    """Return ((producer, consumer, slot) of the distinct edges, edges of the inputs with known positions, their positions).

    Edges from or to entities that were not executed, and edges to themselves, are left out.
    """
    kept = (producer >= 0) & (consumer >= 0) & (producer != consumer)
    slot = np.maximum(slot[kept], -1) + 1
    slots = Numbering(slot)  # n is at most 2^23, and an op has at most 2^16 outputs: the key fits
    keys = (slots(slot) * n + consumer[kept]) * n + producer[kept]
    known = position[kept] >= 0
    key = distinct(keys)
    edge = np.searchsorted(key, keys[known])
    order = np.argsort(edge, kind="stable")
    pair = key // max(n, 1)
    edges = key - pair * n, pair % max(n, 1), slots.values[pair // max(n, 1)] - 1
    return edges, edge[order], position[kept][known][order]


def _arrivals(entities: _Entities, names: dict[str, int], slot: Callable[[Received], int]) -> list[_Row]:
    """Return edges from producers on the sending device to their RecvTensors. ``slot``: the output that was sent; -1: control."""
    rows = []
    for entity, transfer in entities.arrivals:
        device, name = entities.devices.get(transfer.source), names.get(transfer.producer)
        if device is not None and name is not None:
            rows.append((device * entities.width + name, entity, slot(transfer), -1))
    return rows


# --------------------------------------------------------------------------------------------------- partition graphs


def _from_graphs(entities: _Entities) -> list[Int64]:
    hasher, hashes = hashed(entities.trace.names)
    graphs = _graphs(entities.trace, hasher)
    if not graphs:
        return []
    channels = _Channels(entities, graphs)
    edges = [_of_graph(entities, graph, hashes, channels) for graph in graphs]
    rows = channels.arrivals() + channels.rows
    if rows:
        edges.append(np.array(rows, np.int64))
    return [part for part in edges if len(part)]


def _graphs(trace: Trace, hasher: Hasher) -> list[GraphNodes]:
    graphs = []
    raw, spans = trace.raw, trace.partition_graphs
    if trace.load_graph is not None:
        raw = trace.load_graph()
        spans = [Span(0, len(raw))]
    for span in spans:
        try:
            graph = read_graph(raw, span, hasher)
        except (FormatError, TruncatedError):
            continue
        if len(graph.name):
            graphs.append(graph)
    return graphs


def _of_graph(entities: _Entities, graph: GraphNodes, hashes: UInt64, channels: _Channels) -> Int64:
    """Return the edges between nodes of one graph; edges to consumers of a _Recv are added to ``channels``."""
    codes = np.array([entities.devices.get(name, -1) for name in graph.devices] or [-1], np.int64)
    base = np.where(codes < 0, -1, codes * entities.width)[graph.device]
    name = codes_of(hashes, graph.name)
    node_in_trace = (base >= 0) & (name >= 0)
    entity = np.where(node_in_trace, base + name, -1)
    source = codes_of(hashes, graph.source)
    producer = _base_of_sources(graph, base) + source
    edge_is_kept = node_in_trace[graph.node] & (source >= 0) & entities.executed(producer)
    consumer = entity[graph.node]
    position = entities.positions(consumer, graph.node, graph.slot)
    missing = np.flatnonzero(node_in_trace[graph.node] & ~edge_is_kept)
    missing = missing[~channels.add_edges_across_devices(graph, missing, entity, base, position)]
    producer[missing] = -1
    edge_is_kept[missing] = graph.slot[missing] >= 0
    entities.is_complete[entities.present(entity)] = True
    _note_equations(entities, graph, entity)
    return np.stack([producer, consumer, graph.slot, position], 1)[edge_is_kept]


def _note_equations(entities: _Entities, graph: GraphNodes, entity: Int64) -> None:
    """Store the equation of each Einsum; only the attributes of its NodeDef have it."""
    ops = tuple(op.encode() for op in entities.trace.ops if op.endswith("Einsum"))
    for i, node in (_nodes(graph, ops) if ops else {}).items():
        number = int(entities.present(entity[i : i + 1])[0])
        if number >= 0 and "equation" in node.attr:
            entities.equations.setdefault(node.attr["equation"].s.decode("utf-8", "replace"), []).append(number)


def _base_of_sources(graph: GraphNodes, base: Int64) -> Int64:
    """Return the first entity number of the device of each input's producer; a function's graph has nodes of several devices.

    ``base``: [nodes] the first number of each node's own device. If the graph lacks a producer, the device of
    its consumer is used.
    """
    if len(graph.devices) < 2:
        return base[graph.node]
    source = codes_of(graph.name, graph.source)
    return np.where(source >= 0, base[source], base[graph.node])


class _Channels:
    """Finds the edges across _Send and _Recv nodes. There are few such nodes, so they are read one by one."""

    def __init__(self, entities: _Entities, graphs: list[GraphNodes]) -> None:
        self.entities = entities
        self.rows: list[_Row] = []
        self.sends: dict[tuple[bytes, ...], Any] = {
            channel(node): node for graph in graphs for node in _nodes(graph, SENDS).values()
        }

    @cached_property
    def names(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.entities.trace.names)}

    def arrivals(self) -> list[_Row]:
        return _arrivals(self.entities, self.names, self._slot) if self.entities.arrivals else []

    def _slot(self, transfer: Received) -> int:
        """Return the output that the matching _Send reads; -1 for a control edge, whose _Send reads a constant that is named
        after the producer."""
        texts = transfer.tensor, transfer.source, transfer.destination
        send = self.sends.get(tuple(text.encode("utf-8", "replace") for text in texts))
        source = parse_input(send.input[0] if send is not None and send.input else transfer.producer)
        if source.name == transfer.producer:
            return source.slot
        return -1 if source.name.startswith(f"{transfer.producer}/ctrl") else 0

    def add_edges_across_devices(self, graph: GraphNodes, missing: Int64, entity: Int64, base: Int64, position: Int64) -> Bool:
        """Add edges to the consumers of a graph's _Recv nodes.

        ``missing``: inputs whose producer did not run in this graph. Return for each whether a producer was found elsewhere.
        """
        is_found, receives = np.zeros(len(missing), np.bool_), _nodes(graph, RECEIVES)
        if not receives:
            return is_found
        by_name = {node.name.encode("utf-8"): (node, int(base[i])) for i, node in receives.items()}
        for number, which in enumerate(missing.tolist()):
            receiver = by_name.get(graph.text(which))
            if receiver is not None:
                consumer = int(graph.node[which])
                rows = self._edges_across_devices(receiver[0], int(base[consumer]), int(entity[consumer]), int(position[which]))
                self.rows += rows
                is_found[number] = bool(rows)
        for i, node in receives.items():  # if TensorFlow recorded the _Recv nodes themselves
            if entity[i] >= 0:
                self.rows += self._edges_across_devices(node, int(base[i]), int(entity[i]), -1)
        return is_found

    def _edges_across_devices(self, receive: Any, base: int, consumer: int, position: int) -> list[_Row]:
        """Return the edges that replace a _Recv: from the RecvTensor of its tensor, or from the input of the matching _Send."""
        entities, tensor = self.entities, channel(receive)
        arrived = entities.received.get((base // entities.width, tensor[0].decode("utf-8", "replace")))
        if arrived is not None and entities.has(arrived):
            return [(arrived, consumer, 0, position)]
        send = self.sends.get(tensor)
        if send is None or not send.input:
            return []
        base = entities.devices.get(tensor[1].decode("utf-8", "replace"), -1) * entities.width
        if base < 0:
            return []
        if send.name in self.names and entities.has(base + self.names[send.name]):
            return [(base + self.names[send.name], consumer, 0, position)]
        source = parse_input(send.input[0])
        return [(base + self.names[source.name], consumer, source.slot, position)] if source.name in self.names else []


def receives(trace: Trace) -> set[tuple[str, str, str]]:
    """Return (tensor, sending device, receiving device) of all _Recv nodes of the partition graphs."""
    hasher, _ = hashed(trace.names)
    nodes = [node for graph in _graphs(trace, hasher) for node in _nodes(graph, RECEIVES).values()]
    tensors: set[tuple[str, str, str]] = set()
    for node in paced(nodes, 500):
        tensor, sender, receiver = (text.decode("utf-8", "replace") for text in channel(node))
        tensors.add((tensor, sender, receiver))
    return tensors


def _nodes(graph: GraphNodes, ops: tuple[bytes, ...]) -> dict[int, Any]:
    """Return the NodeDefs of some op types, by their numbers in the graph."""
    selected = np.sort(np.concatenate([graph.of_op(op) for op in ops])).tolist()
    return {i: message("NodeDef", graph.span(i)) for i in paced(selected, 500)}


# ------------------------------------------------------------------------------------------------------------- labels


def _from_labels(entities: _Entities) -> list[Int64]:
    trace = entities.trace
    parts = split_parentheses(trace.labels)
    inputs = label_inputs(trace.labels, parts)
    entities.is_complete[entities.present(entities.of_node[parts.has_op[trace.label]])] = True
    name = codes_in(trace.names, bytes(trace.labels.data), inputs.offset, inputs.size)
    # The distinct triples (label, device, name) that were executed: a label has one name, and may run on several devices.
    device_count, name_count, width = len(trace.devices), len(trace.names), entities.width  # 2^16 * 2^23 * 2^23 fit an int64
    key = distinct((trace.label.astype(np.int64) * device_count + trace.device) * name_count + trace.name)
    pair_label, pair_device = key // name_count // device_count, key // name_count % device_count
    pair_name = key % max(name_count, 1)
    low = np.searchsorted(pair_label, inputs.label, "left")
    which, place = rows_of_groups(np.searchsorted(pair_label, inputs.label, "right") - low)
    pair = low[which] + place
    base = pair_device[pair] * width
    consumer = base + pair_name[pair]
    producer = base + name[which]
    is_there = (name[which] >= 0) & entities.executed(producer)
    slot, input_position = inputs.slot[which], entities.positions(consumer, pair, inputs.slot[which])
    edges = [np.stack([producer, consumer, slot, input_position], 1)[is_there]]
    missing = np.stack([pair_device[pair], consumer, which, slot, input_position], 1)[~is_there]
    names = {text: code for code, text in enumerate(trace.names)} if len(missing) or entities.arrivals else {}
    rows = _arrivals(entities, names, lambda _: 0)  # labels do not have the output's index
    for device, reader, input_row, output_slot, position in missing.tolist():
        text = trace.labels.data[inputs.offset[input_row] : inputs.offset[input_row] + inputs.size[input_row]]
        source = _from_elsewhere(entities, bytes(text).decode("utf-8", "replace"), device, reader, names)
        rows.append((source, reader, min(output_slot, 0) if source >= 0 else output_slot, position))
    if rows:
        edges.append(np.array(rows, np.int64))
    return [part for part in edges if len(part)]


def _from_elsewhere(entities: _Entities, text: str, device: int, consumer: int, names: dict[str, int]) -> int:
    """Return the entity that produces an input, if no op of this name ran on this device; -1 for none.

    `MatMul/ReadVariableOp_S249` and `Cast/_245` are nodes that the partitioner added to receive a tensor, usually from another
    device; they are not recorded.
    """
    received = _RECEIVED_SUFFIX.fullmatch(text)
    name = received.group(1) if received else text
    arrived = entities.received.get((device, name))
    if arrived is not None:
        return arrived
    code = names.get(name)
    if code is None:
        return -1
    devices = sorted(range(len(entities.trace.devices)), key=lambda i: i == device)
    producers = (i * entities.width + code for i in devices)
    return next((producer for producer in producers if producer != consumer and entities.has(producer)), -1)
