"""Chrome's trace event JSON, for chrome://tracing and Perfetto.

A process for each device, whose number is a function of its name, and a thread for each row of a lane, whose number is a
function of the lane's kind and the row: the events of several traces of a job, or of a whole session, can be put into one
list. Times are microseconds since the epoch, as TensorFlow writes them, cut to quarters: a double holds no finer ones, and
uneven rounding would make slices overlap. Flows run along the data edges of the graph, counters are the allocators'
live bytes. Differences from TensorFlow's own Timeline are listed in docs/exports.rst.

Text is built in bulk: each distinct string is escaped once, and an event is one formatted join.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from hashlib import blake2s
from typing import IO

import numpy as np

from tftracer.export.tracks import Tracks, tracks_of
from tftracer.trace.answers import Answers
from tftracer.trace.intervals import bites, distinct
from tftracer.trace.labels import kernel_name, label_inputs
from tftracer.trace.model import DeviceKind, Int64, StringTable, Trace
from tftracer.trace.static_graph import name_codes
from tftracer.version import __version__
from tftracer.web.messages import Finding

_ESCAPES = re.compile(rb'["\\\x00-\x1f]')
_QUARTERS = ("", ".25", ".5", ".75")
_GRID_NS = 250


def process_id(device: str, prefix: str = "") -> int:
    """31 bits of a hash of the device's name: the same device has the same number in every trace."""
    return (
        int.from_bytes(blake2s(f"{prefix}{device}".encode("utf-8", "replace"), digest_size=4).digest(), "big") & 0x7FFFFFFF or 1
    )


def write_chrome_trace(
    answers: Answers, file: IO[bytes], *, show_dataflow: bool = True, show_memory: bool = False, pid_prefix: str = ""
) -> None:
    """Write one trace as a JSON object. ``pid_prefix`` (a rank's name, say) tells the same device of two processes apart."""
    write_chrome_traces([(pid_prefix, answers)], file, show_dataflow=show_dataflow, show_memory=show_memory)


def write_chrome_traces(
    traces: list[tuple[str, Answers]], file: IO[bytes], *, show_dataflow: bool = True, show_memory: bool = False
) -> None:
    """Write several traces, of a session or of a job's processes, as one JSON object: (prefix, answers) of each."""
    findings: list[Finding] = []
    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    separator = b""
    for number, (prefix, answers) in enumerate(traces):
        for part in _trace_events(answers, prefix, f"{number}." if len(traces) > 1 else "", show_dataflow, show_memory):
            if part:
                file.write(separator + part.encode("utf-8", "replace"))
                separator = b",\n"
        findings += answers.findings()
    about = {"tftracer": __version__, "findings": findings}
    file.write(b'\n],"otherData":' + json.dumps(about).encode() + b"}\n")


def _trace_events(answers: Answers, prefix: str, flow: str, show_dataflow: bool, show_memory: bool) -> Iterator[str]:
    """The events in parts of some thousands, each joined."""
    trace, tracks = answers.trace, tracks_of(answers.trace, answers.layout)
    yield ",\n".join(_metadata(tracks, prefix))
    yield from _slices(trace, tracks, prefix)
    if show_dataflow:
        yield from _flows(answers, tracks, prefix, flow)
    if show_memory:
        yield from _counters(answers, prefix)


def _metadata(tracks: Tracks, prefix: str) -> Iterator[str]:
    title = f"{prefix} " if prefix else ""
    for order, device in enumerate(tracks.devices):
        pid = process_id(device, prefix)
        yield _meta("process_name", pid, 0, {"name": f"{title}{device}"})
        yield _meta("process_sort_index", pid, 0, {"sort_index": order})
    for row in tracks.rows:
        pid = process_id(row.device, prefix)
        yield _meta("thread_name", pid, row.tid, {"name": row.title})
        yield _meta("thread_sort_index", pid, row.tid, {"sort_index": row.tid})


def _meta(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}, separators=(",", ":"), ensure_ascii=False)


# ---------------------------------------------------------------------------------------------------------------- slices


