"""Finds the messages of a long list (nodes of a device or a GraphDef, events of a profile) without a Python loop over them.

A node begins with the tag of ``node_stats`` (or of ``node``), its length, and the tag of its name, because TensorFlow writes
fields in ascending order. An event begins with the tag of ``events``, its length, and its first two numbers. Every position that
looks like this is a candidate. If a candidate's end is the next candidate's begin, both are messages. If not (equal bytes inside
a string or a number, or a node without a name), one field is read in Python. The result is the same as reading field by field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.errors import FormatError
from tftracer.trace.arrays.intervals import concatenated
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.wire import LEN, Field, next_field

NODE_STATS = 2  # the number of DeviceStepStats.node_stats
GRAPH_NODE = 1  # the number of GraphDef.node
LINE_EVENTS = 4  # the number of XLine.events
BLOCK = 1 << 17  # bytes: the temporary arrays of a block fit into the second-level cache
SMALL = 1 << 12  # bytes: a shorter list is read field by field
_MIN_LIMIT = 1 << 16  # even a short list may have this many messages
_REACH = 8  # bytes from a message's tag to the end of its recognized beginning

#: A step has at most 2^20 nodes per process (model.MAX_COLLECTED_NODES); several processes and their GPUs have several times
#: that.
MAX_NODES = 1 << 23

#: Maximum number of other fields of a device or a step, such as names of threads and devices. TensorFlow writes some dozens.
MAX_OTHERS = 1 << 16


class _Beginning(NamedTuple):
    """How TensorFlow's messages begin, and their minimum mean size: a file with more messages per byte is rejected."""

    tag: int  # tag of the first field
    second: int = 0  # tag of the next field, which is a number below 2^21; 0: any
    smallest: int = 16  # bytes


#: Both NodeExecStats and NodeDef begin with their name. A node with a time takes at least 16 bytes. The limit is for files with
#: empty nodes, which would take a hundred times the size of the file in memory.
_NODE = _Beginning(0x0A)
#: XEvent's metadata_id and offset_ps. Stats begin with a metadata_id under the same tag, so the first field is not enough.
_EVENT = _Beginning(0x08, 0x10, 6)


@dataclass
class Spans:
    """Messages in the order of their bytes, and the other fields of their parent."""

    starts: list[Int64] = field(default_factory=list)
    ends: list[Int64] = field(default_factory=list)
    others: list[Field] = field(default_factory=list)
    nodes: int = 0
    limit: int = MAX_NODES

    def add(self, starts: Int64, ends: Int64) -> None:
        self.starts.append(starts)
        self.ends.append(ends)
        self.nodes += len(starts)
        if self.nodes > self.limit:
            raise FormatError(
                f"Byte {int(starts[0])}: more than {self.limit} nodes or events. TensorFlow never records so many, or "
                "not in so few bytes. Is this a RunMetadata or a profile?"
            )


def node_spans(raw: bytes, low: int, high: int, number: int = NODE_STATS) -> Spans:
    """Find the messages with field number ``number`` in the DeviceStepStats (or GraphDef) at raw[low:high].

    Raises FormatError and TruncatedError with the position of the byte.
    """
    return _message_spans(raw, low, high, number, _NODE)


def event_spans(raw: bytes, low: int, high: int) -> Spans:
    """Find the events of the XLine at raw[low:high]. Raises FormatError and TruncatedError with the position of the byte."""
    return _message_spans(raw, low, high, LINE_EVENTS, _EVENT)


def _message_spans(raw: bytes, low: int, high: int, number: int, beginning: _Beginning) -> Spans:
    spans = Spans(limit=min(MAX_NODES, max(_MIN_LIMIT, (high - low) // beginning.smallest)))
    begin, content, end = _candidates(raw, low, high, number << 3 | LEN, beginning)
    single: list[tuple[int, int]] = []  # messages that are read one by one
    breaks = np.flatnonzero(np.append(end[:-1] != begin[1:], True))  # candidates at whose end the next one does not begin
    at = low
    while at < high:
        i = int(np.searchsorted(begin, at)) if len(begin) else 0
        if i < len(begin) and begin[i] == at:
            _flush(spans, single)
            last = int(breaks[np.searchsorted(breaks, i)])
            spans.add(content[i : last + 1], end[i : last + 1])
            at = int(end[last])
            continue
        entry, at = next_field(raw, at, high)
        if entry.number == number and entry.wire == LEN:
            single.append((entry.offset, at))
            if len(single) > _MIN_LIMIT:
                _flush(spans, single)
        else:
            spans.others.append(entry)
            if len(spans.others) > MAX_OTHERS:
                raise FormatError(f"Byte {at}: more than {MAX_OTHERS} fields that are no nodes or events. Is this a RunMetadata?")
    _flush(spans, single)
    return spans


def _flush(spans: Spans, single: list[tuple[int, int]]) -> None:
    if single:
        pairs = np.array(single, np.int64)
        single.clear()
        spans.add(pairs[:, 0], pairs[:, 1])


def _candidates(raw: bytes, low: int, high: int, tag: int, beginning: _Beginning) -> tuple[Int64, Int64, Int64]:
    """Return (position of the tag, of the content, of the end) of all candidates, ascending."""
    if high - low < max(SMALL, _REACH):
        empty = np.zeros(0, np.int64)
        return empty, empty, empty
    text = np.frombuffer(raw, np.uint8, high - low, low)
    begin = concatenated([_possible_begins(text, block, tag, beginning) for block in range(0, len(text) - _REACH, BLOCK)])
    first, second = text[begin + 1], text[begin + 2]
    has_two_bytes = first >= 0x80
    length = first & 0x7F | second.astype(np.int64) << 7 & -has_two_bytes.astype(np.int64)
    content = begin + 2
    content += has_two_bytes
    end = content + length
    good = _begins(text, content, beginning)
    good &= ~(has_two_bytes & (second >= 0x80)) & (length > 0) & (end <= len(text))
    if not good.all():
        begin, content, end = begin[good], content[good], end[good]
    return begin + low, content + low, end + low


def _possible_begins(text: npt.NDArray[np.uint8], block: int, tag: int, beginning: _Beginning) -> Int64:
    """Return the positions in a block that have the tag, then a length of one or two bytes, then what may be a beginning."""
    stop = min(block + BLOCK, len(text) - _REACH)
    begins = text[block + 2 : stop + 3] == beginning.tag
    if beginning.second:
        has_second = text[block + 4 : stop + 7] == beginning.second
        begins &= has_second[:-2] | has_second[1:-1] | has_second[2:]
    is_possible = begins[:-1] | begins[1:]
    is_possible &= text[block:stop] == tag
    return np.flatnonzero(is_possible) + block


def _begins(text: npt.NDArray[np.uint8], content: Int64, beginning: _Beginning) -> Bool:
    """Return whether each content begins as a message does."""
    begins: Bool = text[content] == beginning.tag
    if beginning.second:
        is_long = text[content + 1] >= 0x80
        is_longer = is_long & (text[content + 2] >= 0x80)
        begins &= text[content + 2 + is_long + is_longer] == beginning.second
    return begins
