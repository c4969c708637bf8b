"""Finds the steps of a profile.

Steps are found by markers (our own, or else ``step_num`` of ``tf.profiler.experimental.Trace`` and
``jax.profiler.StepTraceAnnotation``), or else by calls of compiled functions. A profile with neither is one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.profile_nodes import of_kinds
from tftracer.trace.decode.xplane_reader import HOST, STEP_MARKER, Plane, Space
from tftracer.trace.decode.xplane_stats import having

MAX_STEPS = 10_000
_JIT = "PjitFunction("


@dataclass
class Step:
    """One step of a profile, on the host's clock."""

    title: str
    number: int  # 0: not known
    start: int  # ns
    end: int
    line: int = -1  # the host's line (thread) that ran it; -1: the profile marks no steps
    lasting: bool = False  # work of the step goes on after its end: JAX returns before the work is done

    @property
    def duration_s(self) -> float | None:
        """None if the profile marks no steps: the duration of the recording is not the duration of a step."""
        return (self.end - self.start) / 1e9 if self.line >= 0 else None

    def apart(self, start: Int64, until: Int64) -> Bool:
        """Return [events] whether each is before or after the step."""
        before: Bool = until < self.start
        return before if self.lasting else before | (start >= self.end)


def steps_of(space: Space) -> list[Step]:
    """Return the steps in the order of time, without overlaps; one step for the whole profile if nothing marks them."""
    host = space.plane(HOST)
    marked = _marked_steps(host) if host else []
    if not marked:
        events = [plane.events for plane in space.planes if len(plane.events.start)]
        start = min((int(of_plane.start.min()) for of_plane in events), default=0)
        end = max((int(of_plane.end.max()) for of_plane in events), default=0)
        return [Step("profile", 0, start, end)]
    return marked[:MAX_STEPS]


def _marked_steps(host: Plane) -> list[Step]:
    jit = of_kinds(host, *(name for name, _ in host.kind_names.values() if name.startswith(_JIT)))
    numbered, number = having(host, "step_num")
    numbers = dict(zip(numbered.tolist(), number.number.tolist()))
    own, calls = of_kinds(host, STEP_MARKER), having(host, "tf_function_call")[0]
    marks = next((marks for marks in (own, numbered, calls, jit) if len(marks)), own)
    steps = _steps_without_overlap(host, _of_busiest_thread(host, marks), numbers, bool(len(jit)))
    return [_named_after_its_call(host, step, calls) if len(own) else step for step in steps]


def _named_after_its_call(host: Plane, step: Step, calls: Int64) -> Step:
    """Name a step after the first of ``calls`` in it: our own marker has no name."""
    events = host.events
    within = calls[(events.line[calls] == step.line) & (events.start[calls] >= step.start) & (events.start[calls] < step.end)]
    return replace(step, title=host.kind_name(int(events.kind[within[0]])) if len(within) else "traced step")


def _of_busiest_thread(host: Plane, marks: Int64) -> Int64:
    """Return the marks of the thread with the most marks: calls of other threads are other work."""
    line = host.events.line[marks]
    busiest: Int64 = marks[line == np.bincount(line, minlength=1).argmax()]
    return busiest


def _steps_without_overlap(host: Plane, marks: Int64, numbers: dict[int, int], lasting: bool) -> Iterator[Step]:
    events, previous_end = host.events, -1
    for row in marks[np.argsort(events.start[marks], kind="stable")].tolist():
        start, end = int(events.start[row]), int(events.end[row])
        if start < previous_end:
            continue
        previous_end = max(end, start + 1)
        name = host.kind_name(int(events.kind[row]))
        title = name[len(_JIT) :].rstrip(")") if name.startswith(_JIT) else name
        yield Step(title, max(numbers.get(row, 0), 0), start, previous_end, int(events.line[row]), lasting)
