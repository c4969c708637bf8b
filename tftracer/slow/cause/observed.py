"""Measurements of a slow turn: times of its thread, stacks, and the holders of Python's lock. None means unknown, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tftracer.slow.watch_results import FoldedStack, Frame

#: The machine counts as busy if other processes use at least this share of its CPUs.
BUSY = 0.25


@dataclass(frozen=True)
class LockHolder:
    """A thread that held Python's lock at a reading of the lock."""

    thread: str  # its name
    whose: Literal["training", "tracer", "other"]  # whose thread it is; "training": the thread of the slow turn
    stack: tuple[Frame, ...]  # outermost frame first


@dataclass(frozen=True)
class Span:
    """Measurements of one part of a turn, in seconds."""

    length_s: float
    stacks: tuple[FoldedStack, ...] = ()  # of the training thread
    other_stacks: tuple[FoldedStack, ...] = ()  # of all other threads
    cpu_s: float | None = None  # CPU time of the training thread
    kernel_s: float | None = None  # the part of cpu_s in the kernel
    faults: float | None = None  # page faults of the training thread
    queue_s: float | None = None  # time for which the training thread was ready to run but had no CPU
    disk_s: float | None = None  # time for which the training thread waited for a disk
    stopped_s: float | None = None  # minimum time for which the process was stopped
    asleep_s: float | None = None  # minimum time for which the training thread slept, by its state
    process_s: float | None = None  # CPU time of all threads of the process
    process_min_s: float | None = None  # the part of process_s that was surely used within this span
    python_s: float | None = None  # the part of process_s on Python threads that run neither this training nor the tracer
    process_queue_s: float | None = None  # like queue_s, but the sum over all threads of the process except the tracer's
    process_doubtful_queue_s: float | None = None  # like process_queue_s: waits that Linux counted but that may be sleeps
    watch_delay_s: float = 0.0  # time for which the watch's own thread waited for Python's lock or for a CPU
    waits_for: str = ""  # what the training thread mostly waited for: "in a sleep", "for a pipe"; "": not known
    lock_wait_s: float | None = None  # time for which the training thread waited for Python's lock, by readings of its state
    lock_readings: int | None = None  # number of readings of its state
    other_holder_share: float | None = None  # share of the readings of the lock in which another thread held it
    holders: tuple[LockHolder | None, ...] = ()  # one for each reading of the lock; None: no thread held it
    clocked: Span | None = None  # length and counters, summed over the times in this span that a clock measures; None: not known
    gc_s: float = 0.0  # time of garbage collections
    functions_s: float | None = None  # measured time beyond the usual in Python functions that TensorFlow called, on one thread
    functions_cpu_s: float | None = None  # CPU time of such functions on all threads
    function: Frame | None = None  # the function of the script that took most of it; None: not known
    others_gc_s: float = 0.0  # time of garbage collections on other threads that gc_s does not include
    collected_by: str = ""  # name of another thread that collected for most of gc_s; "": the training thread, or not known
    samples: int = 0  # number of times at which stacks were read

    @property
    def all_stacks(self) -> tuple[FoldedStack, ...]:
        """The stacks of the training thread and of all other threads."""
        return (*self.stacks, *self.other_stacks)

    @property
    def is_single_sample(self) -> bool:
        return sum(stack.samples for stack in self.stacks) == 1

    @property
    def sampled_s(self) -> float:
        return sum(stack.seconds for stack in self.stacks)


@dataclass(frozen=True)
class Observed:
    """Measurements of both parts of a turn, and the usual rates: seconds per second of the last minute."""

    between: Span  # from the previous step to the step that ends the turn
    inside: Span  # the step that ends the turn
    usual_cpu: float | None = None  # CPU time of the training thread
    usual_process: float | None = None  # CPU time of the whole process
    usual_python: float | None = None  # the part of it on Python threads that run neither this training nor the tracer
    usual_process_queue: float | None = None  # waits of the process's threads for a CPU, summed
    usual_lock_wait: float | None = None  # waits of the training thread for Python's lock
    others_share: float | None = None  # share of the machine's CPUs that other processes used during the turn
    usual_lines: frozenset[Frame] = frozenset()  # where the thread usually is between steps (usual_lines in blamed_code.py)
    may_call_python: bool = True  # whether Python code may run inside the step: of the script, or functions that TensorFlow calls
    runs_script: bool = False  # whether the script's own code may run in the step: eagerly, or in other hooks
    doubt: str = ""  # why a measurement is missing

    def side(self, is_inside: bool) -> Span:
        """Return the step, or the time before it."""
        return self.inside if is_inside else self.between

    @property
    def is_busy(self) -> bool:
        """Whether other processes used so much of the CPUs that py-spy often had none.

        Then py-spy mostly reads when the training thread gives its CPU away, for example just after a stall. Therefore a few
        samples do not prove a line.
        """
        return (self.others_share or 0.0) >= BUSY
