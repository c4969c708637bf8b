"""What TensorFlow packs into ``timeline_label``, taken apart.

    MatMul_17 = MatMul(Relu_16, MatMul_17/ReadVariableOp_S283, ^control_input)
    [cpu 1.3MB 1.3MB] add = AddV2(x, y:1)
    [16384B] [1.4Gb/s] edge_116_MatMul/ReadVariableOp from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/...
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tftracer.trace.model import Int64, StringTable

# the same reading as TensorFlow's own timeline.py: the last ` = ` and the outermost parentheses
_LABEL = re.compile(r"(.*) = (.*?)\((.*)\)", re.DOTALL)
_MEMORY = re.compile(r"\[[^\]]*\] ")
_RECEIVED = re.compile(r"\[(\d{1,18})B\] (?:\[([0-9.]{1,18})([KMG]?)b/s\] )?(.*) from (\S+) to (\S+)", re.DOTALL)
_COPIED = re.compile(r"\b(?:MEMCPY|MEMSET|memcpy|memset|Memcpy|Memset)\w*\W+(\d{1,18}) bytes")
_SLOT = re.compile(r"(.*):([0-9]{1,9})", re.DOTALL)
_EDGE = re.compile(r"edge_\d+_(.*)", re.DOTALL)
_BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True)
class Label:
    """``name = Op(inputs)``; empty fields where the label does not say."""

    name: str = ""
    op: str = ""
    inputs: tuple[str, ...] = ()
    memory: str = ""  # `cpu 1.3MB 1.3MB`: what the op held, as TensorFlow printed it


class Input(NamedTuple):
    """One input of a label or of a NodeDef: ``y:1``, ``^c``."""

    name: str
    slot: int  # -1 for a control input
    control: bool


@dataclass(frozen=True)
class Received:
    """The label of a RecvTensor."""

    bytes: int
    bandwidth: float  # bytes a second as TensorFlow measured it; 0 where not said
    tensor: str  # `edge_116_MatMul/ReadVariableOp`
    source: str  # device name
    destination: str

    @property
    def producer(self) -> str:
        """The node that made the tensor, as far as the edge's name tells it."""
        found = _EDGE.fullmatch(self.tensor)
        return found.group(1) if found else self.tensor


def parse_label(text: str) -> Label:
    """Never fails: what is no label of an op gives an empty one."""
    found = _LABEL.match(text)
    if found is None:
        return Label()
    name, op, inputs = found.groups()
    memory = _MEMORY.match(name)
    if memory:
        name = name[memory.end() :]
    return Label(name, op, tuple(inputs.split(", ")) if inputs else (), memory.group()[1:-2] if memory else "")


def parse_input(text: str) -> Input:
    if text.startswith("^"):
        return Input(text[1:], -1, True)
    found = _SLOT.fullmatch(text)
    return Input(found.group(1), int(found.group(2)), False) if found else Input(text, 0, False)


def parse_received(text: str) -> Received | None:
    """None for what is not the label of a RecvTensor."""
    found = _RECEIVED.match(text)
    if found is None:
        return None
    size, rate, unit, tensor, source, destination = found.groups()
    return Received(int(size), _rate(rate, unit), tensor, source, destination)


def _rate(rate: str | None, unit: str | None) -> float:
    try:
        return float(rate or 0) * _BITS[unit or ""] / 8
    except ValueError:
        return 0.0


def copied_bytes(text: str) -> int:
    """Bytes of a GPU copy's label, `MEMCPYHtoD 4096 bytes (...)`; 0 where it does not say."""
    found = _COPIED.search(text)
    return int(found.group(1)) if found else 0


def kernel_name(label: str, node_name: str) -> tuple[str, str]:
    """(name, op) of a kernel or copy on a stream: `name:op`, or what stands between @@ and # in the label.

    The same reading as TensorFlow's timeline.py; op is "" where it says 'unknown'.
    """
    start, end = label.find("@@"), label.find("#")
    if start >= 0 and start + 2 < end:
        node_name = label[start + 2 : end]
    name, _, rest = node_name.partition(":")
    return name, rest.split(":")[0]


def op_spans(labels: StringTable) -> tuple[Int64, Int64]:
    """Where the op types lie in ``labels.data``: (offset[n], size[n]), size 0 where a label tells none. No Python loop.

    The op stands between the last ` = ` and the first parenthesis behind it.
    """
    first, last = labels.offsets[:-1], labels.offsets[1:]
    text = np.frombuffer(labels.data, np.uint8)
    if len(text) < 4:
        return first.copy(), np.zeros(len(labels), np.int64)
    equals = np.flatnonzero((text[:-2] == 0x20) & (text[1:-1] == 0x3D) & (text[2:] == 0x20))
    place = np.searchsorted(equals, last - 2) - 1
    found = place >= 0
    begin = np.where(found, np.append(equals, 0)[place] + 3, 0)
    found &= begin >= first + 3
    parentheses = np.append(np.flatnonzero(text == 0x28), len(text))
    end = parentheses[np.searchsorted(parentheses, begin)]
    found &= end < last
    return np.where(found, begin, first), np.where(found, end - begin, 0)
