"""The steps of a profile.

Steps are told by markers (our own; else ``step_num`` of ``tf.profiler.experimental.Trace`` and
``jax.profiler.StepTraceAnnotation``), else by calls of compiled functions; a profile with neither is one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.profile_nodes import of_kinds
from tftracer.trace.decode.xplane import HOST, STEP_MARKER, Plane, Space
from tftracer.trace.decode.xplane_stats import having

MAX_STEPS = 10_000
_JIT = "PjitFunction("


@dataclass
class Step:
    """One step of a profile, in the host's time."""

    title: str
    number: int  # 0: the profile does not tell
    start: int  # ns
    end: int
    line: int = -1  # of the host's: the thread that ran it; -1: the profile marks no steps
    lasting: bool = False  # its work goes on behind its end: JAX returns before it is done

    @property
    def duration_s(self) -> float | None:
        """None where the profile marks no steps: how long one was recorded is not how long a step took."""
        return (self.end - self.start) / 1e9 if self.line >= 0 else None

    def apart(self, start: Int64, until: Int64) -> Bool:
        """[events] whether each lies before the step, or behind it."""
        before: Bool = until < self.start
        return before if self.lasting else before | (start >= self.end)


def steps_of(space: Space) -> list[Step]:
    """In the order of time; none overlaps the next. One step for the whole profile where nothing marks them."""
    host = space.plane(HOST)
    marked = _outermost(host) if host else []
    if not marked:
        events = [plane.events for plane in space.planes if len(plane.events.start)]
        start = min((int(one.start.min()) for one in events), default=0)
        end = max((int((one.start + one.duration).max()) for one in events), default=0)
        return [Step("profile", 0, start, end)]
    return marked[:MAX_STEPS]


def _outermost(host: Plane) -> list[Step]:
    jit = of_kinds(host, *(name for name, _ in host.kind_names.values() if name.startswith(_JIT)))
    numbered, number = having(host, "step_num")
    own = of_kinds(host, STEP_MARKER)
    if len(own):
        return [
            _named_after_its_call(host, step) for step in _not_nested(host, _of_busiest_thread(host, own), {}, bool(len(jit)))
        ]
    for marks in (numbered, having(host, "tf_function_call")[0], jit):
        if len(marks):
            numbers = dict(zip(numbered.tolist(), number.number.tolist()))
            return list(_not_nested(host, _of_busiest_thread(host, marks), numbers, bool(len(jit))))
    return []


def _named_after_its_call(host: Plane, step: Step) -> Step:
    """Our own marker says when the step was, and not what it is called."""
    calls, events = having(host, "tf_function_call")[0], host.events
    within = calls[(events.line[calls] == step.line) & (events.start[calls] >= step.start) & (events.start[calls] < step.end)]
    return replace(step, title=host.kind_name(int(events.kind[within[0]])) if len(within) else "traced step")


def _of_busiest_thread(host: Plane, marks: Int64) -> Int64:
    """Steps are those of one thread: what others call meanwhile is other work."""
    line = host.events.line[marks]
    busiest: Int64 = marks[line == np.bincount(line).argmax()]
    return busiest


def _not_nested(host: Plane, marks: Int64, numbers: dict[int, int], lasting: bool) -> Iterator[Step]:
    events, behind = host.events, -1
    for row in marks[np.argsort(events.start[marks], kind="stable")].tolist():
        start, end = int(events.start[row]), int(events.start[row] + events.duration[row])
        if start < behind:
            continue
        behind = max(end, start + 1)
        name = host.kind_name(int(events.kind[row]))
        title = name[len(_JIT) :].rstrip(")") if name.startswith(_JIT) else name
        yield Step(title, max(numbers.get(row, 0), 0), start, behind, int(events.line[row]), lasting)
