"""A small step, made up, on which a new helper answers what a click asks for, before anybody waits: the first real answer took
three times as long as the tenth, for modules that are imported late, tables that are made once, and code that Python had not
specialised yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tftracer.helper.library import Answered, Format, Library, Payload, Question, Trace
from tftracer.session.file import compress
from tftracer.trace.model import TraceContext

NODES = 200
#: Python specialises code that has run some times (PEP 659).
TIMES = 8
QUESTIONS = [Question(name, name) for name in ("timeline", "verdict")]
FORMS = [Format(True, "gzip"), Format(True, "zstd")]


def rehearse() -> Iterator[Callable[[], Answered]]:
    """What to do in turn, some milliseconds each; who is asked for something real meanwhile leaves the rest."""
    raw = step(NODES)
    payload = Payload(compress(raw), True, len(raw), TraceContext())
    for time in range(TIMES):
        library = Library(lambda trace: payload)
        for question in QUESTIONS:
            yield partial(library.ask, Trace("rehearsal", 1, 0.0, len(raw)), question, FORMS[time % len(FORMS)])


def step(nodes: int) -> bytes:
    """RunMetadata of one device on which ops follow each other; fields as in TensorFlow's step_stats.proto."""
    content = _text(1, "/job:localhost/replica:0/task:0/device:CPU:0")
    for i in range(nodes):
        start, took = 10**6 + 20 * i, 5 + i % 13
        name, label = f"layer_{i}/MatMul", f"layer_{i}/MatMul = MatMul(layer_{i - 1}/MatMul, ^layer_{i - 1}/read:1)"
        times = [_number(2, start), _number(3, 1), _number(4, took), _number(5, took + 1), _text(8, label)]
        times += [_number(9, start - 4), _number(10, i % 3), _number(13, start * 1000), _number(16, took * 1000)]
        content += _message(2, _text(1, name) + b"".join(times))
    return _message(1, _message(1, content))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
