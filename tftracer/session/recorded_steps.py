"""What a training passes to its live session: runs, finished steps, and the traces of some steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Protocol, Union

from tftracer.contract.session import AskedBy
from tftracer.input_pipelines.watch import Pipelines
from tftracer.ledger.activity import Activities
from tftracer.slow.watch_results import SlowRecords
from tftracer.trace.model import CpuUse, FedValue


@dataclass(eq=False)
class RunHandle:
    """A run as the training threads know it. The session sets ``run_id`` at the run's first step; it is 0 before."""

    title: str
    fetches: tuple[str, ...]
    feeds: tuple[str, ...]
    options: str
    definition: str = ""  # for functions: where the function is defined
    run_id: int = 0
    steps: int = 0  # number of steps passed to the session
    requested: int = 0  # steps still to be traced
    graph_on_request: bool = False  # for compiled functions: the optimized graph is not known, but can be requested
    graph_requested: bool = False  # the graph is still to be collected; no step is traced meanwhile
    refusal: str = ""  # why its steps cannot be traced
    changed: str = ""  # for compiled functions: how the signature differs from that of the most similar earlier tracing
    tracings: int = 0  # for compiled functions: how often TensorFlow traced the function so far, all signatures together
    has_python: bool = False  # its steps also run Python code of the script, as the steps of an eager loop do
    is_session: bool = False  # its steps are calls of a session
    last_thread: int = 0  # the thread that ran the last step
    outside_ns: int = 0  # ThreadTime.outside_ns of that thread at that step (capture/steps/thread_time.py)
    input_ns: int = 0  # the part of outside_ns in which the thread waited for tf.data


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


class TraceRequests(Protocol):
    """The requests for traces (capture/traces/requests.py)."""

    def request(self, handle: RunHandle | None, steps: int, more: bool = False) -> None: ...

    def waiting(self) -> int: ...

    def set_trace_all(self, on: bool) -> None: ...


class StepSource(Protocol):
    """The queue of the training threads, as the session and the writer's threads use it (capture/steps/queue.py)."""

    counted: deque[CountedStep]  # filled by ``count_steps``
    activities: Activities  # the activities that the ledger adds up; also filled by ``count_steps``
    pipelines: Pipelines
    slow: SlowRecords  # slow steps and what was observed during them
    under_way: dict[int, int]  # thread -> start of its step (perf_counter ns), or end of its last step, negated
    lost: int  # number of steps that were dropped because the queue was full
    sees_all_sessions: bool  # sessions are recorded without a hook
    facts: SessionFacts  # of the TensorFlow session that was opened last
    failures: deque[str]  # why the queue switched itself off
    arrived: threading.Event  # set to wake the writer at once

    def count_steps(self) -> None:
        """Count the steps in the queue: find out which run each belongs to."""

    def restore_failed_claims(self) -> None:
        """Restore the requests of traced steps that failed."""

    def problems(self) -> Mapping[str, str]:
        """Return code -> message: why steps that should have been traced were not."""

    def active(self) -> bool:
        """Return whether a TensorFlow session is open, or a function runs or has just run."""

    def live_functions(self) -> list[Any]:
        """Return the ConcreteFunctions that were called and are alive."""

    def release(self, capture: Capture) -> None:
        """Remove a trace from the backlog: it was stored, or cannot be."""

    def failed(self, where: str, error: BaseException) -> None:
        """Stop recording, and log the error once."""

    @property
    def requests(self) -> TraceRequests: ...

    @property
    def request_graph(self) -> Callable[[RunHandle], None]: ...

    def finished_steps(self) -> dict[str, int]: ...

    def request_step(self, title: str, step: int) -> bool: ...

    def cancel_steps(self) -> None: ...

    def switch_off(self) -> None:
        """Stop recording."""

    def close(self) -> None:
        """Stop recording, and drop what is in the queue."""
