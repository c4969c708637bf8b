"""Writes Chrome's trace event JSON, for chrome://tracing and Perfetto.

Each device is a process, each row of a lane a thread. Times are microseconds with three decimals, relative to the start of the
first slice, which is ``otherData.origin_ns``. (As microseconds since the epoch, doubles would be 256 ns apart.) The numbers of
processes and flows depend on the content of the file, so that the events of several ranks' files can be joined in one list.
Flows follow the data edges of the graph; counters are the allocators' live bytes. docs/exports.rst lists the differences from
TensorFlow's own Timeline.

Each event is formatted as one string, in batches of about 1 ms.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2s
from json.encoder import encode_basestring as quoted
from typing import IO, get_args

import numpy as np

from tftracer.contract.trace import LaneKind
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.intervals import batches, distinct
from tftracer.trace.arrays.strings import codes_in
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.labels import kernel_name, label_inputs
from tftracer.trace.model import DeviceKind, Trace
from tftracer.trace.timeline_lanes import Layout
from tftracer.version import __version__

_BATCH = 400  # number of events that are formatted at a time, in about 1 ms
_KERNELS = (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT)
_THOUSANDTHS = [f".{number:03d}" for number in range(1000)]
_KINDS: tuple[LaneKind, ...] = get_args(LaneKind)
_ROWS_OF_A_KIND = 100_000  # each kind of lane has this many thread numbers

#: The name of a counter whose allocator has no name: TensorFlow records none for tensors received over the network.
UNNAMED = "(unnamed allocator)"


@dataclass(frozen=True)
class Row:
    """One row of one lane."""

    device: str  # as in the trace
    title: str
    tid: int  # from 1; depends only on the lane's kind and the row's position in the lane


@dataclass(frozen=True)
class Tracks:
    """The rows of a layout, and the row of each slice."""

    devices: list[str]  # in the order of their lanes
    rows: list[Row]
    node: Int64  # [slices] node indices, by (row, start)
    row: Int64  # [slices] indices into rows


def tracks_of(layout: Layout) -> Tracks:
    """Return the layout's rows with names and numbers."""
    rows = [
        Row(
            lane["device"],
            lane["title"] if not i else f"{lane['title']} ({i + 1})",
            _KINDS.index(lane["kind"]) * _ROWS_OF_A_KIND + i + 1,
        )
        for lane in layout.lanes
        for i in range(lane["rows"])
    ]
    offsets = layout.row_offsets.astype(np.int64)
    counts: Int64 = offsets[1:] - offsets[:-1]
    return Tracks(list(dict.fromkeys(row.device for row in rows)), rows, layout.order, np.repeat(np.arange(len(rows)), counts))


def _origin_and_identity(traces: list[Trace]) -> tuple[int, str]:
    """Return (epoch nanoseconds of the file's time 0, a hash that differs between sets of traces)."""
    origin = min((trace.origin_ns + int(trace.start[trace.drawn].min(initial=0)) for trace in traces if trace.n), default=0)
    facts = " ".join(f"{trace.origin_ns} {trace.n} {trace.duration_ns}" for trace in traces)
    return origin, blake2s(facts.encode(), digest_size=6).hexdigest()


def process_id(device: str, identity: str) -> int:
    """Return the number of a device's process in the file: 31 bits of a hash."""
    digest = blake2s(f"{identity} {device}".encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF or 1


def write_chrome_traces(
    traces: list[tuple[str, Answers]], file: IO[bytes], *, show_dataflow: bool = True, show_memory: bool = False
) -> None:
    """Write several traces, of a session or of a job's processes, as one JSON object.

    ``traces``: (title, answers) of each. The names of its processes begin with the title; if it is "", with the rank, if known.
    """
    for part in chrome_traces(traces, show_dataflow=show_dataflow, show_memory=show_memory):
        file.write(part.encode("utf-8", "replace"))


def chrome_traces(traces: list[tuple[str, Answers]], *, show_dataflow: bool = True, show_memory: bool = False) -> Iterator[str]:
    """Yield the output of ``write_chrome_traces`` in parts."""
    origin_ns, identity = _origin_and_identity([answers.trace for _, answers in traces])
    findings = [finding for _, answers in traces for finding in answers.findings()]
    about = json.dumps({"tftracer": __version__, "origin_ns": str(origin_ns), "findings": findings})
    opening = f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":['
    flows = process_id("flows", identity) << 21  # below 2^52, so that a double can hold it exactly
    for title, answers in traces:
        rank = answers.context.rank
        title = title or ("" if rank is None else f"rank {rank}")
        writer = _Trace(
            answers, answers.trace.origin_ns - origin_ns if answers.trace.n else 0, f"{identity} {title}", title, flows
        )
        for part in writer.events(show_dataflow, show_memory):
            if part:
                yield opening + part.removeprefix("," if opening else "")
                opening = ""
        flows = writer.flows
    yield f"{opening}\n]}}\n"


def _meta(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}, separators=(",", ":"), ensure_ascii=False)


