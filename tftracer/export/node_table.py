"""The data of ``node_details.node_detail`` for all nodes, as columns without an object per node, for the standalone page."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tftracer.contract.basics import Column
from tftracer.contract.standalone import Links, NodeTable, Records, Texts
from tftracer.trace.analyses.node_details import MAX_LINKS, related_nodes
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.columns import column, narrow, strings
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.labels import label_inputs, parse_input, parse_label, parse_received
from tftracer.trace.decode.outputs_and_memory import Outputs, dtype_name
from tftracer.trace.model import UNKNOWN_TIME, NodeKind, Trace

_NULL = -(1 << 31)  # stands for null in a column of i4


def node_table(answers: Answers) -> NodeTable:
    """Return all nodes of the trace, and the edges between them."""
    graph, outputs = answers.graph, answers.outputs
    order, inputs = graph.by_consumer
    links, not_run = _links(answers)
    return {
        "nodes": answers.trace.n,
        "fields": _fields(answers),
        "links": links,
        "not_run": strings(StringTable.of(not_run)),
        "output_offsets": _offsets(outputs.node, answers.trace.n),
        "outputs": _outputs(outputs),
        "input_offsets": column(inputs.astype(np.uint32)),
        "input": column(graph.producer[order].astype(np.uint32)),
    }


def _fields(answers: Answers) -> Records:
    trace, memory_stats = answers.trace, answers.memory_stats
    duration = trace.end - trace.start
    source, destination, places = _places(trace)
    thread, thread_code = np.unique(trace.thread, return_inverse=True)
    return {
        "numbers": {
            "kind": column(trace.kind.astype(np.uint8)),
            "start_ns": _numbers(trace.start),
            "end_ns": _numbers(trace.end),
            "duration_ns": _numbers(duration),
            "op_start_ns": _numbers(trace.op_start, trace.op_start >= 0),
            "op_end_ns": _numbers(trace.op_end, trace.op_end >= 0),
            "scheduled_ns": _numbers(trace.scheduled, trace.scheduled >= 0),
            "launched_ns": _launched(trace),
            "delay_ns": _numbers(trace.start - trace.scheduled, trace.scheduled >= 0),
            "share_of_type": column(_shares(trace).astype(np.float32)),
            "share_of_step": column((duration / max(trace.duration_ns, 1)).astype(np.float32)),
            "slack_ns": _numbers(answers.slack.astype(np.int64), answers.slack >= 0),
            "temporary_bytes": _numbers(memory_stats.temp_bytes),
            "persistent_bytes": _numbers(memory_stats.persistent_bytes),
            "bytes_moved": _numbers(trace.bytes_moved),
            "flops": column(answers.arithmetic.flops),
            "traffic_bytes": column(answers.arithmetic.bytes),
        },
        "flags": {"critical": column(answers.on_critical_path())},
        "texts": {
            "name": _texts(trace.name, trace.names),
            "op": _texts(trace.op, trace.ops),
            "label": _texts(trace.label, trace.labels),
            "scope": _texts(*_scopes(trace)),
            "device": _texts(trace.device, [device.name for device in trace.devices]),
            "device_title": _texts(trace.device, [device.title for device in trace.devices]),
            "thread": _texts(thread_code.reshape(-1), [str(number) for number in thread.tolist()]),
            "source": _texts(source, places),
            "destination": _texts(destination, places),
        },
    }


def _numbers(values: Int64, has_value: Bool | None = None) -> Column:
    """Encode numbers as 32-bit integers if they fit, which is half the size, else as doubles. Unknown values are null."""
    known = values if has_value is None else values[has_value]
    small = int(known.min(initial=0)) > _NULL and int(known.max(initial=0)) < 1 << 31
    if has_value is not None:
        return column(np.where(has_value, values, _NULL).astype(np.int32) if small else np.where(has_value, values, np.nan))
    return column(values.astype(np.int32 if small else np.float64))


def _launched(trace: Trace) -> Column:
    times = np.full(trace.n, UNKNOWN_TIME, np.int64) if trace.launched_at is None else trace.launched_at
    return _numbers(times, times >= 0)


def _texts(codes: npt.NDArray[Any], texts: list[str] | StringTable) -> Texts:
    table = texts if isinstance(texts, StringTable) else StringTable.of(texts)
    return {"code": column(narrow(codes, len(table))), "texts": strings(table)}


def _offsets(owner: Int64, n: int) -> Column:
    """Return [n + 1] offsets of each owner's entries in ``owner``, which is sorted."""
    offsets = np.zeros(n + 1, np.uint32)
    np.cumsum(np.bincount(owner, minlength=n), out=offsets[1:])
    return column(offsets)


def _scopes(trace: Trace) -> tuple[Int64, list[str]]:
    scopes: dict[str, int] = {}
    scope_of_name = [scopes.setdefault(name.rpartition("/")[0], len(scopes)) for name in trace.names]
    return np.array(scope_of_name or [0], np.int64)[trace.name], list(scopes)


