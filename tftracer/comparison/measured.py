"""The numbers of a session's steps and traces that are compared with those of other sessions.

Steps next to each other are alike, and two sessions of the same code differ by more than chance among their steps explains. So a
session counts once: as the 25th percentile of its steps, which busy neighbours on the machine move least. Left out are the first
10% of the steps, traced steps and those after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tftracer.trace.analyses.op_kinds import is_named
from tftracer.trace.arrays.types import Float64, Int64

#: The share of steps that are left out as warming up.
WARM_UP = 0.1
#: Steps in a block. With only one session a side, blocks take the place of sessions: they vary more than steps within a block do.
BLOCK = 200


@dataclass(frozen=True)
class Steps:
    """One row a step, in order."""

    number: Int64
    start_ns: Int64
    duration_ns: Int64

    def only(self, selected: npt.NDArray[np.bool_] | slice) -> Steps:
        return Steps(self.number[selected], self.start_ns[selected], self.duration_ns[selected])


def usual_steps(steps: Steps, traced: Int64) -> Steps:
    """Without the first 10%, traced steps and those after them. ``traced``: their numbers."""
    last = int(steps.number.max(initial=0))
    near_trace = np.isin(steps.number, traced) | np.isin(steps.number, traced + 1)
    return steps.only((steps.number > WARM_UP * last) & ~near_trace)


@dataclass(frozen=True)
class Measured:
    """One session. ``values``: ``step``, ``p99``, ``gap`` (ns), ``memory`` and ``bytes``; unknown ones are left out."""

    name: str
    steps: int  # usual ones
    values: Mapping[str, float]
    blocks: Mapping[str, Float64] = field(default_factory=dict)  # the values of each block of steps
    ops: Mapping[str, float] = field(default_factory=dict)  # ns in a step: the median of its traces
    shortest_ops: Mapping[str, float] = field(default_factory=dict)  # ns in the step of the trace in which the op took least
    op_types: Mapping[str, float] = field(default_factory=dict)  # both, of op types
    shortest_op_types: Mapping[str, float] = field(default_factory=dict)
    findings: frozenset[str] = frozenset()  # codes
    traces: int = 0
    rounding: Mapping[str, float] = field(default_factory=dict)  # how far a value may be off, as a share
    started_at: float | None = None  # epoch seconds
    shares: Mapping[str, float] = field(default_factory=dict)  # kind of a ledger's part -> of the wall time; {}: not known
    growth_rate: float | None = None  # bytes a second that the memory grows by; None: not known
    facts: Mapping[str, str] = field(default_factory=dict)  # what may explain a difference: host, TensorFlow, GPUs

    def time_of(self, op: str, shortest: bool = False) -> float | None:
        """Nanoseconds in a step of the op types that a user means by this name; None: no trace has one."""
        types = self.shortest_op_types if shortest else self.op_types
        times = [time for op_type, time in types.items() if is_named(op_type, op)]
        return sum(times) if times else None


def step_values(usual: Steps) -> dict[str, float]:
    """Nanoseconds. Empty without usual steps."""
    if not len(usual.number):
        return {}
    values = {
        "step": float(np.percentile(usual.duration_ns, 25)),
        "p99": float(np.percentile(usual.duration_ns, 99)),
    }
    gaps = between(usual)
    return {**values, "gap": float(np.median(gaps))} if len(gaps) else values


def between(usual: Steps) -> Int64:
    """Time from the end of a step to the start of the next one, where both are known."""
    follows = np.diff(usual.number) == 1
    gaps = usual.start_ns[1:] - usual.start_ns[:-1] - usual.duration_ns[:-1]
    return np.asarray(np.maximum(gaps[follows], 0))


def block_values(usual: Steps) -> dict[str, Float64]:
    """[blocks] of each value."""
    starts = range(0, len(usual.number) - BLOCK + 1, BLOCK)
    blocks = [step_values(usual.only(slice(start, start + BLOCK))) for start in starts]
    return {name: np.array([block[name] for block in blocks if name in block]) for name in ("step", "p99", "gap")}
