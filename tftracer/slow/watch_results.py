"""The results of the slow-step watch, the part of the tracer that watches for slow steps (slow/watch/watch.py).

They are plain tuples in a bounded store, which the writer's thread empties. Times are perf_counter nanoseconds, as in
``recorded_steps.CountedStep``; durations are seconds. None means unknown, never 0.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple, Union

from tftracer.contract.stalls import PartKind, StallCause
from tftracer.run_handle import RunHandle

#: Maximum number of records that wait for the writer, which takes them five times a second. If there are more, the oldest are
#: dropped.
MAX_RECORDS = 4096


#: Why TensorFlow traced a function although no argument changed.
FIRST_CALL = "it was called for the first time"
#: The name of the cause if ``fit`` itself took the time between two epochs, without a line of the script.
EPOCH_TURN = "the turn of an epoch"
#: The holder of Python's lock if it is one of the tracer's threads.
OF_TRACER = "a thread of tftracer"


class Frame(NamedTuple):
    """One line of Python. Neither its locals nor its source are kept."""

    file: str
    line: int
    function: str
    #: For a line in a method of a SessionRunHook or of a Keras callback: the class that defines the method
    #: ("CheckpointSaverHook"), which may be a base class of the object's class; else "". Also "" for tftracer's own hooks.
    owner: str
    #: Whether the code is not the user's own: it belongs to Python, an installed package, or a module without a file.
    is_library: bool


class FoldedStack(NamedTuple):
    """Equal stacks of one thread, counted."""

    thread: str  # the thread's name, such as "MainThread"
    frames: tuple[Frame, ...]  # the outermost first; only the innermost ones if there are too many
    samples: int
    seconds: float  # the time that the samples represent


class HostChange(NamedTuple):
    """What Linux counted in a span of time (/proc, with its pressure files). None: not known on this system."""

    seconds: float
    on_cpu_s: float | None  # time for which the training thread ran
    run_queue_s: float | None  # time for which the training thread was ready to run but had no CPU
    process_cpu_s: float | None  # CPU time of all threads of this process
    machine_cpu_s: float | None  # CPU time of all processes of the machine, also outside of a container
    cpus: int | None  # number of CPUs of the machine
    steal_s: float | None  # time that the hypervisor took, summed over the CPUs
    cpu_pressure_s: float | None  # time for which at least one process waited for a CPU
    io_pressure_s: float | None  # time for which at least one process waited for a disk
    memory_pressure_s: float | None  # time for which at least one process waited for memory to be freed
    major_faults: int | None  # number of the training thread's pages that came from a disk
    read_bytes: int | None  # bytes that this process read from disks
    written_bytes: int | None  # bytes that this process wrote to disks

    @property
    def others_share(self) -> float | None:
        """The share of the machine's CPUs that other processes used."""
        if self.machine_cpu_s is None or self.process_cpu_s is None or not self.cpus:
            return None
        return min((self.machine_cpu_s - self.process_cpu_s) / max(self.seconds, 1e-9) / self.cpus, 1.0)


class Cause(NamedTuple):
    """What made a step slow, as far as the data shows it.

    ==============  ================================================================================================
    kind            evidence
    ==============  ================================================================================================
    gc              Python's garbage collections make up half of the excess (``gc.callbacks``)
    machine         its thread waited for a CPU for half of the excess, or other processes had the CPUs
    disk            the thread mostly waited for a disk, at ``frame``
    hook            half of the samples are in a method of a hook (not of tftracer's); ``name`` is its class
    callback        the same for a Keras callback
    py_function     a Python function that TensorFlow calls, on any thread; ``frame`` is its line
    wait            the thread mostly waited, at ``frame``: for a sleep, a lock or the network
    python          the thread mostly ran Python code, at ``frame``
    lock            another thread held Python's lock; ``name`` is that thread and its line
    retrace         the function was traced again; ``name`` says why
    other_run       steps of another run passed; ``name`` is its title and their number
    input           the thread waited for the next element of a dataset (measured)
    checkpoint      a checkpoint was saved or restored (measured); ``name`` is the method: "Saver.save"
    tensorflow      the step itself took longer
    stopped         the process did not run
    unknown         none of these; ``frame`` may still be where most samples were
    ==============  ================================================================================================
    """

    kind: StallCause
    name: str  # see the table; for "tensorflow" also "computed" or "waited"; for "python" also ``EPOCH_TURN``; else ""
    frame: Frame | None  # the user's innermost line with the most samples; a library's if no line is the user's
    share: float | None  # the share of the excess (0 to 1) that the evidence explains; None: not known


UNKNOWN = Cause("unknown", "", None, None)


class OtherCause(NamedTuple):
    """What else took much of a slow turn, besides its cause."""

    cause: Cause
    seconds: float  # beyond the usual


class Part(NamedTuple):
    """A part of a slow turn's time. The parts of a turn add up to its length."""

    kind: PartKind
    seconds: float
    usual_s: float | None  # its usual length; None: not known
    what: str  # "evaluate: convnet, 100 steps", "thread serializer"; "" if nothing is known


