"""What a Chrome event says of its op: ``,"name":OP,"args":{"name":...,"op":...,"input0":...}}``, the same fields as TensorFlow's.

Nodes of one name, op and label share a text. All texts are put together by NumPy, from the bytes of the string tables and of
the words between them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tftracer.export.text import escaped
from tftracer.trace.answers import Answers
from tftracer.trace.intervals import Bool, bites, distinct
from tftracer.trace.labels import Listed, kernel_name, listed
from tftracer.trace.model import DeviceKind, Int64, StringTable, Trace
from tftracer.trace.strings import copied
from tftracer.trace.wire import PADDING, Window

Codes = npt.NDArray[Any]

_KERNELS = (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT)
_BITE = 1 << 11  # texts, in about 1 ms


def arguments(answers: Answers) -> tuple[Int64, list[str]]:
    """([n] the number of each node's text, the texts)."""
    trace = answers.trace
    kernels = np.array([device.kind in _KERNELS for device in trace.devices] or [False], np.bool_)[trace.device]
    number, node = _alike(trace, kernels)
    names, labels = escaped(trace.names), escaped(trace.labels)
    source = _Source.of(labels, names, escaped(trace.ops), answers.listed if labels is trace.labels else listed(labels))
    texts: list[str] = []
    for part in bites(len(node), _BITE):
        one = node[part.start : part.stop]
        texts += source.texts(trace.label[one], trace.name[one], trace.op[one])
    for i in np.flatnonzero(kernels[node]).tolist():
        texts[i] = _of_kernel(trace, int(node[i]))
    return number, texts


def _alike(trace: Trace, kernels: Bool) -> tuple[Int64, Int64]:
    """([n] a number for each name, op and label that occur together, on streams or not; the first node of each number)."""
    first = np.zeros(len(trace.labels), np.int64)
    first[trace.label[::-1]] = np.arange(trace.n)[::-1]
    number = trace.label.astype(np.int64)
    usual = first[number]
    odd = np.flatnonzero(
        (trace.name != trace.name[usual]) | (trace.op != trace.op[usual]) | (kernels != kernels[usual])
    )  # nearly all labels are of one name and one op
    if not len(odd):
        return number, first
    codes = _numbered(trace.label[odd].astype(np.int64), trace.name[odd])
    codes = _numbered(_numbered(codes, trace.op[odd]), kernels[odd])
    number[odd] = codes + len(first)
    more = np.zeros(int(codes.max()) + 1, np.int64)
    more[codes[::-1]] = odd[::-1]
    return number, np.concatenate([first, more])


def _numbered(codes: Int64, others: Codes) -> Int64:
    pairs = codes << 32 | others
    return np.searchsorted(distinct(pairs), pairs)


def _of_kernel(trace: Trace, node: int) -> str:
    label = trace.labels[trace.label[node]]
    name, op = kernel_name(label, trace.names[trace.name[node]])
    args = {"name": name, "op": op or "unknown", "label": label}
    title, said = (json.dumps(value, ensure_ascii=False) for value in (args["op"], args))
    return f',"name":{title},"args":{said}}}'


@dataclass
class _Source:
    """The bytes of labels, names and words, one behind the other, and where each lies."""

    bytes: Window
    names: Int64  # [names + 1]
    words: Int64  # [words + 1] of each op its heading and what follows the name; the keys; the ends
    ops: int
    keys: int
    counts: Int64  # [labels] of the spans that each shows
    begin: Int64  # [labels] the first of them
    first: Int64  # [spans] in the labels
    last: Int64
    key: Int64  # [labels] of its first span

    @classmethod
    def of(cls, labels: StringTable, names: StringTable, ops: StringTable, found: Listed) -> _Source:
        other = np.flatnonzero(~found.lists & (np.diff(labels.offsets) > 0))  # shown whole
        label = np.concatenate([found.label, other])
        first = np.concatenate([found.first, labels.offsets[:-1][other]])
        last = np.concatenate([found.last, labels.offsets[1:][other]])
        if len(other):
            order = np.argsort(label, kind="stable")
            first, last = first[order], last[order]
        counts = np.bincount(label, minlength=len(labels))
        key = np.ones(len(labels), np.int64)
        key[other] = 0
        titles = [op.encode() or b"unknown" for op in ops]
        keys = [b',"label":"', b',"input0":"', *(b'","input%d":"' % i for i in range(1, int(counts.max(initial=0))))]
        heads = [b',"name":"%b","args":{"name":"' % op for op in titles]
        words = [*heads, *(b'","op":"%b"' % op for op in titles), *keys, b'"}}\n', b"}}\n"]
        text = b"".join([labels.data, names.data, *words, bytes(PADDING)])
        word_at = np.cumsum([0, *map(len, words)]) + len(labels.data) + len(names.data)
        return cls(
            Window(text, 0, len(text) - PADDING),
            names.offsets + len(labels.data),
            word_at,
            len(titles),
            len(keys),
            counts,
            np.cumsum(counts) - counts,
            first,
            last,
            key,
        )

    def texts(self, label: Codes, name: Codes, op: Codes) -> list[str]:
        """A text is its op's heading, the name, what follows it, then keys and spans in turn, and an end."""
        counts = self.counts[label]
        passed = np.cumsum(counts)
        owner = np.repeat(np.arange(len(label)), counts)
        nth = np.arange(len(owner)) - (passed - counts)[owner]
        span = self.begin[label][owner] + nth
        end = 2 * passed + 4 * np.arange(1, len(label) + 1) - 1
        head = end - 2 * counts - 3
        key = head[owner] + 3 + 2 * nth
        word = np.zeros(2 * len(owner) + 4 * len(label), np.int64)
        word[head], word[head + 2] = op, op + self.ops
        word[key] = 2 * self.ops + self.key[label][owner] + nth
        word[end] = 2 * self.ops + self.keys + (counts == 0)
        at, behind = self.words[word], self.words[word + 1]
        at[head + 1], behind[head + 1] = self.names[name], self.names[name + 1]
        at[key + 1], behind[key + 1] = self.first[span], self.last[span]
        return str(copied(self.bytes, at, behind - at), "utf-8").split("\n")[:-1]