class _Trace:
    """Writes one trace of the file. ``shift``: from its time 0 to the file's. ``flows``: the number of the next flow; Perfetto
    accepts only numbers."""

    def __init__(self, answers: Answers, shift: int, identity: str, title: str, flows: int) -> None:
        self._answers = answers
        self._tracks = tracks_of(answers.layout)
        self._shift, self._identity, self._title, self.flows = shift, identity, title, flows

    def events(self, show_dataflow: bool, show_memory: bool) -> Iterator[str]:
        """Yield the events in parts. A comma and a line feed precede each event."""
        yield "".join(f",\n{event}" for event in self._metadata())
        yield from self._slices()
        if show_dataflow:
            yield from self._flows()
        if show_memory:
            yield from self._counters()

    def _metadata(self) -> Iterator[str]:
        """Yield the names of processes and threads.

        Devices have short titles, because Perfetto shows only the last part of a name with slashes.
        """
        titles = {device.name: device.title for device in self._answers.trace.devices}
        for order, device in enumerate(self._tracks.devices):
            pid = process_id(device, self._identity)
            yield _meta("process_name", pid, 0, {"name": f"{self._title} {titles[device]}".strip(), "device": device})
            yield _meta("process_sort_index", pid, 0, {"sort_index": order})
        for row in self._tracks.rows:
            pid = process_id(row.device, self._identity)
            yield _meta("thread_name", pid, row.tid, {"name": row.title})
            yield _meta("thread_sort_index", pid, row.tid, {"sort_index": row.tid})

    def _places(self) -> list[str]:
        """Return for each row the text before the time of an event."""
        return [f'"pid":{process_id(row.device, self._identity)},"tid":{row.tid},"ts":' for row in self._tracks.rows]

    def _slices(self) -> Iterator[str]:
        """Yield the slices with the same fields as TensorFlow's: ``"name":OP,"args":{"name":...,"op":...,"input0":...}``."""
        trace, tracks = self._answers.trace, self._tracks
        places = self._places()
        ops = [quoted(op or "unknown") for op in trace.ops]
        is_kernel = [device.kind in _KERNELS for device in trace.devices]
        for part in batches(len(tracks.node), _BATCH):
            node = tracks.node[part.start : part.stop]
            label = trace.label[node]
            starts, durations = _microseconds(trace.start[node] + self._shift), _microseconds(trace.end[node] - trace.start[node])
            names, labels = map(quoted, trace.names.texts(trace.name[node])), trace.labels.texts(label)
            fields = [
                _kernel(name, text) if is_kernel[device] else f'{ops[op]},"args":{{"name":{name},"op":{ops[op]}{_inputs(text)}'
                for device, op, name, text in zip(trace.device[node].tolist(), trace.op[node].tolist(), names, labels)
            ]
            columns = (tracks.row[part.start : part.stop].tolist(), starts, durations, fields)
            yield "".join(
                [
                    f',\n{{"ph":"X","cat":"Op",{places[row]}{start},"dur":{duration},"name":{text}}}}}'
                    for row, start, duration, text in zip(*columns)
                ]
            )

    def _flows(self) -> Iterator[str]:
        """Yield an arrow for each data edge between two rows, from inside the producer's slice to the consumer's start.

        Slices of zero length get no arrows, and no arrow leads back in time.
        """
        trace, tracks = self._answers.trace, self._tracks
        start, end = trace.start + self._shift, trace.end + self._shift
        row = np.full(trace.n, -1, np.int64)
        row[tracks.node] = tracks.row
        producer, consumer = data_edges(self._answers)
        drawn = (row[producer] >= 0) & (row[consumer] >= 0) & (row[producer] != row[consumer])
        drawn &= (end[producer] > start[producer]) & (end[consumer] > start[consumer]) & (end[producer] - 1 <= start[consumer])
        producer, consumer, places = producer[drawn], consumer[drawn], self._places()
        for part in batches(len(producer), _BATCH):
            a, b = producer[part.start : part.stop], consumer[part.start : part.stop]
            ends = (row[a].tolist(), _microseconds(end[a] - 1), row[b].tolist(), _microseconds(start[b]))
            yield "".join(
                f',\n{{"ph":"s","cat":"DataFlow","name":"tensor","id":"{number}",{places[source]}{from_us}}}'
                f',\n{{"ph":"f","bp":"e","cat":"DataFlow","name":"tensor","id":"{number}",{places[target]}{to_us}}}'
                for number, source, from_us, target, to_us in zip(range(self.flows + part.start, self.flows + part.stop), *ends)
            )
        self.flows += len(producer)

    def _counters(self) -> Iterator[str]:
        """Yield live bytes over time, as one counter per allocator."""
        for curve in self._answers.curves:
            pid = process_id(curve["device"], self._identity)
            name = json.dumps(curve["allocator"] or UNNAMED, ensure_ascii=False)
            times = [int(time) + self._shift for time in curve["time_ns"]]
            yield "".join(
                f',\n{{"ph":"C","cat":"Memory","name":{name},"pid":{pid},"tid":0,'
                f'"ts":{time // 1000}.{time % 1000:03d},"args":{{{name}:{int(size)}}}}}'
                for time, size in zip(times, curve["bytes"])
            )


