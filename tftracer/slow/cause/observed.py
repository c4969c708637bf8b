"""What was measured of a slow turn: times of one thread, stacks, who held Python's lock. None is unknown, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tftracer.slow.recorded import FoldedStack, Frame


@dataclass(frozen=True)
class LockHolder:
    """A thread that held Python's lock when it was read."""

    thread: str  # its name
    whose: Literal["training", "tracer", "other"]  # the training thread itself, one of the tracer's, another
    stack: tuple[Frame, ...]  # the outermost first


@dataclass(frozen=True)
class Span:
    """What was measured of a part of a turn. Seconds."""

    length_s: float
    stacks: tuple[FoldedStack, ...] = ()  # of the training thread
    other_stacks: tuple[FoldedStack, ...] = ()
    cpu_s: float | None = None  # the training thread ran
    queue_s: float | None = None  # it could have run and had no CPU
    doubtful_s: float | None = None  # how much more both may be
    disk_s: float | None = None  # it waited for a disk
    stopped_s: float | None = None  # the process was stopped, at least so long
    process_s: float | None = None  # CPU time of all threads of the process
    process_least_s: float | None = None  # so much of it is surely of this span
    process_queue_s: float | None = None  # threads of the process, not the tracer's, could have run and had no CPU: summed
    late_s: float = 0.0  # the watch's thread waited for Python's lock, or for a CPU
    wanted_lock_s: float | None = None  # the training thread waited for Python's lock, as read from the thread's state
    lock_looks: int | None = None  # number of readings of that state
    others_had_lock: float | None = None  # share of the readings of the lock in which another thread held it
    holders: tuple[LockHolder | None, ...] = ()  # of the lock meanwhile, one of each reading; None: nobody
    gc_s: float = 0.0  # garbage collections
    samples: int = 0  # times at which stacks were read
    unseen_s: float | None = None  # the longest time without a look at all threads; None: there was no look

    @property
    def sampled_s(self) -> float:
        return sum(stack.seconds for stack in self.stacks)


@dataclass(frozen=True)
class Observed:
    """``between``: from the step before to the step that ends the turn; ``inside``: that step."""

    between: Span
    inside: Span
    usual_cpu: float | None = None  # CPU seconds of the training thread per second, as usual lately
    usual_process: float | None = None  # of the whole process
    usual_process_queue: float | None = None  # what its threads waited for a CPU, summed
    usual_wanted_lock: float | None = None  # share of the time in which the training thread waits for Python's lock
    others_share: float | None = None  # of the machine's CPUs, that other processes used meanwhile
    may_call_python: bool = True  # TensorFlow may call Python functions
    doubt: str = ""  # why something is missing
