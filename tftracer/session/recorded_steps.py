"""What a training hands to its live session: runs, finished steps, and the traces of some of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Protocol, Union

from tftracer.contract.session import AskedBy
from tftracer.input_pipelines.watch import Pipelines
from tftracer.ledger.activity import Activities
from tftracer.trace.model import CpuUse, FedValue


@dataclass(eq=False)
class RunHandle:
    """A run as the training threads know it; the session numbers it at its first step (0: not yet)."""

    title: str
    fetches: tuple[str, ...]
    feeds: tuple[str, ...]
    options: str
    definition: str = ""  # of a function: where it is defined
    run_id: int = 0
    steps: int = 0  # that were handed to the session
    requested: int = 0  # steps still to be traced
    graph_on_request: bool = False  # of a compiled function: the graph that runs is not known, and may be requested
    graph_requested: bool = False  # until it is collected; steps are not traced meanwhile
    refusal: str = ""  # why no step of it is traced
    changed: str = ""  # of a compiled function: how its signature differs from the one that was traced before
    tracings: int = 0  # of a compiled function, of all of its signatures: how often it was traced by now
    has_python: bool = False  # its steps also run the script's Python, as those of an eager loop do
    last_thread: int = 0  # that ran its last step, and what had passed on it outside session.run by then (step_queue.ThreadTime)
    outside_ns: int = 0
    input_ns: int = 0  # of that, in which the thread waited for tf.data


@dataclass
class SessionFacts:
    """What was found out about the TensorFlow session."""

    gpus: int | None = None
    distributed: bool | None = None


@dataclass(eq=False)
class Capture:
    """A traced step's RunMetadata on its way to the disk.

    Serialized at once: a message would be serialized to know its size, too, and once more to be written.
    """

    raw: bytes
    asked_by: AskedBy
    trace_level: str
    partition_graphs_asked: bool
    facts: SessionFacts
    before_ns: int = 0  # what the tracer took of its thread's time just before the step, waiting for room
    after_ns: int = 0  # and just after it
    note: str = ""  # "epoch 3"
    read_cpu_use: Callable[[], CpuUse] = CpuUse  # of the step, on the thread that stores it; empty if the script traced it
    fed: list[FedValue] | None = None  # what the step was fed; None: not known
    began_at: float | None = None  # epoch seconds at which the session was called

    @property
    def size(self) -> int:
        return len(self.raw)

    def read(self) -> bytes:
        """The trace as it is stored; may have to wait for it."""
        return self.raw

    @property
    def problem(self) -> str:
        """Why there is nothing to be stored."""
        return "TensorFlow returned an empty RunMetadata for a step that was to be traced."


@dataclass(eq=False)
class Missed:
    """Stands for the trace of a step that was to be traced and was not."""

    reason: str  # in the words of a message: "because ..."
    is_lost: bool = True  # False: the request stands, and a later step is traced for it
    before_ns: int = 0  # what the tracer took of its thread's time just before the step, waiting in vain
    after_ns: int = 0


#: What a step left beside its times: its trace, or that it has none though it was asked for.
Traced = Union[Capture, Missed, None]
#: A finished step: its run, start and end (perf_counter nanoseconds), nanoseconds that its thread spent outside session.run since
#: the run's step before (None: not known), those of it in which the thread waited for the next element of a dataset, its trace.
Settled = tuple[RunHandle, int, int, Optional[int], Optional[int], Traced]


def tracer_ns(trace: Traced) -> tuple[int, int]:
    """What the tracer took of the thread's time just before a step, and just after it."""
    return (trace.before_ns, trace.after_ns) if trace is not None else (0, 0)


class StepSource(Protocol):
    """What the writer's threads take from the training's threads (capture/steps/queue.py)."""

    settled: deque[Settled]  # filled by ``settle``
    activities: Activities  # what the ledger adds up; filled by ``settle``, too
    pipelines: Pipelines
    under_way: dict[int, int]  # thread -> when its step began (perf_counter nanoseconds), or, negative, when its last one ended
    lost: int  # steps that found the queue full
    sees_all_sessions: bool  # no hook is needed
    facts: SessionFacts  # of the TensorFlow session that was opened last
    failures: deque[str]  # why the queue switched itself off
    arrived: threading.Event  # something came that should not wait for the writer's next round

    def settle(self) -> None:
        """Find out which runs the steps in the queue belong to."""

    def restore_failed_claims(self) -> None:
        """Traces that were asked for and whose steps failed are asked for again."""

    def problems(self) -> Mapping[str, str]:
        """Code -> message: why steps that were to be traced were not."""

    def active(self) -> bool:
        """Whether a TensorFlow session is open."""

    def live_functions(self) -> list[Any]:
        """Return the ConcreteFunctions that were called and are alive."""

    def release(self, capture: Capture) -> None:
        """A trace is stored, or never will be."""

    def failed(self, where: str, error: BaseException) -> None:
        """Record no more; log the error once."""