def _microseconds(nanoseconds: Int64) -> list[str]:
    """Format nanoseconds as microseconds with three decimals: ``1.000``, ``1.024``."""
    whole, rest = np.divmod(nanoseconds, 1000)
    return [f"{number}{_THOUSANDTHS[decimals]}" for number, decimals in zip(whole.tolist(), rest.tolist())]


def _inputs(label: str) -> str:
    """Return the label's inputs as JSON fields; the whole label if it has another form. A comma precedes each field."""
    _, equals, call = label.rpartition(" = ")
    inside, closed, _ = call.partition("(")[2].rpartition(")")
    if not equals or not closed:
        return f',"label":{quoted(label)}' if label else ""
    inputs = quoted(inside)[1:-1].split(", ")
    return _fields(len(inputs)) % tuple(inputs) if inside else ""


@functools.lru_cache(maxsize=64)
def _fields(inputs: int) -> str:
    return "".join(f',"input{i}":"%s"' for i in range(inputs))


def _kernel(name: str, label: str) -> str:
    """Return the title and the fields of a kernel or copy. ``name``: as JSON."""
    name, op = kernel_name(label, json.loads(name))
    title = quoted(op or "unknown")
    return f'{title},"args":{{"name":{quoted(name)},"op":{title},"label":{quoted(label)}'


def data_edges(answers: Answers) -> tuple[Int64, Int64]:
    """Return (producers, consumers) of the graph's data edges."""
    if labels_hold_all_edges(answers.trace):
        return _edges_of_labels(answers)
    graph = answers.graph
    data = ~graph.control
    return graph.producer[data].astype(np.int64), graph.consumer[data].astype(np.int64)


def labels_hold_all_edges(trace: Trace) -> bool:
    """Return whether the ops' labels have all data edges: in a step on one device without loops, each name is executed once.

    Reading the labels takes a tenth of the time of reading the partition graph.
    """
    merges = {"Merge", "RefMerge", "_XlaMerge"}
    single = len(trace.devices) <= 1 and len(trace.names) >= trace.n and len(trace.labels) >= trace.n
    return single and not merges & set(trace.ops)


def _edges_of_labels(answers: Answers) -> tuple[Int64, Int64]:
    """Return the edges for a trace in which each label and each name belongs to one node."""
    trace = answers.trace
    by_name, by_label = np.zeros(trace.n, np.int64), np.zeros(trace.n, np.int64)
    by_name[trace.name] = by_label[trace.label] = np.arange(trace.n)
    inputs = label_inputs(trace.labels, answers.parentheses)
    name = codes_in(trace.names, bytes(trace.labels.data), inputs.offset, inputs.size)
    is_named = (name >= 0) & ~inputs.control
    edge = distinct(by_label[inputs.label[is_named]] * max(trace.n, 1) + by_name[name[is_named]])
    consumer, producer = edge // max(trace.n, 1), edge % max(trace.n, 1)
    kept = producer != consumer
    return producer[kept], consumer[kept]
