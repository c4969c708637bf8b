"""Slow steps, the time between steps by file and line, and what the machine did meanwhile."""

from __future__ import annotations

from typing import Literal, TypedDict

#: What made a step, or the time before it, long (docs/slow_steps.rst). "unknown": no measurement shows the cause.
StallCause = Literal[
    "gc", "machine", "disk", "hook", "callback", "py_function", "wait", "python", "lock", "retrace", "other_run", "input",
    "checkpoint", "tensorflow", "stopped", "unknown",
]  # fmt: skip
#: Which threads had no CPU, if that is the cause. "own": the thread of the step. "any": threads of the process, such as those
#: that execute TensorFlow's ops. "": another cause, or not known.
WithoutCpu = Literal["", "own", "any"]
#: What a part of a slow turn's time is. The parts of a turn add up to its length. tensorflow: inside the step. py_function:
#: inside the step, in Python that TensorFlow called. other_run: steps of other runs. input: the thread waited for the next
#: element of a dataset. checkpoint: a checkpoint was saved or restored. retrace: a call in which TensorFlow traced its function
#: again. python: the training thread ran Python code. no_cpu: the thread was ready to run but had no CPU. lock: it waited for
#: Python's lock. gc: garbage collection. wait: it slept, or waited for a lock, a queue or the network. disk: it waited for a
#: disk. stopped: the process was stopped. unknown: not measured.
PartKind = Literal[
    "tensorflow", "py_function", "other_run", "input", "checkpoint", "retrace", "python", "no_cpu", "lock", "gc", "wait", "disk",
    "stopped", "unknown",
]  # fmt: skip
#: Whose code a line is. "hook": a method of another SessionRunHook or of a Keras callback.
CodeKind = Literal["script", "library", "hook", "thread"]
MarkKind = Literal["gc", "checkpoint", "host"]
#: Where a slow step's time was: inside session.run or the compiled function, or between the previous step and this one.
Place = Literal["inside", "between"]
#: The state of a gap profile. "none": never sampled.
GapState = Literal["none", "sampling", "ready"]


class CodeLine(TypedDict):
    """A line of Python code and its share of the time: the innermost line of the script, including the functions that it
    called."""

    file: str
    line: int
    function: str
    kind: CodeKind
    owner: str  # the class of the hook or callback: "CheckpointSaverHook"; "" for other code
    calls: str  # the function that it called for most of the time: "sort (numpy/_core/fromnumeric.py)"; "" if it called none
    share: float  # from 0 to 1
    doubtful: float  # the part of ``share`` that was sampled late and may belong to another line; 0 except in old files


class StallPart(TypedDict):
    """A part of a slow turn's time. The parts add up to the turn: from the end of one step to the end of the next."""

    kind: PartKind
    duration_s: float
    usual_s: float | None  # its usual length; None: not known
    what: str  # "evaluate: convnet, 100 steps", "thread serializer, in dumps() (encoder.py:200)"; "" if nothing is known


class OtherCause(TypedDict):
    """Another cause of a slow step, which took a part of its time."""

    cause: StallCause
    place: str  # as in Stall
    duration_s: float  # beyond the usual


class Stall(TypedDict):
    """A step, or the time before it, that took far longer than usual."""

    id: int
    run_id: int
    step: int | None  # the slow step, or the step after the slow gap; None: not known
    call: int  # its number among the calls of all signatures of its function; 0: not known
    step_text: str  # "step 97", "step 26 (call 2,211 of all signatures)", "a step"
    where: Place
    started_at: float
    duration_s: float
    expected_s: float | None  # the median of the run when it happened
    cause: StallCause
    without_cpu: WithoutCpu  # "" in files of older versions
    place: str  # the code that took the time: "CheckpointSaverHook (basic_session_run_hooks.py:620)"; "" if not known
    text: str  # the cause in words
    evidence: list[str]  # sentences about the measurements
    uncertainty: str  # why the cause is uncertain; "" if it is not
    lines: list[CodeLine]  # lines of the training's thread, by share
    other_lines: list[CodeLine]  # lines of other threads
    parts: list[StallPart]  # first the part that exceeds its usual length most; [] in files of older versions
    others: list[OtherCause]  # what else took much of it; [] in files of older versions
    samples: int
    trace_id: int | None  # the trace of this step, if there is one
    every: int | None  # length of its period in steps; None: no period was found


class StackFrame(TypedDict):
    file: str  # "" for a thread
    line: int
    function: str  # or the thread's name
    kind: CodeKind
    owner: str
    source: str  # the line's text; "" unless the page is live and the file has not changed since the session began


class StallStacks(TypedDict):
    """The samples of a slow step as a tree; a root is a thread. Node i was the innermost frame for ``seconds[i]``."""

    frames: list[StackFrame]
    parent: list[int]  # index of an earlier node; -1: a root
    frame: list[int]  # index into ``frames``
    seconds: list[float]
    samples: list[int]
    samples_left_out: int  # number of samples for which the tree had no room


class StallDetail(TypedDict):
    """One slow step with its stacks (GET /api/stalls/ID)."""

    stall: Stall
    stacks: StallStacks


