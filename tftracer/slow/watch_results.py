"""What the watch over slow steps hands to the session: plain tuples, in a bounded store that the writer's thread empties.

Times are perf_counter nanoseconds, as in ``recorded_steps.CountedStep``; spans are seconds. None is unknown, never 0.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple, Protocol, Union

from tftracer.contract.stalls import PartKind, StallCause

#: Maximum number of records that wait for the writer, which takes them five times a second; more push out the oldest.
MAX_RECORDS = 4096


#: Why a function was traced although no argument changed.
FIRST_CALL = "it was called for the first time"
#: The name of a cause without a line of the script: what ``fit`` does between two epochs.
EPOCH_TURN = "the turn of an epoch"


class WatchedRun(Protocol):
    """A run, as far as slow steps are concerned. Compared by identity."""

    title: str
    run_id: int  # 0: the session has not numbered it yet
    steps: int  # that have been counted
    fetches: tuple[str, ...]  # the same for all signatures of a function
    changed: str  # of a compiled function: how its signature differs from the one that was traced before
    tracings: int  # of a compiled function: how often it was traced so far, all signatures together
    has_python: bool  # its steps also run the script's Python, as those of an eager loop do


class Frame(NamedTuple):
    """One line of Python. Neither its locals nor its source are kept."""

    file: str
    line: int
    function: str
    #: For a line in a method of another SessionRunHook or of a Keras callback: the class that defines the method
    #: ("CheckpointSaverHook"), which may be a base class of the object's; else "".
    owner: str
    #: Whether the code is not the user's own: it belongs to Python, an installed package, or a module without a file.
    is_library: bool


class FoldedStack(NamedTuple):
    """Equal stacks of one thread, counted."""

    thread: str  # its name: "MainThread"
    frames: tuple[Frame, ...]  # the outermost first; at most 64, the outer ones are left out
    samples: int
    seconds: float  # that the samples represent


class HostChange(NamedTuple):
    """What Linux counted in a span of time (/proc, with its pressure files). None: not known on this system."""

    seconds: float
    on_cpu_s: float | None  # of the training thread: it ran
    run_queue_s: float | None  # of the training thread: it could have run and had no CPU
    process_cpu_s: float | None  # of all threads of this process, on all CPUs
    machine_cpu_s: float | None  # of all processes, on all CPUs; in a container, of the machine
    cpus: int | None  # that the machine has
    steal_s: float | None  # summed over the CPUs: taken by the hypervisor
    cpu_pressure_s: float | None  # some process waited for a CPU
    io_pressure_s: float | None  # some process waited for a disk
    memory_pressure_s: float | None  # some process waited for memory to be freed
    major_faults: int | None  # of the training thread: pages that came from a disk
    read_bytes: int | None  # from disks, by this process
    written_bytes: int | None  # to disks, by this process

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
    disk            its thread waited for a disk in half of the samples
    hook            half of the samples are in a method of another hook; ``name`` is its class
    callback        the same for a Keras callback
    py_function     a Python function that TensorFlow calls, on whatever thread; ``frame`` is its line
    wait            half of the samples without CPU at ``frame``: a sleep, a lock, the network
    python          half of the samples at ``frame``, and the thread ran
    lock            another thread held Python's lock; ``name`` is that thread and its line
    retrace         the function was traced again; ``name`` says why
    other_run       steps of another run passed; ``name`` is its title and their number
    input           the thread waited for the next element of a dataset, by clock
    checkpoint      a checkpoint was saved or restored, by clock; ``name`` is the method: "Saver.save"
    tensorflow      the step itself took longer
    stopped         the process did not run
    unknown         none of these; ``frame`` may still be where most samples were
    ==============  ================================================================================================
    """

    kind: StallCause
    name: str  # the class of a hook or a callback; ``EPOCH_TURN``; else ""
    frame: Frame | None  # the user's innermost line with the most samples; a library's if no line is the user's
    share: float | None  # of the slow step: the part that the evidence covers, from 0 to 1