def _shares(trace: Trace) -> npt.NDArray[np.float64]:
    """Return each node's share of the time of all counted nodes of its op type."""
    duration = (trace.end - trace.start).astype(np.float64)
    total = np.bincount(trace.op, duration * trace.counted, max(len(trace.ops), 1))[trace.op]
    return np.divide(duration, total, out=np.zeros(trace.n), where=total > 0)


def _places(trace: Trace) -> tuple[Int64, Int64, list[str]]:
    """Return (each node's source, its destination, both as codes, the list of devices); code 0 is "": no transfer."""
    places = {"": 0}
    codes = np.zeros((2, max(len(trace.labels), 1)), np.int64)
    for label in distinct(trace.label[trace.kind == NodeKind.COMMUNICATION]).tolist():
        received = parse_received(trace.labels[label])
        if received:
            codes[0, label] = places.setdefault(received.source, len(places))
            codes[1, label] = places.setdefault(received.destination, len(places))
    return codes[0][trace.label], codes[1][trace.label], list(places)


def _outputs(outputs: Outputs) -> Records:
    dtypes = distinct(outputs.dtype)
    return {
        "numbers": {
            "slot": column(outputs.slot.astype(np.int32)),
            "bytes": _numbers(np.where(outputs.allocated_bytes > 0, outputs.allocated_bytes, outputs.requested_bytes)),
        },
        "flags": {},
        "texts": {
            "dtype": _texts(np.searchsorted(dtypes, outputs.dtype), [dtype_name(int(code)) for code in dtypes]),
            "shape": _texts(outputs.shape, outputs.shapes.texts),
            "allocator": _texts(outputs.allocator, list(outputs.allocators)),
        },
    }


def _links(answers: Answers) -> tuple[dict[str, Links], list[str]]:
    """Return (the links of each field, the names of linked nodes that did not run)."""
    trace, graph = answers.trace, answers.graph
    inputs, consumers = graph.by_consumer[0], graph.by_producer[0]
    data, control = inputs[~graph.control[inputs]], inputs[graph.control[inputs]]
    reader, not_run_link, not_run = _not_run(answers)
    reader_of_input = np.concatenate([graph.consumer[data].astype(np.int64), reader])
    order = np.argsort(reader_of_input, kind="stable")
    links = {
        "inputs": (reader_of_input[order], np.concatenate([graph.producer[data].astype(np.int64), not_run_link])[order]),
        "control_inputs": (graph.consumer[control], graph.producer[control]),
        "consumers": (graph.producer[consumers], graph.consumer[consumers]),
        "related": related_nodes(trace, graph, np.arange(trace.n)),
    }
    return {name: _first_links(owner, node, trace.n) for name, (owner, node) in links.items()}, not_run


def _first_links(owner: npt.NDArray[Any], node: npt.NDArray[Any], n: int) -> Links:
    """Return the links of each owner as in ``node_details``: the first MAX_LINKS distinct ones among the first 2 * MAX_LINKS.

    ``owner`` must be sorted."""
    owner, node = owner.astype(np.int64), node.astype(np.int64)
    among_first = _place_within_owner(owner) < 2 * MAX_LINKS
    owner, node = owner[among_first], node[among_first]
    low = int(node.min(initial=0))
    _, first = np.unique(owner * (n - low + 1) + (node - low), return_index=True)
    first.sort()
    owner, node = owner[first], node[first]
    kept = _place_within_owner(owner) < MAX_LINKS
    return {"offsets": _offsets(owner[kept], n), "node": column(node[kept].astype(np.int32))}


def _place_within_owner(owner: Int64) -> Int64:
    """Return for each entry how many entries of the same owner precede it."""
    return np.arange(len(owner)) - np.searchsorted(owner, owner, "left")


def _not_run(answers: Answers) -> tuple[Int64, Int64, list[str]]:
    """Return (node, link, names) of the inputs in the labels of nodes without input edges. A link is -1 - its name's position."""
    trace = answers.trace
    offsets = answers.graph.by_consumer[1]
    named_inputs = label_inputs(trace.labels, answers.parentheses)
    names_data_inputs = np.zeros(len(trace.labels), np.bool_)
    names_data_inputs[named_inputs.label[~named_inputs.control]] = True
    names: dict[str, int] = {}
    links_of_label: dict[int, list[int]] = {}
    readers: list[int] = []
    links: list[int] = []
    for node in np.flatnonzero((offsets[1:] == offsets[:-1]) & names_data_inputs[trace.label]).tolist():
        label = int(trace.label[node])
        if label not in links_of_label:
            sources = [parse_input(text) for text in parse_label(trace.labels[label]).inputs]
            data = [source.name for source in sources if not source.control][:MAX_LINKS]
            links_of_label[label] = [-1 - names.setdefault(name, len(names)) for name in data]
        readers += [node] * len(links_of_label[label])
        links += links_of_label[label]
    return np.array(readers, np.int64), np.array(links, np.int64), list(names)
