"""Cuts a profile of several steps into one profile per step.

A step gets the host's events that overlap it, and the device's events that were launched after its begin and before the next
step's begin; if an event's launch is not known, the event's own begin decides. The profile is parsed once; the profiles of steps
are put together from its pieces.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.correlation_ids import Launches
from tftracer.trace.decode.profile_steps import Step, steps_of
from tftracer.trace.decode.wire import message_field
from tftracer.trace.decode.xplane_reader import EVENTS, Line, Plane, Space, plane_messages, read_space

_PLANES, _LINES, _KINDS = 1, 3, 4  # field numbers: planes in XSpace; lines and event metadata in XPlane


def steps(raw: bytes) -> Iterator[tuple[Step, bytes]]:
    """Yield each step of a serialized XSpace with its own serialized XSpace. Raises FormatError for invalid bytes."""
    space = read_space(raw)
    all_steps = steps_of(space)
    if len(all_steps) == 1:
        yield all_steps[0], raw
    else:
        yield from _cut(space, all_steps)


def _cut(space: Space, all_steps: list[Step]) -> Iterator[tuple[Step, bytes]]:
    launches = Launches.of(space)
    planes = [_PlaneOfSteps(plane, *_steps_of_events(plane, launches, all_steps)) for plane in space.planes]
    texts = {name: [text.encode() for text in getattr(space, name)] for name in ("hostnames", "errors", "warnings")}
    rest = plane_messages()["Space"](**texts).SerializeToString()
    for number, step in enumerate(all_steps):
        yield step, b"".join([*(message_field(_PLANES, plane.of_step(number)) for plane in planes), rest])


def _steps_of_events(plane: Plane, launches: Launches, all_steps: list[Step]) -> tuple[Int64, Int64]:
    """Return [events] the first and the last step of each event; an event with last < first belongs to no step."""
    starts, ends = (np.array([getattr(step, side) for step in all_steps], np.int64) for side in ("start", "end"))
    events = plane.events
    if not plane.is_device or launches.host is None:
        return np.searchsorted(ends, events.start, "right"), np.searchsorted(starts, events.end, "right") - 1
    moment = events.start.copy()
    launched, launch = launches.joined(plane)
    moment[launched] = launches.host.events.start[launch]
    step = np.searchsorted(starts, moment, "right") - 1
    return np.maximum(step, 0), step


class _PlaneOfSteps:
    """The pieces of one plane. Call ``of_step`` once for each step, in order."""

    def __init__(self, plane: Plane, first: Int64, last: Int64) -> None:
        self._plane, self._last = plane, last
        self._order = np.argsort(first, kind="stable")
        self._first = first[self._order]
        self._ongoing: Int64 = self._order[:0]  # events of the current step that the next step may have, too
        message = plane.message
        self._kinds = {entry.id: message_field(_KINDS, entry.SerializeToString()) for entry in message.event_metadata}
        head = type(message)(name=message.name, stat_metadata=message.stat_metadata, stats=message.stats)
        self._head: bytes = head.SerializeToString()
        self._lines = [_without_events(line) for line in plane.lines]

    def of_step(self, number: int) -> bytes:
        rows = self._rows(number)
        if not len(self._plane.events):  # a plane without events holds data in its metadata, such as XLA's programs
            return b"".join([self._head, *self._kinds.values()])
        kinds = [self._kinds.get(kind, b"") for kind in distinct(self._plane.events.kind[rows]).tolist()]
        return b"".join([self._head, *kinds, *self._lines_with(rows)])

    def _rows(self, number: int) -> Int64:
        """Return the events of a step, ascending."""
        low, high = np.searchsorted(self._first, [number, number + 1])
        rows = np.concatenate([self._ongoing, self._order[low:high]])
        self._ongoing = rows[self._last[rows] >= number]
        return np.sort(self._ongoing)

    def _lines_with(self, rows: Int64) -> Iterator[bytes]:
        events = self._plane.events
        which = events.line[rows]
        begins = np.flatnonzero(np.diff(which, prepend=-1))
        for line, line_rows in zip(which[begins].tolist(), np.split(rows, begins[1:])):
            spans = zip(events.first_byte[line_rows].tolist(), events.end_byte[line_rows].tolist())
            yield message_field(_LINES, self._lines[line], *(message_field(EVENTS, events.raw[low:high]) for low, high in spans))


def _without_events(line: Line) -> bytes:
    message = plane_messages()["Line"](id=line.id, name=line.name.encode(), timestamp_ns=line.timestamp_ns)
    return bytes(message.SerializeToString())
