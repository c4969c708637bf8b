"""The steps of a profile, and the profile of each.

Steps are told by markers (``step_num`` of ``tf.profiler.experimental.Trace`` and ``jax.profiler.StepTraceAnnotation``), else by
calls of compiled functions; a profile with neither is one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.launches import Launches
from tftracer.trace.decode.xplane import HOST, Plane, Space, parse, planes_of, stats_of

MAX_STEPS = 10_000
_JIT = "PjitFunction("


@dataclass
class Step:
    """One step of a profile, in the host's time."""

    title: str
    number: int  # 0: the profile does not tell
    start: int  # ns
    end: int


def steps(raw: bytes) -> Iterator[tuple[Step, bytes]]:
    """Each step of a serialized XSpace, with an XSpace of its own; a single one keeps its bytes. FormatError for what is none."""
    message = parse(raw)
    space = planes_of(message)
    found = steps_of(space)
    if len(found) == 1:
        yield found[0], raw
    else:
        yield from _cut(message, space, found)


def first_step(raw: bytes) -> bytes:
    """The profile without what was recorded behind its first step."""
    return next(steps(raw))[1]


def steps_of(space: Space) -> list[Step]:
    """In the order of time; none overlaps the next. One step for the whole profile where nothing marks them."""
    host = space.plane(HOST)
    found = _outermost(host) if host else []
    if not found:
        events = [plane.events for plane in space.planes if len(plane.events.start)]
        start = min((int(one.start.min()) for one in events), default=0)
        end = max((int((one.start + one.duration).max()) for one in events), default=0)
        return [Step("profile", 0, start, end)]
    return found[:MAX_STEPS]


def _outermost(host: Plane) -> list[Step]:
    rows = np.arange(len(host.events.start))
    stats = stats_of(host, rows, ["step_num", "tf_function_call"])
    for has in (stats["step_num"].has, stats["tf_function_call"].has, _jit_calls(host)):
        marks = np.flatnonzero(has)
        if len(marks):
            return list(_not_nested(host, marks, stats["step_num"].number))
    return []


def _jit_calls(host: Plane) -> Bool:
    kinds = [number for number, metadata in host.metadata.items() if metadata.name.startswith(_JIT.encode())]
    return np.isin(host.events.kind, kinds)


def _not_nested(host: Plane, marks: Int64, numbers: Int64) -> Iterator[Step]:
    events, behind = host.events, -1
    for row in marks[np.argsort(events.start[marks], kind="stable")].tolist():
        start, end = int(events.start[row]), int(events.start[row] + events.duration[row])
        if start < behind:
            continue
        behind = max(end, start + 1)
        name = host.metadata[int(events.kind[row])].name.decode("utf-8", "replace")
        title = name[len(_JIT) :].rstrip(")") if name.startswith(_JIT) else name
        yield Step(title, max(int(numbers[row]), 0), start, behind)


# ---------------------------------------------------------------------------------------------------------------- cutting


def _cut(message: Any, space: Space, steps: list[Step]) -> Iterator[tuple[Step, bytes]]:
    host = space.plane(HOST)
    launched = Launches.of(space).times(host) if host else {}
    for number, step in enumerate(steps):
        following = steps[number + 1].start if number + 1 < len(steps) else None
        part = type(message)(hostnames=message.hostnames, errors=message.errors, warnings=message.warnings)
        for plane, source in zip(space.planes, message.planes):
            chosen = _chosen(plane, step, following, launched)
            _add_plane(part.planes.add(), plane, source, chosen)
        yield step, part.SerializeToString()


def _chosen(plane: Plane, step: Step, following: int | None, launched: dict[int, int]) -> Bool:
    """[events] those of one step: on the host what overlaps it, on a device what was launched in it, or began before the next."""
    events = plane.events
    if not plane.name.startswith("/device:"):
        return (events.start < step.end) & (events.start + events.duration >= step.start)
    stat = stats_of(plane, np.arange(len(events.start)), ["correlation_id"])["correlation_id"]
    times = events.start.copy()
    for row in np.flatnonzero(stat.has).tolist():
        times[row] = launched.get(int(stat.number[row]), times[row])
    return (times >= step.start) & (times < (following if following is not None else np.iinfo(np.int64).max))


def _add_plane(target: Any, plane: Plane, source: Any, chosen: Bool) -> None:
    target.name = source.name
    target.stat_metadata.extend(source.stat_metadata)
    target.stats.extend(source.stats)
    used = set(plane.events.kind[chosen].tolist())
    target.event_metadata.extend(entry for entry in source.event_metadata if entry.id in used or not len(chosen))
    for line, of in zip(plane.lines, source.lines):
        rows = np.flatnonzero(chosen[line.first : line.last]).tolist()
        if rows:
            events = of.events
            added = target.lines.add(id=of.id, name=of.name, display_name=of.display_name, timestamp_ns=of.timestamp_ns)
            added.events.extend(events[row] for row in rows)
