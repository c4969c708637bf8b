"""The slices of Chrome's JSON, with the same fields as TensorFlow's.

After the row and the times of each follows ``,"name":OP,"args":{"name":...,"op":...,"input0":...}}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tftracer.export.text import Pieces, Sheet, escaped
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.intervals import batches, distinct
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.decode.labels import Listed, kernel_name, listed
from tftracer.trace.model import DeviceKind, Trace

_KERNELS = (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT)
_LABELS, _NAMES = range(2)  # tables of the sheet
_FIXED = 7  # pieces of every slice: row, start, key, duration, op, name, op again with the text after it
_FIRST = (',"input0":"', ',"label":"', "}}")
_INPUTS, _WHOLE, _NOTHING = range(3)
_BATCH = 1 << 11  # slices, in less than 1 ms


def slices(answers: Answers, nodes: Int64, rows: list[str], row: Int64, start: Int64, duration: Int64) -> Iterator[str]:
    """The slices of these nodes, some thousand at a time.

    ``rows``: the text that a slice on each row begins with. ``row``: [nodes] the index of each node's row. ``start`` and
    ``duration``: [nodes] nanoseconds.
    """
    writer = _Writer.of(answers, rows)
    for part in batches(len(nodes), _BATCH):
        at = slice(part.start, part.stop)
        yield writer.text(nodes[at], row[at], start[at], duration[at])


@dataclass
class _Writer:
    trace: Trace
    inputs: _Inputs
    kernel: Int64  # [n] index of each kernel's text, -1 for other nodes; empty if there is no kernel
    sheet: Sheet
    # The index of the first word of each group in the sheet:
    duration: int  # before a duration
    head: int  # of each op: before the name
    follows: int  # of each op: after the name, in three forms
    behind: int  # after each input; the last one ends the slice
    kernels: int  # of each kernel
    nothing: int

    @classmethod
    def of(cls, answers: Answers, rows: list[str]) -> _Writer:
        trace = answers.trace
        names, labels = escaped(trace.names), escaped(trace.labels)
        inputs = _Inputs.of(labels, answers.listed if labels is trace.labels else listed(labels))
        kernel, kernels = _kernels(trace)
        ops = [op or "unknown" for op in escaped(trace.ops)]
        heads = [f',"name":"{op}","args":{{"name":"' for op in ops]
        follows = [f'","op":"{op}"{what}' for op in ops for what in _FIRST]
        behind = [*(f'","input{i}":"' for i in range(1, inputs.most)), '"}}']
        groups = [rows, [',"dur":'], heads, follows, behind, kernels, [""]]
        sheet = Sheet([labels, names], [word for group in groups for word in group], _BATCH * 64)
        return cls(trace, inputs, kernel, sheet, *np.cumsum([len(group) for group in groups[:-1]]).tolist())

    def text(self, nodes: Int64, row: Int64, start: Int64, duration: Int64) -> str:
        trace, sheet, inputs = self.trace, self.sheet, self.inputs
        sheet.begin()
        op, label = trace.op[nodes], trace.label[nodes]
        head, follows = self.head + op, self.follows + len(_FIRST) * op + inputs.kind[label]
        name, counts = sheet.strings(_NAMES, trace.name[nodes]), inputs.counts[label]
        if len(self.kernel):
            kernel = self.kernel[nodes]
            own = kernel >= 0
            head, follows = np.where(own, self.kernels + kernel, head), np.where(own, self.nothing, follows)
            name.size[own] = counts[own] = 0
        key = sheet.words(np.full(len(nodes), self.duration))
        columns = (sheet.words(row), sheet.thousandths(start), key, sheet.thousandths(duration), sheet.words(head), name)
        return sheet.text(*self._with_inputs([*columns, sheet.words(follows)], label, counts))

    def _with_inputs(self, columns: list[Pieces], label: Int32, counts: Int64) -> Pieces:
        """The columns of each slice, then each of its inputs, followed by a word."""
        pieces = _FIXED + 2 * counts
        base = np.cumsum(pieces) - pieces
        at, size = np.empty((2, int(pieces.sum())), np.int64)
        for i, column in enumerate(columns):
            at[base + i], size[base + i] = column
        owner = np.repeat(np.arange(len(label)), counts)
        nth = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        place = base[owner] + _FIXED + 2 * nth
        span = self.inputs.begin[label][owner] + nth
        last = nth == counts[owner] - 1
        at[place], size[place] = self.sheet.spans(_LABELS, self.inputs.first[span], self.inputs.last[span])
        at[place + 1], size[place + 1] = self.sheet.words(np.where(last, self.kernels - 1, self.behind + nth))
        return Pieces(at, size)


@dataclass
class _Inputs:
    """What is shown of each label: its inputs, or the whole label if it has another form, or nothing."""

    kind: Int64  # [labels] index into _FIRST
    counts: Int64  # [labels] of the spans that each shows
    begin: Int64  # [labels] the first of them
    first: Int64  # [spans] in the labels
    last: Int64

    @property
    def most(self) -> int:
        return int(self.counts.max(initial=1))

    @classmethod
    def of(cls, labels: StringTable, listed: Listed) -> _Inputs:
        whole = np.flatnonzero(~listed.lists & (np.diff(labels.offsets) > 0))
        label = np.concatenate([listed.label, whole])
        first = np.concatenate([listed.first, labels.offsets[:-1][whole]])
        last = np.concatenate([listed.last, labels.offsets[1:][whole]])
        if len(whole):
            order = np.argsort(label, kind="stable")
            first, last = first[order], last[order]
        counts = np.bincount(label, minlength=len(labels))
        kind = np.where(counts > 0, _INPUTS, _NOTHING)
        kind[whole] = _WHOLE
        return cls(kind, counts, np.cumsum(counts) - counts, first, last)


# ---------------------------------------------------------------------------------------------------------------- kernels


def _kernels(trace: Trace) -> tuple[Int64, list[str]]:
    """([n] index of each kernel's or copy's text, -1 for other nodes; the texts). Both are empty without streams."""
    streams = np.array([device.kind in _KERNELS for device in trace.devices], np.bool_)
    nodes = np.flatnonzero(streams[trace.device]) if streams.any() else np.zeros(0, np.int64)
    if not len(nodes):
        return nodes, []
    pair = trace.name[nodes].astype(np.int64) << 32 | trace.label[nodes]
    pairs = distinct(pair)
    which = np.full(trace.n, -1, np.int64)
    which[nodes] = np.searchsorted(pairs, pair)
    chosen = [one for part in batches(len(pairs)) for one in pairs[part.start : part.stop].tolist()]
    return which, [_kernel(trace.names[one >> 32], trace.labels[one & 0xFFFFFFFF]) for one in chosen]


def _kernel(name: str, label: str) -> str:
    name, op = kernel_name(label, name)
    args = {"name": name, "op": op or "unknown", "label": label}
    title, arguments = (json.dumps(value, ensure_ascii=False) for value in (args["op"], args))
    return f',"name":{title},"args":{arguments}}}'
