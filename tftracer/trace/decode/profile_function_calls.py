"""Events of a profile's host other than ops: calls of tf.functions, programs that XLA compiled, settings of tf.data stages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.hlo import PLANE as HLO_PLANE
from tftracer.trace.decode.profile_nodes import kind_table
from tftracer.trace.decode.profile_steps import steps_of
from tftracer.trace.decode.xplane_reader import HOST, Plane, Space, read_space
from tftracer.trace.decode.xplane_stats import having, stats_of
from tftracer.trace.decode.xspace import epoch_of
from tftracer.trace.model import Trace

_EXECUTES = re.compile(r"EagerKernelExecute|KernelAndDeviceFunc::Run")
_PROGRAM = re.compile(r"(.*)\(\d+\)")


@dataclass(frozen=True)
class FunctionCall:
    """A call of a tf.function from Python."""

    name: str
    start: int  # ns since the trace's origin; below 0 if before the first op
    end: int
    was_traced: bool  # whether TensorFlow traced the function (built its graph) in this call
    times_traced: int  # how often TensorFlow has traced the function so far; 0: not known
    runs_at: int  # when TensorFlow began to execute the function's graph; ``start`` if not known
    ran_ns: int  # how long the execution took; 0 if not known


@dataclass(frozen=True)
class HostEvents:
    """The events of the host's threads. ``start`` and ``end``: [n] times of the n events, in ns since the trace's origin."""

    plane: Plane
    start: Int64
    end: Int64
    programs: dict[str, int]  # module -> number of programs that XLA has compiled for it so far
    step_line: int  # the line (thread) of the step in the plane; below 0 if the profile marks no step

    @classmethod
    def of(cls, trace: Trace) -> HostEvents | None:
        """Read the host's events; None if the trace is not a profile or has no host plane."""
        space = read_space(trace.raw) if trace.source == "xspace" and trace.content.size else None
        plane = space.plane(HOST) if space else None
        if space is None or plane is None:
            return None
        start = plane.events.start - (trace.origin_ns - epoch_of(space))
        return cls(plane, start, start + plane.events.duration, _programs(space), steps_of(space)[0].line)

    @property
    def marks_steps(self) -> bool:
        """Whether the profile marks the begin and end of its step."""
        return self.step_line >= 0

    def rows(self, pattern: re.Pattern[str]) -> Int64:
        """Return the indices of the events whose names match the pattern at their beginning, in ascending order."""
        kinds = [kind for kind, (name, _) in self.plane.kind_names.items() if pattern.match(name)]
        return np.flatnonzero(kind_table(self.plane, kinds))

    def cover(self, rows: Int64) -> Cover:
        return Cover.of(self.start[rows], self.end[rows])

    def settings(self, pattern: re.Pattern[str], stats: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return event name -> stat -> value, for events that match the pattern; the last event that has the stat counts."""
        rows = self.rows(pattern)
        columns = stats_of(self.plane, rows, stats)
        result: dict[str, dict[str, str]] = {}
        for position, kind in enumerate(self.plane.events.kind[rows].tolist()):
            values = {n: s.text(position) or str(int(s.number[position])) for n, s in columns.items() if s.has[position]}
            result.setdefault(self.plane.kind_name(kind), {}).update(values)
        return result

    def function_calls(self) -> list[FunctionCall]:
        """Return the outermost calls of the step's thread, in the order of time; of all threads if no step is marked."""
        rows, tracing_state = having(self.plane, "tf_function_call")
        counts = stats_of(self.plane, rows, ["tracing_count"])["tracing_count"]
        calls: list[FunctionCall] = []
        for position in np.argsort(self.start[rows], kind="stable").tolist():
            row = int(rows[position])
            is_of_step = not self.marks_steps or self.plane.events.line[row] == self.step_line
            if is_of_step and (not calls or self.start[row] >= calls[-1].end):
                traced = tracing_state.text(position).startswith("traced")
                calls.append(self._call(row, traced, int(counts.number[position]) if counts.has[position] else 0))
        return calls

    def _call(self, row: int, was_traced: bool, times_traced: int) -> FunctionCall:
        start, end = int(self.start[row]), int(self.end[row])
        name = self.plane.kind_name(int(self.plane.events.kind[row]))
        return FunctionCall(name, start, end, was_traced, times_traced, *self._longest_execution(row))

    def _longest_execution(self, call: int) -> tuple[int, int]:
        """Return (begin, duration) of the longest execution within a call (event); (its begin, 0) if there is none."""
        start, end, lines = int(self.start[call]), int(self.end[call]), self.plane.events.line
        low, high = np.searchsorted(self.start[self._executions], [start, end])
        inside = self._executions[low:high]
        inside = inside[(self.end[inside] <= end) & (lines[inside] == lines[call])]
        if not len(inside):
            return start, 0
        longest = inside[np.argmax(self.end[inside] - self.start[inside])]
        return int(self.start[longest]), int(self.end[longest] - self.start[longest])

    @cached_property
    def _executions(self) -> Int64:
        """Executions of ops from Python, in the order of time."""
        rows = self.rows(_EXECUTES)
        return rows[np.argsort(self.start[rows], kind="stable")]


def _programs(space: Space) -> dict[str, int]:
    plane = space.plane(HLO_PLANE)
    names = [_PROGRAM.fullmatch(name) for name, _ in plane.kind_names.values()] if plane else []
    return Counter(name.group(1) for name in names if name)