def _grid(trace: Trace, times: Int64) -> Int64:
    """Epoch time in quarters of a microsecond, rounded down: order and absence of overlaps survive."""
    result: Int64 = (times + trace.origin_ns) // _GRID_NS
    return result


def _slices(trace: Trace, tracks: Tracks, prefix: str) -> Iterator[str]:
    heads = [f'{{"ph":"X","cat":"Op","pid":{process_id(row.device, prefix)},"tid":{row.tid},"ts":' for row in tracks.rows]
    args = _Arguments(trace)
    node, row = tracks.node, tracks.row
    start = _grid(trace, trace.start[node])
    duration = _grid(trace, trace.end[node]) - start
    for part in bites(len(node)):
        at = slice(part.start, part.stop)
        chosen = node[at]
        micros, quarter = (start[at] >> 2).tolist(), (start[at] & 3).tolist()
        long, rest = (duration[at] >> 2).tolist(), (duration[at] & 3).tolist()
        columns = zip(row[at].tolist(), micros, quarter, long, rest, args.of(chosen))
        yield ",\n".join([f'{heads[r]}{m}{_QUARTERS[q]},"dur":{d}{_QUARTERS[e]},{a}' for r, m, q, d, e, a in columns])


class _Arguments:
    """``"name":OP,"args":{...}}`` of each node: the same fields as TensorFlow's, put together once for each distinct label."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._names = escaped(trace.names)
        self._ops = escaped(trace.ops)
        self._labels = escaped(trace.labels)
        kinds = (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT)
        self._kernels = np.array([device.kind in kinds for device in trace.devices], np.bool_)

    def of(self, nodes: Int64) -> list[str]:
        trace, names, ops, labels = self._trace, self._names, self._ops, self._labels
        columns = zip(trace.name[nodes].tolist(), trace.op[nodes].tolist(), trace.label[nodes].tolist())
        plain = [_one(names[name], ops[op], labels[label]) for name, op, label in columns]
        for i in np.flatnonzero(self._kernels[trace.device[nodes]]).tolist():
            plain[i] = self._kernel(int(nodes[i]))
        return plain

    def _kernel(self, node: int) -> str:
        trace = self._trace
        label = trace.labels[trace.label[node]]
        name, op = kernel_name(label, trace.names[trace.name[node]])
        quoted_op = json.dumps(op or "unknown", ensure_ascii=False)
        rest = json.dumps({"name": name, "op": op or "unknown", "label": label}, ensure_ascii=False)
        return f'"name":{quoted_op},"args":{rest}}}'


def _one(name: str, op: str, label: str) -> str:
    op = op or "unknown"
    head = f'"name":"{op}","args":{{"name":"{name}","op":"{op}"'
    inputs = _listed(label)
    if inputs is None:
        return f'{head},"label":"{label}"}}}}' if label else head + "}}"
    if not inputs:
        return head + "}}"
    parts = inputs.split(", ")
    return head + _template(len(parts)) % tuple(parts) + "}}"


def _listed(label: str) -> str | None:
    """``a, b`` of ``name = Op(a, b)``; None for a label of another form."""
    equals = label.rfind(" = ")
    opened = label.find("(", equals + 3)
    closed = len(label) - 1 if label.endswith(")") else label.rfind(")")
    return label[opened + 1 : closed] if 0 <= equals < opened < closed else None


@functools.lru_cache(maxsize=256)
def _template(inputs: int) -> str:
    return "".join(f',"input{i}":"%s"' for i in range(inputs))


def escaped(table: StringTable) -> list[str]:
    """Every string as it stands between the quotes of JSON. Names of ops need no escape: then it is one decoding and slices."""
    data = bytes(table.data)
    if _ESCAPES.search(data):
        return [json.dumps(text, ensure_ascii=False)[1:-1] for text in table]
    if not data.isascii():
        return list(table)
    text, offsets = data.decode("ascii"), table.offsets.tolist()
    return [text[low:high] for low, high in zip(offsets, offsets[1:])]


# ----------------------------------------------------------------------------------------------------- flows and counters


def _flows(answers: Answers, tracks: Tracks, prefix: str, flow: str) -> Iterator[str]:
    """An arrow for each data edge between two rows, from inside the producer's slice to the consumer's start.

    A slice that has no length on the grid can hold no end of an arrow, and an arrow does not run back in time.
    """
    trace = answers.trace
    start, end = _grid(trace, trace.start), _grid(trace, trace.end)
    row = np.full(trace.n, -1, np.int64)
    row[tracks.node] = tracks.row
    made, used = data_edges(answers)
    drawn = (row[made] >= 0) & (row[used] >= 0) & (row[made] != row[used])
    drawn &= (end[made] > start[made]) & (end[used] > start[used]) & (end[made] - 1 <= start[used])
    made, used = made[drawn], used[drawn]
    where = [f'"pid":{process_id(entry.device, prefix)},"tid":{entry.tid},"ts":' for entry in tracks.rows]
    left, entered = end[made] - 1, start[used]
    for part in bites(len(made)):
        at = slice(part.start, part.stop)
        columns = zip(
            part,
            row[made[at]].tolist(),
            (left[at] >> 2).tolist(),
            (left[at] & 3).tolist(),
            row[used[at]].tolist(),
            (entered[at] >> 2).tolist(),
            (entered[at] & 3).tolist(),
        )
        yield ",\n".join(
            [
                f'{{"ph":"s","cat":"DataFlow","name":"tensor","id":"{flow}{i}",{where[a]}{m}{_QUARTERS[q]}}},\n'
                f'{{"ph":"f","bp":"e","cat":"DataFlow","name":"tensor","id":"{flow}{i}",{where[b]}{n}{_QUARTERS[p]}}}'
                for i, a, m, q, b, n, p in columns
            ]
        )


def data_edges(answers: Answers) -> tuple[Int64, Int64]:
    """(producers, consumers) of the graph's data edges.

    In a step without loops, on one device, each name runs once and reads what its label names: the same edges as the
    partition graph's, in a tenth of the time that reading that one takes.
    """
    trace = answers.trace
    merges = {"Merge", "RefMerge", "_XlaMerge"}
    if len(trace.devices) > 1 or len(trace.names) < trace.n or len(trace.labels) < trace.n or merges & set(trace.ops):
        graph = answers.graph
        data = ~graph.control
        return graph.producer[data].astype(np.int64), graph.consumer[data].astype(np.int64)
    return _edges_of_labels(trace)


def _edges_of_labels(trace: Trace) -> tuple[Int64, Int64]:
    """Each label and each name is of one node here."""
    by_name, by_label = np.zeros(trace.n, np.int64), np.zeros(trace.n, np.int64)
    by_name[trace.name] = by_label[trace.label] = np.arange(trace.n)
    inputs = label_inputs(trace.labels)
    name = name_codes(trace, inputs.offset, inputs.size)
    known = (name >= 0) & ~inputs.control
    edge = distinct(by_label[inputs.label[known]] * max(trace.n, 1) + by_name[name[known]])
    used, producer = edge // max(trace.n, 1), edge % max(trace.n, 1)
    kept = producer != used
    return producer[kept], used[kept]


def _counters(answers: Answers, prefix: str) -> Iterator[str]:
    """Live bytes over time, a counter for each allocator."""
    origin = answers.trace.origin_ns
    for curve in answers.memory()["curves"]:
        pid = process_id(curve["device"], prefix)
        name = json.dumps(curve["allocator"], ensure_ascii=False)
        times = [(int(time) + origin) // _GRID_NS for time in curve["time_ns"]]
        parts = [
            f'{{"ph":"C","cat":"Memory","name":{name},"pid":{pid},"tid":0,'
            f'"ts":{time >> 2}{_QUARTERS[time & 3]},"args":{{{name}:{int(size)}}}}}'
            for time, size in zip(times, curve["bytes"])
        ]
        if parts:
            yield ",\n".join(parts)