class Period(TypedDict):
    """Slow steps of a run that come again after the same number of steps."""

    run_id: int
    every: int  # the distance in steps
    where: Place
    place: str  # as in Stall
    tolerance: int  # number of steps by which a distance may differ from ``every``
    times: int  # number of slow steps
    duration_s: float  # their median duration
    cause: StallCause
    first_step: int  # 0: not known
    last_step: int
    last_call: int  # call of the last slow step, as in Stall; 0: not known
    next_step: int | None  # the next step that is expected to be slow; None: the period has ended
    text: str  # "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)"


class GroupPeriod(Period):
    """A period with texts that name its steps. They name calls instead if other signatures of the function have steps, too."""

    last_text: str  # "step 291", "step 26 (call 2,211 of all signatures)"
    next_text: str  # "step 388", "call 2,261 of all signatures"; "" if the period has ended


class Mark(TypedDict):
    """Something that happened in the process or on its machine, for the step history."""

    kind: MarkKind
    at: float
    duration_s: float | None
    step: int | None  # step of the shown run: the step in which or before which it happened
    text: str


class StepChange(TypedDict):
    """A lasting change of the usual step time."""

    step: int  # the first step after the change
    before_s: float  # median before
    after_s: float  # median after


class Drift(TypedDict):
    """A slow change of the usual step time."""

    first_step: int
    last_step: int
    first_s: float  # median at the beginning
    last_s: float  # median at the end


class SlowKind(TypedDict):
    """All slow steps of a run with the same cause at the same place, including those that were dropped."""

    run_id: int
    cause: StallCause
    place: str  # as in Stall; for a hook or callback, with the lines of all of these slow steps
    where: Place
    times: int  # number of slow steps
    duration_s: float  # sum of their durations
    lost_s: float  # sum of the times beyond the usual
    longest_s: float
    first_step: int | None
    last_step: int | None
    last_call: int | None  # the highest number of a call, as in Stall
    last_at: float  # when the newest slow step began


class SlowGroup(TypedDict):
    """A group of slow steps as the page lists it: of one kind, or of one period whose cause is not known."""

    run_id: int
    cause: StallCause
    place: str
    where: Place
    times: int
    lost_s: float
    longest_s: float
    last_step: int | None
    last_call: int | None  # as in SlowKind
    last_text: str  # "step 291", as Stall.step_text; "" if not known
    periods: list[GroupPeriod]  # its periods, the most frequent first; [] if none is proven
    ended: bool  # whether all its periods have ended; without a period: whether no slow step came for a long time
    stalls: list[int]  # ids of its slow steps that are kept, those that lost the most time first
    trace_id: int | None  # its newest trace, if a trace explains more than the text
    text: str  # "Every 97th step: waiting at load() (train.py:31)"


class RunStalls(TypedDict):
    """What was slow in a run (GET /api/runs/ID/stalls)."""

    run_id: int
    stalls: list[Stall]  # the slow steps that lost the most time and the newest; oldest first
    count: int  # number of all slow steps
    groups: list[SlowGroup]  # by lost time; last those that ended, lost little, or whose cause is unknown or the machine
    periods: list[Period]
    marks: list[Mark]
    changes: list[StepChange]
    drift: Drift | None
    median_s: float | None
    p99_s: float | None
    max_s: float | None


class StallList(TypedDict):
    """The slow steps of all runs (GET /api/stalls)."""

    stalls: list[Stall]  # the slow steps that lost the most time and the newest; oldest first
    count: int
    groups: list[SlowGroup]  # the groups of all runs, run by run
    periods: list[Period]  # the longest first


class SlowSteps(TypedDict):
    """A summary of a run's slow steps, in the run's record."""

    count: int
    longest_s: float | None
    lost_s: float  # sum of the times beyond the usual
    last_at: float | None
    text: str  # text of the first group; "" if there is none
    trace_id: int | None  # the newest trace of that group; None if a trace would explain no more than the text
    gaps_at: float | None  # when the time between its steps was sampled


class GapProfile(TypedDict):
    """Where the time between a run's steps goes, by line (GET /api/runs/ID/gaps).

    For an eager loop whose steps fill most of the run's time, the lines cover whole turns."""

    run_id: int
    state: GapState
    sampled_at: float | None  # when the sampling began
    duration_s: float | None
    steps: int  # number of steps that ended in this time
    samples: int  # number of samples between steps
    late: int  # 0; in files of older versions: number of samples that were taken more than 1 ms late
    share: float | None  # share of the time that was between steps (measured, not sampled)
    gc_share: float | None  # share of garbage collections in the time that the lines cover (measured, not sampled)
    lines: list[CodeLine]  # by share of the time between steps, without slow turns
    #: The same lines, without checkpoints, evaluations, TensorFlow's tracing of functions and waits for input.
    python_lines: list[CodeLine]
    other_lines: list[CodeLine]  # []; in files of older versions: Python functions that TensorFlow called on other threads
    whole_turns: bool  # the lines are those of whole turns, from the end of a step to the end of the next
    text: str  # the result as a sentence, or why there is no profile
