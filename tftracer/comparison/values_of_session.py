"""The values of a session's steps and traces that are compared with those of other sessions.

Steps next to each other are correlated, and two sessions of the same code differ by more than the scatter of their steps
explains. So a session counts once, by the 25th percentile of its steps: other load on the machine affects it least. The first
10% of the steps, traced steps and the step after each traced step do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tftracer.trace.analyses.op_kinds import is_named
from tftracer.trace.arrays.intervals import is_in
from tftracer.trace.arrays.types import Float64, Int64, Rows

#: The share of steps that are left out as warming up.
WARM_UP = 0.1
#: Number of steps in a block. With one session per side, blocks replace sessions, because neighbouring blocks are hardly
#: correlated, but neighbouring steps are.
BLOCK = 200


@dataclass(frozen=True)
class Steps(Rows):
    """One row per step, in order."""

    number: Int64
    start_ns: Int64
    duration_ns: Int64


def counted_steps(steps: Steps, traced: Int64) -> Steps:
    """Return the steps that are compared: without the first 10%, traced steps and the step after each.

    ``traced``: numbers of traced steps.
    """
    last_number = int(steps.number.max(initial=0))
    near_trace = is_in(steps.number, traced) | is_in(steps.number, traced + 1)
    return steps.only((steps.number > WARM_UP * last_number) & ~near_trace)


@dataclass(frozen=True)
class Measured:
    """The values of one session.

    ``values``: ``step``, ``p99``, ``gap`` (ns), ``memory`` and ``bytes``, as far as they are known.
    """

    name: str
    steps: int  # number of counted steps
    values: Mapping[str, float]
    blocks: Mapping[str, Float64] = field(default_factory=dict)  # the values of each block of steps
    ops: Mapping[str, float] = field(default_factory=dict)  # ns per step: median over the traces
    shortest_ops: Mapping[str, float] = field(default_factory=dict)  # ns per step: shortest over the traces
    op_types: Mapping[str, float] = field(default_factory=dict)  # op type -> ns per step: median over the traces
    shortest_op_types: Mapping[str, float] = field(default_factory=dict)  # op type -> ns per step: shortest over the traces
    findings: frozenset[str] = frozenset()  # codes
    traces: int = 0  # number of readable traces
    relative_error: Mapping[str, float] = field(default_factory=dict)  # possible relative error of a value
    started_at: float | None = None  # epoch seconds
    shares: Mapping[str, float] = field(default_factory=dict)  # part of the ledger -> share of the wall time; {}: not known
    growth_rate: float | None = None  # growth of the memory in bytes per second; None: not known
    facts: Mapping[str, str] = field(default_factory=dict)  # possible reasons for a difference: host, TensorFlow, GPUs

    def time_of(self, op: str, shortest: bool = False) -> float | None:
        """Return the ns per step of all op types that a user means by this name; None if no trace has one of them."""
        types = self.shortest_op_types if shortest else self.op_types
        times = [time for op_type, time in types.items() if is_named(op_type, op)]
        return sum(times) if times else None


def step_values(steps: Steps) -> dict[str, float]:
    """Return ``step``, ``p99`` and ``gap`` in nanoseconds; {} if there are no counted steps."""
    if not len(steps.number):
        return {}
    values = {
        "step": float(np.percentile(steps.duration_ns, 25)),
        "p99": float(np.percentile(steps.duration_ns, 99)),
    }
    gaps = gaps_between(steps)
    return {**values, "gap": float(np.median(gaps))} if len(gaps) else values


def gaps_between(steps: Steps) -> Int64:
    """Return the times from the end of a step to the start of the next step, where both steps are known."""
    follows = np.diff(steps.number) == 1
    gaps = steps.start_ns[1:] - steps.start_ns[:-1] - steps.duration_ns[:-1]
    return np.asarray(np.maximum(gaps[follows], 0))


def block_values(steps: Steps) -> dict[str, Float64]:
    """Return ``step``, ``p99`` and ``gap`` of the blocks of steps: name -> [blocks] ns."""
    starts = range(0, len(steps.number) - BLOCK + 1, BLOCK)
    blocks = [step_values(steps.only(slice(start, start + BLOCK))) for start in starts]
    return {name: np.array([block[name] for block in blocks if name in block]) for name in ("step", "p99", "gap")}