class Stall(NamedTuple):
    """A step, or the time before it, in a turn that took more than 3 times the median, and more than 20 ms longer."""

    run: RunHandle
    step: int  # number of the step in its run, from 1; for a time between steps, of the step after it
    call: int  # its number among the calls of all signatures of its function; for a session's run the same as ``step``
    inside: bool  # True: the step itself was slow; False: the time before it, since the previous step on its thread
    thread: str
    start_ns: int  # start of the slow step, or of the slow time before it
    end_ns: int
    expected_s: float  # the usual time: the median
    cause: Cause
    #: Of the training thread, the most seconds first; () if the slow time was too short, or if stacks are off.
    stacks: tuple[FoldedStack, ...]
    other_stacks: tuple[FoldedStack, ...]  # of other Python threads, as far as they ran the user's Python code
    gc_s: float  # time of garbage collections meanwhile; inside a step: on any thread; between steps: on its own thread
    host: HostChange | None  # what Linux counted over the turn and shortly around it
    is_traced: bool  # whether there is a trace of this step
    parts: tuple[Part, ...] = ()  # the longest excess first
    doubt: str = ""  # why the cause, or its line, is not known; "" if both are known
    thread_id: int = 0  # the thread's ident; 0: not known
    others: tuple[OtherCause, ...] = ()  # what else took much of it
    others_gc_s: float = 0.0  # time of garbage collections on other threads meanwhile; 0 inside a step: gc_s has them
    place: Frame | None = None  # where the thread was while it had no CPU, if that is the cause; None: not known
    of_other_signature: bool = False  # the step has another signature of its function, so ``step`` is not its number

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) * 1e-9

    @property
    def excess_s(self) -> float:
        """The seconds beyond the usual time."""
        return self.length_s - self.expected_s


#: Instead of the number of a period's slow steps: the period turned out to be a part of another period.
MERGED = -1


class Period(NamedTuple):
    """Slow steps of one run at equal distances. A newer record replaces the one with the same run, first step and distance."""

    run: RunHandle
    inside: bool
    steps: int  # the distance, in steps
    occurrences: int  # number of its slow steps; 0: the period has ended; or MERGED
    median_s: float  # median duration of its slow steps
    cause: Cause  # cause of its last slow step
    last_step: int
    last_call: int  # its last slow call, among the calls of all signatures: distances are counted in these calls
    next_step: int  # the next step that is expected to be slow
    first_step: int = 0  # 0: not known
    tolerance: int = 0  # number of steps by which a distance may differ


class GapProfile(NamedTuple):
    """A profile of the time between steps on one thread, or of whole turns, over 20 s (a run's first profile: 10 s).

    ``inside_s``, ``between_s`` and ``gc_s`` are measured. The samples only show at which lines the time was spent; those in or
    near slow turns are left out. The share of a line is its share of the ``seconds`` of all ``stacks``. Garbage collections have
    no separate stacks: their time counts for the lines that were running.
    """

    run: RunHandle  # the run whose time between steps was sampled
    thread: str
    start_ns: int
    end_ns: int
    steps: int  # number of steps that ended in this time
    inside_s: float
    between_s: float
    gc_s: float | None  # time of garbage collections on this thread between steps, or in whole turns; None: not known
    stacks: tuple[FoldedStack, ...]  # of this thread between its steps, the most seconds first
    samples: int  # number of samples between steps
    whole_turns: bool = False  # the stacks are of whole turns: from the end of a step to the end of the next


class GcPause(NamedTuple):
    """A garbage collection of 1 ms or longer."""

    start_ns: int
    end_ns: int
    generation: int


class HostSample(NamedTuple):
    """What Linux counted in the last second or so, while steps run."""

    at_ns: int  # end of the second
    change: HostChange


SlowRecord = Union[Stall, Period, GapProfile, GcPause, HostSample]


class SlowRecords:
    """Passes records from the watch's thread to the writer's thread. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.lost = 0  # number of records that were dropped
        self.profile_requested = threading.Event()  # set to profile the time between the next steps (the page's button)
        self.run_to_profile: RunHandle | None = None  # the run to profile; None: the run with the most time between its steps
        self.run_profiled: RunHandle | None = None  # the run that is being sampled
        self._records: deque[SlowRecord] = deque()

    def add(self, record: SlowRecord) -> None:
        if len(self._records) >= MAX_RECORDS:
            self.lost += 1
            self.take_one()
        self._records.append(record)

    def take(self) -> list[SlowRecord]:
        """Remove all records and return them, oldest first."""
        taken = []
        for _ in range(len(self._records)):
            record = self.take_one()
            if record is not None:
                taken.append(record)
        return taken

    def take_one(self) -> SlowRecord | None:
        try:
            return self._records.popleft()
        except IndexError:  # another thread took it
            return None