UNKNOWN = Cause("unknown", "", None, None)


class Part(NamedTuple):
    """A part of a slow turn's time. The parts of a turn add up to its length."""

    kind: PartKind
    seconds: float
    usual_s: float | None  # in a usual turn; None: not known
    what: str  # "evaluate: convnet, 100 steps", "thread serializer"; "" where nothing is known


class Stall(NamedTuple):
    """A step, or the time before it, that took more than 3 times the median and 20 ms more than it."""

    run: WatchedRun
    step: int  # its number in its run, from 1, as the session counts; between steps: the one that came after
    call: int  # its number among the calls of all signatures of its function; for a session's run the same as ``step``
    inside: bool  # the step itself was slow; False: the time before it, since the previous step on its thread
    thread: str
    start_ns: int  # of the slow step, or of the slow time before it
    end_ns: int
    expected_s: float  # the median
    cause: Cause
    stacks: tuple[FoldedStack, ...]  # of the training thread, the most seconds first; () where it was too short or stacks are off
    other_stacks: tuple[FoldedStack, ...]  # of other Python threads, when they ran the user's Python code
    gc_s: float  # of garbage collections meanwhile; inside a step: on any thread; between steps: on its own
    host: HostChange | None  # over the sampled part
    is_traced: bool  # there is a trace of this step
    parts: tuple[Part, ...] = ()  # the longest excess first
    doubt: str = ""  # why no stack, or no cause, is known; "" if nothing
    thread_id: int = 0  # Python's number of the thread; 0: not known


#: In place of a period's number of slow steps: it turned out to be a part of another period.
MERGED = -1


class Period(NamedTuple):
    """Slow steps of one run that come at equal distances. A newer one replaces that of the same run, first step and distance."""

    run: WatchedRun
    inside: bool
    steps: int  # every so many steps
    occurrences: int  # slow steps that were its own; 0: it has ended; or MERGED
    median_s: float  # how long they took
    cause: Cause  # of the last
    last_step: int
    last_call: int  # among the calls of all signatures: distances are counted in these calls
    next_step: int  # that is expected to be slow
    first_step: int = 0  # 0: not known
    tolerance: int = 0  # steps by which a distance may differ


class GapProfile(NamedTuple):
    """The time between steps on one thread, sampled for 20 s, a run's first time for 10 s.

    Take the shares inside and between steps from ``inside_s`` and ``between_s`` (clocks) and the garbage collection from ``gc_s``
    (exact): samples show only lines, and only those of times that were not slow. Shares of lines are those of ``seconds`` among
    all ``stacks``; garbage collection has no stack of its own and falls on the lines that were running.
    """

    run: WatchedRun  # of most of the steps on this thread meanwhile
    thread: str
    start_ns: int
    end_ns: int
    steps: int  # that ended in this time
    inside_s: float
    between_s: float
    gc_s: float | None  # garbage collections between steps on this thread; None: not known for a part of these times
    stacks: tuple[FoldedStack, ...]  # of this thread between its steps, the most seconds first
    samples: int  # between steps


class GcPause(NamedTuple):
    """A garbage collection of 1 ms or longer."""

    start_ns: int
    end_ns: int
    generation: int


class HostSample(NamedTuple):
    """The host over the last second or so, while steps run."""

    at_ns: int  # its end
    change: HostChange


SlowRecord = Union[Stall, Period, GapProfile, GcPause, HostSample]


class SlowRecords:
    """Passes records from the watch's thread to the writer's. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.lost = 0  # records that were pushed out
        self.profile_requested = threading.Event()  # set: sample the time between the next steps (the page's button)
        self.run_to_profile: WatchedRun | None = None  # None: the one with the most time between its steps
        self.run_profiled: WatchedRun | None = None  # the run that is being sampled
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
