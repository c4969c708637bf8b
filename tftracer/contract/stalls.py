"""Slow steps caught as they happened, the time between steps by file and line, and what the machine did meanwhile."""

from __future__ import annotations

from typing import Literal, TypedDict

#: What made a step, or the time before it, long (docs/slow_steps.rst). "unknown": nothing that was measured tells.
StallCause = Literal[
    "gc",
    "machine",
    "disk",
    "hook",
    "callback",
    "py_function",
    "wait",
    "python",
    "lock",
    "retrace",
    "other_run",
    "input",
    "checkpoint",
    "tensorflow",
    "stopped",
    "unknown",
]
#: Whose threads had no CPU, where that is the cause. "own": the thread that ran the step. "any": threads of the process, as those
#: that run TensorFlow's ops. "": another cause, or not known.
WithoutCpu = Literal["", "own", "any"]
#: What a part of a slow turn's time is. The parts of a turn add up to its length.
#: tensorflow: inside the step. py_function: inside the step, in Python that TensorFlow called. other_run: steps of other runs.
#: input: it waited for the next element of a dataset. checkpoint: a checkpoint was saved or restored.
#: retrace: a call whose function was traced anew. python: the training thread ran Python. no_cpu: it could have run and had no
#: CPU. lock: it waited for Python's lock. gc: garbage collection. wait: it slept, or waited for a lock, a queue, the network.
#: disk: it waited for a disk. stopped: the process was stopped. unknown: not measured.
PartKind = Literal[
    "tensorflow",
    "py_function",
    "other_run",
    "input",
    "checkpoint",
    "retrace",
    "python",
    "no_cpu",
    "lock",
    "gc",
    "wait",
    "disk",
    "stopped",
    "unknown",
]
#: Whose code a line is. "hook": a method of another SessionRunHook or of a Keras callback.
CodeKind = Literal["script", "library", "hook", "thread"]
MarkKind = Literal["gc", "checkpoint", "host"]
#: Of a slow step: in session.run or the compiled function, or between it and the step before.
Place = Literal["inside", "between"]
#: Of a gap profile. "none": never sampled.
GapState = Literal["none", "sampling", "ready"]


class CodeLine(TypedDict):
    """A line of Python code and its share of the time: the script's nearest line, with what it called folded into it."""

    file: str
    line: int
    function: str
    kind: CodeKind
    owner: str  # the class of the hook or callback: "CheckpointSaverHook"; "" for other code
    calls: str  # what ran below it most of the time: "sort (numpy/_core/fromnumeric.py)"; "" if nothing was seen below it
    share: float  # 0..1
    doubtful: float  # 0; in files of older versions 0..share: sampled late, so that another line may be meant


class StallPart(TypedDict):
    """A part of a slow turn's time. The parts add up to the turn: from the end of one step to the end of the next."""

    kind: PartKind
    duration_s: float
    usual_s: float | None  # in a usual turn; None: not known
    what: str  # "evaluate: convnet, 100 steps", "thread serializer, in dumps() (encoder.py:200)"; "" where nothing is known


class Stall(TypedDict):
    """A step, or the time before it, that took far longer than usual."""

    id: int
    run_id: int
    step: int | None  # the slow step, or the one that the gap came before; None: not known
    call: int  # its number among the calls of all signatures of its function; 0: not known
    step_text: str  # "step 97", "step 26 (call 2,211 of all signatures)", "a step"
    where: Place
    started_at: float
    duration_s: float
    expected_s: float | None  # the median of the run when it happened
    cause: StallCause
    without_cpu: WithoutCpu  # "" in files of older versions
    place: str  # whose line it was: "CheckpointSaverHook (basic_session_run_hooks.py:620)"; "" where no line is known
    text: str  # the cause in words
    evidence: list[str]  # what was measured, a sentence each
    uncertainty: str  # what the measurement cannot tell; "" if nothing
    lines: list[CodeLine]  # of the training's thread, by share
    other_lines: list[CodeLine]  # of other threads
    parts: list[StallPart]  # the longest excess first; [] in files of older versions
    samples: int
    trace_id: int | None  # the trace of that very step, if there is one
    every: int | None  # it comes again after so many steps; None: no period was found


class StackFrame(TypedDict):
    file: str  # "" for a thread
    line: int
    function: str  # or the thread's name
    kind: CodeKind
    owner: str
    source: str  # the line's text; "" unless the process that ran it answers, and the file has not changed since it started


class StallStacks(TypedDict):
    """The samples of a slow step as a tree; a thread is a root. Node i was the innermost one for ``seconds[i]``."""

    frames: list[StackFrame]
    parent: list[int]  # index of an earlier node; -1: a root
    frame: list[int]  # into frames
    seconds: list[float]
    samples: list[int]
    samples_left_out: int  # their stacks found no room


