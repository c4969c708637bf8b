"""Where the nodes of a device, or of a GraphDef, begin: the chain of their fields, found without a Python step for each.

A node begins with the tag of ``node_stats`` (of ``node``), its length, and (as TensorFlow writes fields in order) the tag of its
name. All places that look like that are candidates; each leads to the place behind it. Where a candidate leads to the very next
candidate, the chain holds; where it does not (a look-alike inside a string or a number, a node without a name), one step
is read by hand. The result is exactly what reading field by field gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tftracer.errors import FormatError
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.wire import LEN, Field, next_field

NODE_STATS = 2  # the number of DeviceStepStats.node_stats
GRAPH_NODE = 1  # and of GraphDef.node
_NAME_TAG = 0x0A  # NodeExecStats.node_name and NodeDef.name, LEN
BLOCK = 1 << 17  # bytes: what is made of a block fits the second-level cache
SMALL = 1 << 12
_SMALLEST = 16  # bytes: a name and a time take more; a file of empty nodes would grow a hundredfold
_FEW = 1 << 16

#: A step holds at most 2^20 nodes a process (model.MAX_COLLECTED_NODES); several processes and their GPUs some times that.
MAX_NODES = 1 << 23

#: Other fields in a device entry or entries in a step: names of threads, devices. TensorFlow writes some dozens.
MAX_OTHERS = 1 << 16


@dataclass
class Spans:
    """Nodes in the order of their bytes, and the device entry's other fields."""

    starts: list[Int64] = field(default_factory=list)
    ends: list[Int64] = field(default_factory=list)
    others: list[Field] = field(default_factory=list)
    nodes: int = 0
    most: int = MAX_NODES

    def add(self, starts: Int64, ends: Int64) -> None:
        self.starts.append(starts)
        self.ends.append(ends)
        self.nodes += len(starts)
        if self.nodes > self.most:
            raise FormatError(
                f"Byte {int(starts[0])}: more than {self.most} nodes, more than TensorFlow records or fewer bytes than it takes. "
                "Is this a RunMetadata?"
            )


def node_spans(raw: bytes, low: int, high: int, number: int = NODE_STATS) -> Spans:
    """The messages of this number in the DeviceStepStats (or GraphDef) at raw[low:high], a string their first field.

    FormatError and TruncatedError name the byte.
    """
    spans = Spans(most=min(MAX_NODES, max(_FEW, (high - low) // _SMALLEST)))
    begin, content, end, link = _candidates(raw, low, high, number << 3 | LEN)
    single: list[tuple[int, int]] = []
    breaks = np.flatnonzero(link != np.arange(1, len(link) + 1))
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
            if len(single) > _FEW:
                _flush(spans, single)
        else:
            spans.others.append(entry)
            if len(spans.others) > MAX_OTHERS:
                raise FormatError(f"Byte {at}: more than {MAX_OTHERS} fields that are no nodes. Is this a RunMetadata?")
    _flush(spans, single)
    return spans


def _flush(spans: Spans, single: list[tuple[int, int]]) -> None:
    if single:
        pairs = np.array(single, np.int64)
        single.clear()
        spans.add(pairs[:, 0], pairs[:, 1])


def _candidates(raw: bytes, low: int, high: int, tag: int) -> tuple[Int64, Int64, Int64, Int64]:
    """(tag, content, end, index of the candidate at end or -1) of all that looks like a node, by position."""
    if high - low < max(SMALL, 8):
        empty = np.zeros(0, np.int64)
        return empty, empty, empty, empty
    text = np.frombuffer(raw, np.uint8, high - low, low)
    begin = np.concatenate([_looks(text, block, tag) for block in range(0, len(text) - 4, BLOCK)])
    first, second, third = (text[begin + 1], text[begin + 2], text[begin + 3])
    short = (first < 0x80) & (second == _NAME_TAG)
    medium = (first >= 0x80) & (second < 0x80) & (third == _NAME_TAG)
    length = (first & 0x7F).astype(np.int64)
    length += np.where(medium, second, 0).astype(np.int64) << 7
    content = begin + np.where(medium, 3, 2)
    end = content + length
    keep = np.flatnonzero((short | medium) & (length > 0) & (end <= len(text)))
    begin, content, end = begin[keep] + low, content[keep] + low, end[keep] + low
    return begin, content, end, _links(begin, end)


def _looks(text: npt.NDArray[np.uint8], block: int, tag: int) -> Int64:
    stop = min(block + BLOCK, len(text) - 4)
    looks = text[block + 2 : stop + 2] == _NAME_TAG
    looks |= text[block + 3 : stop + 3] == _NAME_TAG
    looks &= text[block:stop] == tag
    return np.flatnonzero(looks) + block


def _links(begin: Int64, end: Int64) -> Int64:
    """i + 1 where the next candidate begins at this one's end, else -1."""
    link = np.full(len(begin), -1, np.int64)
    chained = np.flatnonzero(end[:-1] == begin[1:])
    link[chained] = chained + 1
    return link
