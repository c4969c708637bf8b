"""Chrome's trace event JSON, for chrome://tracing and Perfetto.

A process for each device, a thread for each row of a lane. Times are microseconds with three decimals, relative to the start of
the first slice, which is ``otherData.origin_ns``: as microseconds since the epoch, doubles would be 256 ns apart. Numbers of
processes and flows are derived from the file's identity, so that the events of several ranks' files can be joined in one list.
Flows follow the data edges of the graph; counters are the allocators' live bytes. docs/exports.rst lists the differences from
TensorFlow's own Timeline.

NumPy builds the text in bulk, without a Python object for each event (text.py, slices.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2s
from typing import IO, get_args

import numpy as np

from tftracer.contract.trace import LaneKind
from tftracer.export.slices import slices
from tftracer.export.text import Sheet
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.intervals import batches, distinct
from tftracer.trace.arrays.lookup import codes_in
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.labels import label_inputs
from tftracer.trace.layout import Layout
from tftracer.trace.model import Trace
from tftracer.version import __version__

_BATCH = 1 << 11  # events, in about 1 ms
_KINDS: tuple[LaneKind, ...] = get_args(LaneKind)
_ROWS_OF_A_KIND = 100_000

#: What a counter is called whose allocator has no name: TensorFlow tells none for tensors that came over the network.
UNNAMED = "(unnamed allocator)"


@dataclass(frozen=True)
class Row:
    """One row of one lane."""

    device: str  # as in the trace
    title: str
    tid: int  # from 1; the same for the same row of the same kind of lane in every trace
    lane: int


@dataclass(frozen=True)
class Tracks:
    devices: list[str]  # in the order of their lanes
    rows: list[Row]
    node: Int64  # [slices] node indices, by (row, start)
    row: Int64  # [slices] indices into rows


def tracks_of(trace: Trace, layout: Layout) -> Tracks:
    """The layout's rows with names and numbers."""
    rows = [
        Row(
            trace.devices[lane.device].name,
            lane.title if not i else f"{lane.title} ({i + 1})",
            _KINDS.index(lane.kind) * _ROWS_OF_A_KIND + i + 1,
            lane.id,
        )
        for lane in layout.lanes
        for i in range(lane.rows)
    ]
    offsets = layout.row_offsets.astype(np.int64)
    counts: Int64 = offsets[1:] - offsets[:-1]
    return Tracks(
        list(dict.fromkeys(row.device for row in rows)),
        rows,
        layout.order,
        np.repeat(np.arange(len(rows)), counts),
    )


@dataclass(frozen=True)
class _File:
    """What the traces of one file have in common."""

    origin_ns: int  # time 0
    identity: str  # differs from one set of traces to another

    @classmethod
    def of(cls, traces: list[Trace]) -> _File:
        origin = min((trace.origin_ns + int(trace.start[trace.drawn].min(initial=0)) for trace in traces if trace.n), default=0)
        facts = " ".join(f"{trace.origin_ns} {trace.n} {trace.duration_ns}" for trace in traces)
        return cls(origin, blake2s(facts.encode(), digest_size=6).hexdigest())


def process_id(device: str, identity: str) -> int:
    """31 bits of a hash."""
    digest = blake2s(f"{identity} {device}".encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF or 1


def write_chrome_trace(
    answers: Answers, file: IO[bytes], *, show_dataflow: bool = True, show_memory: bool = False, title: str = ""
) -> None:
    """Write one trace as a JSON object. ``title``: a prefix for the names of its processes (default: the rank, if known)."""
    write_chrome_traces([(title, answers)], file, show_dataflow=show_dataflow, show_memory=show_memory)


def write_chrome_traces(
    traces: list[tuple[str, Answers]], file: IO[bytes], *, show_dataflow: bool = True, show_memory: bool = False
) -> None:
    """Write several traces, of a session or of a job's processes, as one JSON object: (title, answers) of each."""
    for part in chrome_traces(traces, show_dataflow=show_dataflow, show_memory=show_memory):
        file.write(part.encode("utf-8", "replace"))


def chrome_traces(traces: list[tuple[str, Answers]], *, show_dataflow: bool = True, show_memory: bool = False) -> Iterator[str]:
    """What ``write_chrome_traces`` writes, in parts of some thousand events."""
    of_file = _File.of([answers.trace for _, answers in traces])
    findings = [finding for _, answers in traces for finding in answers.findings()]
    about = json.dumps({"tftracer": __version__, "origin_ns": str(of_file.origin_ns), "findings": findings})
    before = f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":['
    flows = process_id("flows", of_file.identity) << 21  # below 2^52: a double holds them all
    for title, answers in traces:
        writer = _Trace(answers, of_file, title or _rank(answers), flows)
        for part in writer.events(show_dataflow, show_memory):
            if part:
                yield before + part.removeprefix("," if before else "")
                before = ""
        flows = writer.flows
    yield f"{before}\n]}}\n"


def _rank(answers: Answers) -> str:
    rank = answers.context.rank
    return "" if rank is None else f"rank {rank}"


def _meta(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}, separators=(",", ":"), ensure_ascii=False)


