"""Parses TensorFlow's ``timeline_label``.

MatMul_17 = MatMul(Relu_16, MatMul_17/ReadVariableOp_S283, ^control_input)
[cpu 1.3MB 1.3MB] add = AddV2(x, y:1)
[16384B] [1.4Gb/s] edge_116_MatMul/ReadVariableOp from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/...
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Int64

_MEMORY = re.compile(r"\[[^\]]*\] ")  # `[cpu 1.3MB 1.3MB] `: the op's memory
_RECEIVED = re.compile(r"\[([0-9.]{1,18})(M?)B\] (?:\[[0-9.]{1,18}[KMG]?b/s\] )?(.*) from (\S+) to (\S+)", re.DOTALL)
_COPIED = re.compile(r"\b(?:MEMCPY|MEMSET|memcpy|memset|Memcpy|Memset)\w*\W+(\d{1,18}) bytes")
_SLOT = re.compile(r"(.*):([0-9]{1,9})", re.DOTALL)
_EDGE = re.compile(r"edge_\d+_(.*)", re.DOTALL)
_MAX_BYTES = 1 << 62  # fits into int64


@dataclass(frozen=True)
class Label:
    """The label ``name = Op(inputs)``; missing parts are empty."""

    name: str = ""
    op: str = ""
    inputs: tuple[str, ...] = ()


class Input(NamedTuple):
    """One input of a label or of a NodeDef: ``y:1``, ``^c``."""

    name: str
    slot: int  # -1 for a control input
    control: bool


@dataclass(frozen=True)
class Received:
    """The label of a RecvTensor."""

    bytes: int
    tensor: str  # `edge_116_MatMul/ReadVariableOp`
    source: str  # device name
    destination: str

    @property
    def producer(self) -> str:
        """The name of the node that produced the tensor."""
        match = _EDGE.fullmatch(self.tensor)
        return match.group(1) if match else self.tensor


def parse_label(text: str) -> Label:
    """Parse the label of an op; return an empty Label for any other text.

    Like TensorFlow's timeline.py, it uses the last ` = ` and the outermost parentheses after it.
    """
    closed = text.rfind(")")
    equals = text.rfind(" = ", 0, max(text.rfind("(", 0, max(closed, 0)), 0))
    if equals < 0:
        return Label()
    name, rest = text[:equals], text[equals + 3 : closed]
    op, _, inputs = rest.partition("(")
    memory = _MEMORY.match(name)
    if memory:
        name = name[memory.end() :]
    return Label(name, op, tuple(inputs.split(", ")) if inputs else ())


def parse_input(text: str) -> Input:
    if text.startswith("^"):
        return Input(text[1:], -1, True)
    match = _SLOT.fullmatch(text)
    return Input(match.group(1), int(match.group(2)), False) if match else Input(text, 0, False)


def parse_received(text: str) -> Received | None:
    """Parse the label of a RecvTensor; None for any other text."""
    match = _RECEIVED.match(text)
    if match is None:
        return None
    size, is_in_mb, tensor, source, destination = match.groups()
    return Received(_bytes(size, bool(is_in_mb)), tensor, source, destination)


def _bytes(size: str, is_in_mb: bool) -> int:
    """Parse a size. Sizes from 0.1 MiB on are written in MB (2^20 bytes) with one decimal, for example [0.6MB]."""
    try:
        return min(round(float(size) * (1 << 20)), _MAX_BYTES) if is_in_mb else int(size)
    except ValueError:
        return 0


def copied_bytes(text: str) -> int:
    """Return the bytes in the label of a GPU copy, `MEMCPYHtoD 4096 bytes (...)`; 0 if it has none."""
    match = _COPIED.search(text)
    return int(match.group(1)) if match else 0


def kernel_name(label: str, node_name: str) -> tuple[str, str]:
    """Return (name, op) of a kernel or copy on a stream, from `name:op` or from the text between @@ and # in the label.

    Like TensorFlow's timeline.py, but op is "" where timeline.py has 'unknown'.
    """
    start, end = label.find("@@"), label.find("#")
    if start >= 0 and start + 2 < end:
        node_name = label[start + 2 : end]
    name, _, rest = node_name.partition(":")
    return name, rest.split(":")[0]


def op_spans(labels: StringTable) -> tuple[Int64, Int64]:
    """Return (offset[n], size[n]) of the op types in ``labels.data``; size 0 for labels without one. No Python loop.

    The op type is between the last ` = ` and the first parenthesis after it.
    """
    begin, opened = _op_bounds(labels)
    return np.where(opened < 0, labels.offsets[:-1], begin), np.where(opened < 0, 0, opened - begin)


_BLOCK = 1 << 17  # bytes: the temporary arrays of a block fit into the CPU's cache


def _positions(text: npt.NDArray[np.uint8], byte: int) -> Int64:
    """Return all positions of a byte in a text."""
    blocks = range(0, len(text), _BLOCK)
    return np.concatenate([np.flatnonzero(text[block : block + _BLOCK] == byte) + block for block in blocks] or [_NO_POSITIONS])


_NO_POSITIONS = np.zeros(0, np.int64)


def _op_bounds(labels: StringTable) -> tuple[Int64, Int64]:
    """Return (end of the last ` = `, first parenthesis after it) of each label, as positions in ``labels.data``; -1: none."""
    label_start, label_end = labels.offsets[:-1], labels.offsets[1:]
    text = np.frombuffer(labels.data, np.uint8)
    equals, parentheses = _positions(text[1:-1], 0x3D) + 1, np.append(_positions(text, 0x28), len(text))
    equals = equals[(text[equals - 1] == 0x20) & (text[equals + 1] == 0x20)]
    after_equals = np.append(equals + 2, -1)
    begin = after_equals[np.searchsorted(after_equals[:-1], label_end, "right") - 1]
    complete = begin >= label_start + 3
    opened = parentheses[np.searchsorted(parentheses, begin)]
    complete &= opened < label_end
    return np.where(complete, begin, -1), np.where(complete, opened, -1)


class Parentheses(NamedTuple):
    """The texts in parentheses of many labels, split at `, `, as spans of ``labels.data``."""

    has_op: npt.NDArray[np.bool_]  # [labels] whether an op type stands before the parentheses
    label: Int64  # [inputs] code of the label
    first: Int64
    end: Int64  # exclusive


def split_parentheses(labels: StringTable) -> Parentheses:
    """Split the text between the parenthesis after the op type and the label's last parenthesis. No Python loop."""
    operation, opened = _op_bounds(labels)
    label = np.flatnonzero(opened >= 0)
    text = np.frombuffer(labels.data, np.uint8)
    begin, end = opened[label] + 1, labels.offsets[1:][label] - 1
    if not (text[end] == 0x29).all():
        end = _last(text, 0x29, end + 1)
    not_empty = end > begin
    owner, first, ends = _split(text, begin[not_empty], end[not_empty])
    return Parentheses(opened > operation, label[not_empty][owner], first, ends)


