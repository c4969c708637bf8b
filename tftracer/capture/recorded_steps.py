"""What a training passes to its live session: finished steps, and the traces of some steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional, Union

from tftracer.contract.session import AskedBy
from tftracer.run_handle import RunHandle
from tftracer.trace.model import CpuUse, FedValue


@dataclass
class SessionFacts:
    """Facts about the TensorFlow session; None: unknown."""

    gpus: int | None = None
    distributed: bool | None = None


@dataclass(eq=False)
class Capture:
    """A traced step's RunMetadata on its way to the disk.

    It is kept as bytes: a protobuf message would have to be serialized twice, to measure its size and to write it.
    """

    raw: bytes
    asked_by: AskedBy
    trace_level: str
    partition_graphs_asked: bool
    facts: SessionFacts
    before_ns: int = 0  # time that the tracer took from the thread just before the step, for example to wait for room
    after_ns: int = 0  # the same, just after the step
    note: str = ""  # "epoch 3"
    read_cpu_use: Callable[[], CpuUse] = CpuUse  # called by the thread that stores the trace; empty if the script traced it
    fed: list[FedValue] | None = None  # the values that the step was fed; None: not known
    began_at: float | None = None  # epoch seconds at which the session was called

    @property
    def size(self) -> int:
        return len(self.raw)

    def read(self) -> bytes:
        """Return the bytes to store. May wait for them."""
        return self.raw

    @property
    def problem(self) -> str:
        """Why there are no bytes to store."""
        return "TensorFlow returned an empty RunMetadata for a step that was to be traced."


@dataclass(eq=False)
class Missed:
    """Marks a missing trace: the step should have been traced and was not."""

    reason: str  # the text after "because"
    is_lost: bool = True  # False: the request stays open, and a later step is traced instead
    before_ns: int = 0  # time that the tracer took from the thread just before the step, because it waited without success
    after_ns: int = 0


#: The trace of a step, a mark that its requested trace is missing, or None if no trace was requested.
Traced = Union[Capture, Missed, None]
#: A finished step: its run; its start and its end (perf_counter nanoseconds); the nanoseconds that its thread spent outside
#: session.run since the run's previous step; the part of them in which the thread waited for the next element of a dataset; its
#: trace. None for nanoseconds: not known.
CountedStep = tuple[RunHandle, int, int, Optional[int], Optional[int], Traced]


def tracer_ns(trace: Traced) -> tuple[int, int]:
    """Return the time that the tracer took from the thread (just before the step, just after it)."""
    return (trace.before_ns, trace.after_ns) if trace is not None else (0, 0)