class StallDetail(TypedDict):
    """One slow step with its stacks (GET /api/stalls/ID)."""

    stall: Stall
    stacks: StallStacks


class Period(TypedDict):
    """Slow steps of a run that come again after the same number of steps."""

    run_id: int
    every: int  # steps
    where: Place
    place: str  # as of a slow step
    tolerance: int  # steps by which a distance may differ
    times: int  # how many were caught
    duration_s: float  # median
    cause: StallCause
    first_step: int  # 0: not known
    last_step: int
    last_call: int  # as of a slow step; 0: not known
    next_step: int | None  # expected to be slow; None: it ended
    text: str  # "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)"


class GroupPeriod(Period):
    """A period as the page lists it: its steps in words, by their calls where other signatures have steps, too."""

    last_text: str  # "step 291", "step 26 (call 2,211 of all signatures)"
    next_text: str  # "step 388", "call 2,261 of all signatures"; "" if it ended


class Mark(TypedDict):
    """Something that happened in the process or on its machine, for the step history."""

    kind: MarkKind
    at: float
    duration_s: float | None
    step: int | None  # of the run that is shown: the step it lies in or before
    text: str


class StepChange(TypedDict):
    """The usual step time changed for good."""

    step: int  # the first of the new regime
    before_s: float  # medians
    after_s: float


class Drift(TypedDict):
    """The usual step time changes little by little."""

    first_step: int
    last_step: int
    first_s: float  # medians at both ends
    last_s: float


class SlowKind(TypedDict):
    """All slow steps of a run with the same cause at the same place, those included that are no longer kept."""

    run_id: int
    cause: StallCause
    place: str  # as of a slow step; of the newest
    where: Place
    times: int
    duration_s: float  # of all of them
    lost_s: float  # of that: what was more than usual then
    longest_s: float
    first_step: int | None
    last_step: int | None
    last_call: int | None  # the highest, as of a slow step
    last_at: float  # when the newest began


class SlowGroup(TypedDict):
    """A kind of slow steps, or those of one period whose cause is not known, as the page lists it."""

    run_id: int
    cause: StallCause
    place: str
    where: Place
    times: int
    lost_s: float
    longest_s: float
    last_step: int | None
    last_call: int | None  # as of a kind
    last_text: str  # "step 291", as of a slow step; "" if not known
    periods: list[GroupPeriod]  # that they come in, the most frequent first; [] if none is proven
    ended: bool  # all of its periods ended; without one: it has not come for long
    stalls: list[int]  # ids of those that are kept, those that cost most first
    trace_id: int | None  # of the newest one that was traced, where no line tells what the steps did inside
    text: str  # "Every 97th step: waiting at load() (train.py:31)"


class RunStalls(TypedDict):
    """What was slow in a run (GET /api/runs/ID/stalls)."""

    run_id: int
    stalls: list[Stall]  # oldest first; those that cost most and the newest
    count: int  # of all that were caught
    groups: list[SlowGroup]  # what costs most first; then what has ended, what is not known, and what the machine did
    periods: list[Period]
    marks: list[Mark]
    changes: list[StepChange]
    drift: Drift | None
    median_s: float | None
    p99_s: float | None
    max_s: float | None


class StallList(TypedDict):
    """The slow steps of all runs (GET /api/stalls)."""

    stalls: list[Stall]  # those that cost most and the newest, oldest first
    count: int
    groups: list[SlowGroup]  # of all runs, as of one
    periods: list[Period]  # the longest first


class SlowSteps(TypedDict):
    """What a run's record says of its slow steps."""

    count: int
    longest_s: float | None
    lost_s: float  # what they took more than usual, in all
    last_at: float | None
    text: str  # of the group that costs most; "" without any
    trace_id: int | None  # the newest trace of one of that group; null where a trace would tell no more than the text
    gaps_at: float | None  # when the time between its steps was sampled


class GapProfile(TypedDict):
    """Where the time between a run's steps goes, by line (GET /api/runs/ID/gaps)."""

    run_id: int
    state: GapState
    sampled_at: float | None  # when it began
    duration_s: float | None
    steps: int  # that ended in this time
    samples: int  # between steps
    late: int  # 0; in files of older versions: of these, taken more than 1 ms late
    share: float | None  # of the time that passed between steps: by clock, not sampled
    gc_share: float | None  # of the time between steps: garbage collection, by clock, not sampled
    lines: list[CodeLine]  # by share of the time between steps, but for what made steps slow
    #: The same by share of what is left without checkpoints, evaluations, tracing of functions and waits for input.
    python_lines: list[CodeLine]
    other_lines: list[CodeLine]  # []; in files of older versions: Python functions that TensorFlow called on other threads
    text: str  # what it says in a sentence, or why there is none
