"""A second, independent reading of profiles: plain Python, a field at a time, by nothing but the wire format and xplane.proto."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data/xspace"


def content(name: str) -> bytes:
    data = (DATA / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else lzma.decompress(data) if name.endswith(".xz") else data


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        if key & 7 == 0:
            value, at = _number(data, at)
            yield key >> 3, value
        elif key & 7 == 2:
            size, at = _number(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[key & 7]
            yield key >> 3, data[at : at + size]
            at += size


def _all(data: bytes) -> dict[int, list[Any]]:
    values: dict[int, list[Any]] = {}
    for number, value in fields(data):
        values.setdefault(number, []).append(value)
    return values


@dataclass
class Event:
    name: str
    display_name: str
    thread: int
    start_ns: int
    duration_ns: int
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass
class PlainPlane:
    name: str
    lines: dict[str, list[Event]]

    @property
    def events(self) -> list[Event]:
        return [event for events in self.lines.values() for event in events]


def planes(data: bytes) -> list[PlainPlane]:
    return [_plane(_all(plane)) for plane in _all(data).get(1, [])]


def _metadata(entries: list[bytes]) -> dict[int, tuple[str, str]]:
    named = {}
    for entry in entries:
        both = _all(entry)
        inner = _all(both.get(2, [b""])[-1])
        named[both.get(1, [0])[-1]] = tuple(inner.get(number, [b""])[-1].decode("utf-8", "replace") for number in (2, 4))
    return named


def _plane(plane: dict[int, list[Any]]) -> PlainPlane:
    kinds, stats = _metadata(plane.get(4, [])), {number: name for number, (name, _) in _metadata(plane.get(5, [])).items()}
    lines: dict[str, list[Event]] = {}
    for raw in plane.get(3, []):
        line = _all(raw)
        name = line.get(2, line.get(11, [b""]))[-1].decode()
        begun, thread = line.get(3, [0])[-1], line.get(1, [0])[-1]
        lines.setdefault(name, []).extend(_event(_all(event), kinds, stats, begun, thread) for event in line.get(4, []))
    return PlainPlane(plane.get(2, [b""])[-1].decode(), lines)


def _event(
    event: dict[int, list[Any]], kinds: dict[int, tuple[str, str]], stats: dict[int, str], begun: int, thread: int
) -> Event:
    name, display = kinds[event[1][-1]]
    start, duration = begun + event.get(2, [0])[-1] // 1000, event.get(3, [0])[-1] // 1000
    one = Event(name, display, thread, start, duration)
    for raw in event.get(4, []):
        stat = _all(raw)
        number, value = next(((n, v[-1]) for n, v in stat.items() if n != 1), (4, 0))
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) and number in (5, 6) else value
        one.stats[stats[stat[1][-1]]] = stats.get(value, "") if number == 7 else text
    return one