class Inputs(NamedTuple):
    """The inputs of many labels: spans of the names within ``labels.data``."""

    label: Int64  # [inputs] code of the label
    offset: Int64
    size: Int64
    slot: Int64  # the producer's output; -1 for a control input
    control: npt.NDArray[np.bool_]


def label_inputs(labels: StringTable, parts: Parentheses) -> Inputs:
    """Return the inputs of all labels that have an op, as ``parse_label`` and ``parse_input`` do. No Python loop.

    ``parts``: the result of ``split_parentheses`` for these labels.
    """
    has_op = parts.has_op[parts.label]
    text = np.frombuffer(labels.data, np.uint8)
    label, first, end = parts.label[has_op], parts.first[has_op], parts.end[has_op]
    return Inputs(label, *input_spans(text, first, end))


def input_spans(text: npt.NDArray[np.uint8], first: Int64, end: Int64) -> tuple[Int64, Int64, Int64, npt.NDArray[np.bool_]]:
    """Return (offset of the name, its size, slot, control) of the inputs text[first[i] : end[i]], as ``parse_input`` does.

    No Python loop. ``text`` must have one more byte after the last input.
    """
    control = text[first] == 0x5E
    first = first + control
    slot, digits = _slots(text, first, end)
    digits[control] = 0
    slot[control] = -1
    return first, end - first - digits, slot, control


def _last(text: npt.NDArray[np.uint8], byte: int, before: Int64) -> Int64:
    """Return the last position of ``byte`` before each position; -1 if there is none."""
    places = np.append(-1, _positions(text, byte))
    return places[np.searchsorted(places, before) - 1]


def _split(text: npt.NDArray[np.uint8], begin: Int64, end: Int64) -> tuple[Int64, Int64, Int64]:
    """Split text[begin[i]:end[i]] at `, ` and return (index i, begin, end) of the pieces."""
    commas = _positions(text[:-1], 0x2C)
    commas = commas[text[commas + 1] == 0x20]
    within = np.searchsorted(begin, commas, "right") - 1
    inside = commas < np.append(end, -1)[within]
    commas, within = commas[inside], within[inside]
    pieces = np.bincount(within, minlength=len(begin)) + 1
    owner = np.repeat(np.arange(len(begin)), pieces)
    ends_at_comma = np.arange(len(commas)) + within  # the pieces that end at the commas
    pieces_end = np.cumsum(pieces)
    first, last = np.empty((2, len(owner)), np.int64)
    first[pieces_end - pieces], last[pieces_end - 1] = begin, end
    first[ends_at_comma + 1], last[ends_at_comma] = commas + 2, commas
    return owner, first, last


_MAX_DIGITS = 9


def _slots(text: npt.NDArray[np.uint8], first: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Return (slot, its length with the colon) of texts that end in a colon and up to nine digits; both 0 for other texts."""
    slot, length = np.zeros((2, len(first)), np.int64)
    digit = text[end - 1] - np.uint8(0x30)
    row = np.flatnonzero((digit < 10) & (end > first))  # few names end in digits
    at, value = end[row] - 2, digit[row].astype(np.int64)
    for digits in range(1, _MAX_DIGITS + 1):
        byte = text[at]
        inside = at >= first[row]
        ends = np.flatnonzero((byte == 0x3A) & inside)
        slot[row[ends]], length[row[ends]] = value[ends], digits + 1
        digit = byte - np.uint8(0x30)
        more = np.flatnonzero((digit < 10) & inside)
        if not len(more):
            break
        row, at, value = row[more], at[more] - 1, value[more] + digit[more].astype(np.int64) * 10**digits
    return slot, length