class _Trace:
    """Writes one of the file's traces. ``flows``: the id of the next flow; Perfetto accepts only numbers."""

    def __init__(self, answers: Answers, of_file: _File, title: str, flows: int) -> None:
        self._answers = answers
        self._tracks = tracks_of(answers.trace, answers.layout)
        self._title, self.flows = title, flows
        self._identity = f"{of_file.identity} {title}"
        self._shift = answers.trace.origin_ns - of_file.origin_ns if answers.trace.n else 0

    def events(self, show_dataflow: bool, show_memory: bool) -> Iterator[str]:
        """The events in parts. A comma and a line feed precede each event."""
        yield "".join(f",\n{event}" for event in self._metadata())
        yield from self._slices()
        if show_dataflow:
            yield from self._flows()
        if show_memory:
            yield from self._counters()

    def _metadata(self) -> Iterator[str]:
        """Titles are short: of a name that begins with a slash, Perfetto shows what follows the last slash."""
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
        """The text before the time of an event, for each row."""
        return [f'"pid":{process_id(row.device, self._identity)},"tid":{row.tid},"ts":' for row in self._tracks.rows]

    def _slices(self) -> Iterator[str]:
        trace, tracks = self._answers.trace, self._tracks
        rows = [f',\n{{"ph":"X","cat":"Op",{place}' for place in self._places()]
        start = trace.start[tracks.node]
        duration = trace.end[tracks.node] - start
        return slices(self._answers, tracks.node, rows, tracks.row, start + self._shift, duration)

    def _flows(self) -> Iterator[str]:
        """An arrow for each data edge between two rows, from inside the producer's slice to the consumer's start.

        A slice without length cannot hold the end of an arrow, and arrows do not run back in time.
        """
        trace, tracks = self._answers.trace, self._tracks
        start, end = trace.start + self._shift, trace.end + self._shift
        row = np.full(trace.n, -1, np.int64)
        row[tracks.node] = tracks.row
        made, used = data_edges(self._answers)
        drawn = (row[made] >= 0) & (row[used] >= 0) & (row[made] != row[used])
        drawn &= (end[made] > start[made]) & (end[used] > start[used]) & (end[made] - 1 <= start[used])
        made, used = made[drawn], used[drawn]
        arrow = '"cat":"DataFlow","name":"tensor","id":"'
        words = [
            f',\n{{"ph":"s",{arrow}',
            f'}},\n{{"ph":"f","bp":"e",{arrow}',
            "}",
            *(f'",{place}' for place in self._places()),
        ]
        sheet = Sheet([], words, _BATCH * 64)
        for part in batches(len(made), _BATCH):
            sheet.begin()
            a, b = made[part.start : part.stop], used[part.start : part.stop]
            number = sheet.numbers(np.arange(part.start, part.stop) + self.flows)
            begins, ends, close = (sheet.words(np.full(len(part), word)) for word in range(3))
            left, entered = sheet.thousandths(end[a] - 1), sheet.thousandths(start[b])
            places = sheet.words(row[a] + 3), sheet.words(row[b] + 3)
            yield sheet.lines([begins, number, places[0], left, ends, number, places[1], entered, close])
        self.flows += len(made)

    def _counters(self) -> Iterator[str]:
        """Live bytes over time, a counter for each allocator."""
        for curve in self._answers.curves:
            pid = process_id(curve["device"], self._identity)
            name = json.dumps(curve["allocator"] or UNNAMED, ensure_ascii=False)
            times = [int(time) + self._shift for time in curve["time_ns"]]
            yield "".join(
                f',\n{{"ph":"C","cat":"Memory","name":{name},"pid":{pid},"tid":0,'
                f'"ts":{time // 1000}.{time % 1000:03d},"args":{{{name}:{int(size)}}}}}'
                for time, size in zip(times, curve["bytes"])
            )


def data_edges(answers: Answers) -> tuple[Int64, Int64]:
    """(producers, consumers) of the graph's data edges."""
    if labels_hold_all_edges(answers.trace):
        return _edges_of_labels(answers)
    graph = answers.graph
    data = ~graph.control
    return graph.producer[data].astype(np.int64), graph.consumer[data].astype(np.int64)


def labels_hold_all_edges(trace: Trace) -> bool:
    """Whether the ops' labels give all data edges: in a step on one device without loops, each name runs once and reads what its
    label names. That takes a tenth of the time that it takes to read the partition graph.
    """
    merges = {"Merge", "RefMerge", "_XlaMerge"}
    single = len(trace.devices) <= 1 and len(trace.names) >= trace.n and len(trace.labels) >= trace.n
    return single and not merges & set(trace.ops)


def _edges_of_labels(answers: Answers) -> tuple[Int64, Int64]:
    """Here each label and each name belongs to one node."""
    trace = answers.trace
    by_name, by_label = np.zeros(trace.n, np.int64), np.zeros(trace.n, np.int64)
    by_name[trace.name] = by_label[trace.label] = np.arange(trace.n)
    inputs = label_inputs(trace.labels, answers.listed)
    name = codes_in(trace.names, bytes(trace.labels.data), inputs.offset, inputs.size)
    is_named = (name >= 0) & ~inputs.control
    edge = distinct(by_label[inputs.label[is_named]] * max(trace.n, 1) + by_name[name[is_named]])
    used, producer = edge // max(trace.n, 1), edge % max(trace.n, 1)
    kept = producer != used
    return producer[kept], used[kept]
