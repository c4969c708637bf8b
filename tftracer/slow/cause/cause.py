"""The cause of a slow turn: the part of its time with the most excess over the usual, and the line of its seconds. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tftracer.contract.stalls import StallCause
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.cause.stacks import (
    FIT,
    below_loop,
    caller_of_evaluation,
    caller_of_function,
    caller_of_phase,
    functions_called,
    functions_of_graphs,
    is_epoch_turn,
    is_fits_own,
    is_loops_own,
    own_python,
    owner_line,
    shared_line,
    waits_for_input,
)
from tftracer.slow.cause.sums import (
    COMPUTED_MORE,
    excess,
    functions_with_lock,
    held_s,
    holder_text,
    may_have_waited_for_lock,
    parts_of,
)
from tftracer.slow.recorded import EPOCH_TURN, Cause, FoldedStack, Part
from tftracer.slow.watch.slow_turn import NO_LOOPS, SlowTurn, is_no_loop

#: A cause explains at least this part of the excess.
HALF = 0.5
#: The code in which collections run made their garbage, and is the cause, if it ran itself for so much of the excess.
MADE_GARBAGE = 0.2
#: A step that used so little of a CPU waited.
LITTLE, SOME, NEARLY = 0.1, 0.25, 0.9
#: A line with this share of the samples counts as having all of them: a few samples may lie beside the turn.
SURE = 0.9
#: A wait of so long that belongs to ``fit`` and to nothing that it calls: it frees the iterator of the epoch before.
FREES_S = 0.5
#: Linux counts a wait for a CPU when it is over: on a busy machine the waits of so short a time may lack.
SHORT_WAIT_S = 0.2
#: CPU seconds of the process that are too few to tell.
LEAST_CPU_S = 0.02
#: Kinds of parts that clocks tell: no line of code is needed for them.
OF_CLOCK = ("retrace", "lock", "stopped", "checkpoint")
#: Classes whose saves are timed, and what they are.
OWNERS: dict[str, StallCause] = {"CheckpointSaverHook": "hook", "ModelCheckpoint": "callback"}
#: Kinds of parts between steps that a line of code tells more of.
WITH_LINE = {"python", "wait", "disk", "unknown", "gc"}
UNKNOWN = Cause("unknown", "", None, None)
SHORT_S, SHORT = 0.1, "No stack was read in this time: it was over within a tenth of a second."
NO_STACK = "No stack was read in this time: it passed between two readings, or they could not be read."
NO_COUNTERS = "Linux's counters of its thread were not read close enough to tell whether it ran there, waited, or had no CPU."
NO_QUEUES = "No counters of TensorFlow's threads were read close enough to tell whether they computed, waited, or had no CPU."
NOT_TOLD_APART = "It passed inside TensorFlow. Its threads had no CPU for a part of it; whether they waited, too, is not known."
LOOPS_OWN = "For most of it the library that runs the loop ran its own code, and no line of the script."
MAY_HAVE_WAITED = "Other threads had Python's lock most of the time: whether this one waited for it is not known."
TOO_FEW = "Its stacks were read in too small a part of the time to tell the line."


class Explained(NamedTuple):
    parts: tuple[Part, ...]
    cause: Cause
    doubt: str  # why the cause, or its line, is not known; "" if nothing is missing


def explain(turn: SlowTurn, seen: Observed) -> Explained:
    methods = _methods(turn)
    seen = replace(seen, between=_below_loop(seen.between, methods), inside=_below_loop(seen.inside, methods))
    parts = parts_of(turn, seen)
    too_long = max(1e-9, (turn.length_ns - turn.usual_ns) * 1e-9)
    cause = _cause(parts, seen, too_long, turn.is_inside)
    return Explained(parts, cause, _doubt(cause, parts, seen, turn))


def _below_loop(span: Span, methods: tuple[str, ...]) -> Span:
    return replace(span, stacks=tuple(below_loop(stack, methods) for stack in span.stacks))


def _methods(turn: SlowTurn) -> tuple[str, ...]:
    """Keras's methods that may run this loop. Where the script runs it, a turn may train another model: that line counts."""
    method = turn.run.title.partition(":")[0]
    if is_no_loop(turn.run):
        return FIT, method
    is_scripts = method != FIT and any(other.title.partition(":")[0] == FIT for other in turn.others)
    return () if is_scripts else (FIT,)


def _cause(parts: tuple[Part, ...], seen: Observed, too_long: float, is_inside: bool) -> Cause:
    if not parts:
        return UNKNOWN
    of_kind = {kind: [part for part in parts if part.kind == kind] for kind in dict.fromkeys(part.kind for part in parts)}
    sums = {kind: sum(map(excess, alike)) for kind, alike in of_kind.items()}
    kind = max(sums, key=lambda each: sums[each])
    top = of_kind[kind][0]
    with_line, of_clock = set(WITH_LINE), set(OF_CLOCK)
    if _worked_more(parts):
        with_line.add("no_cpu")
        if (seen.usual_wanted_lock or 0.0) >= LITTLE:
            with_line.add("lock")
            of_clock.remove("lock")
    between = [part for part in parts if part.kind in with_line]
    share = min(1.0, sums[kind] / too_long)
    if not (top.kind in of_clock and share >= HALF):
        evaluation = next((part for part in parts if part.kind == "other_run" and part.what.startswith(NO_LOOPS)), None)
        evaluated_s = sum(stack.seconds for stack in seen.between.stacks if caller_of_evaluation(stack) is not None)
        if evaluation and evaluated_s >= HALF * too_long:  # all that passes there: its data are made ready, too
            return _of_clock(evaluation, seen.between, min(1.0, evaluated_s / too_long))
    if top.kind in {*of_clock, "other_run"} and share >= HALF:
        held = shared_line(functions_with_lock(seen.between)).frame if top.kind == "lock" else None
        if held and waits_for_input(seen.between.stacks) >= HALF * seen.between.sampled_s > 0:
            return Cause("py_function", "", held, share)  # it made the element that the loop waited for
        called = (
            functions_of_graphs((*seen.between.stacks, *seen.between.other_stacks), too_long) if top.kind == "other_run" else []
        )
        if called and owner_line(seen.between.stacks, seen.between.sampled_s) is None:
            return Cause("py_function", "", shared_line(called).frame, share)
        span = seen.inside if top.kind == "retrace" and seen.inside.sampled_s > seen.between.sampled_s else seen.between
        return _of_clock(top, _with_line(span, too_long), share)
    if top.kind == "input":
        return _of_input(seen, share, is_inside) if share >= HALF else UNKNOWN
    if top.kind == "no_cpu" and not _worked_more(parts):
        if is_inside:
            return _inside(parts, seen, too_long)
        return Cause("machine", "", None, share) if share >= HALF else UNKNOWN
    if top.kind in ("tensorflow", "py_function"):
        return _inside(parts, seen, too_long)
    if top.kind == "gc" and share >= HALF and sums.get("python", 0.0) < MADE_GARBAGE * too_long:
        return Cause("gc", "", shared_line(_with_line(seen.between, too_long).stacks).frame, share)
    waited_s = sum(excess(part) for part in parts if part.kind == "input")
    return _by_line(between, _span_of_code(seen, too_long, waited_s), too_long)


def _with_line(span: Span, too_long: float) -> Span:
    """Without its stacks where they stand for too little time to tell a line."""
    return span if _tells_line(span, too_long) else replace(span, stacks=())


def _tells_line(span: Span, too_long: float) -> bool:
    return span.sampled_s >= HALF * min(span.length_s, too_long)


def _worked_more(parts: tuple[Part, ...]) -> bool:
    """Whether the thread had far more to do than usual. On a busy machine all that it does waits for a CPU most of the time, and
    beside threads that always run Python for Python's lock: then its work is what differs from other turns, and the wait belongs
    to it."""
    return any(
        part.kind == "python" and part.seconds >= COMPUTED_MORE * (part.usual_s or 0.0) and excess(part) >= LEAST_CPU_S / 2
        for part in parts
    )


def _of_clock(top: Part, span: Span, share: float) -> Cause:
    """Steps of another run may be a hook's (a checkpoint) or a callback's: that names them better."""
    if top.kind in ("other_run", "checkpoint"):
        owned = owner_line(span.stacks, span.sampled_s)
        if owned is not None:
            return Cause(owned.kind, owned.name, owned.frame, share)
    if top.kind == "checkpoint":
        saver = top.what.partition(".")[0]
        if saver in OWNERS:
            return Cause(OWNERS[saver], saver, None, share)
        return Cause("checkpoint", top.what, shared_line(_savers(span.stacks)).frame, share)
    line = None
    if top.kind == "other_run":
        line = shared_line(_callers(span.stacks)).frame
    elif top.kind == "retrace":
        line = shared_line(caller for stack in span.stacks if (caller := caller_of_function(stack)) is not None).frame
    name = top.what if top.kind in ("retrace", "other_run", "lock") else ""
    return Cause(top.kind, name, line, share)  # type: ignore[arg-type]


def _savers(stacks: tuple[FoldedStack, ...]) -> list[FoldedStack]:
    """Down to the code that asked for a checkpoint."""
    return [caller for stack in stacks if (caller := caller_of_phase(stack)) is not None]


def _of_input(seen: Observed, share: float, is_inside: bool) -> Cause:
    """A wait for the next element of a dataset: the Python function that it waited for, or where the loop asks for it."""
    span = seen.inside if is_inside else seen.between
    called = functions_called((*span.stacks, *span.other_stacks), span.length_s)
    if sum(stack.seconds for stack in called) >= HALF * span.length_s:
        return Cause("py_function", "", shared_line(called).frame, share)
    return Cause("input", "", shared_line(stack for stack in span.stacks if waits_for_input([stack])).frame, share)


def _callers(stacks: tuple[FoldedStack, ...]) -> list[FoldedStack]:
    """Of steps of another run: of an evaluation the code that asked for it."""
    return [caller for stack in stacks if (caller := caller_of_evaluation(stack)) is not None] or list(stacks)


def _span_of_python(seen: Observed, too_long: float) -> Span:
    """Where the training thread ran the Python code that took too long: within the step, if it did half of it there."""
    own = own_python(seen.inside.stacks)
    inside = replace(seen.inside, stacks=own)
    return inside if inside.sampled_s >= HALF * too_long else seen.between


def _span_of_code(seen: Observed, too_long: float, waited_s: float) -> Span:
    """``waited_s``: by clock, the thread waited so long for its dataset: that is no time of the code's."""
    span = _span_of_python(seen, too_long)
    if waited_s < LITTLE * too_long:
        return _with_line(span, too_long)
    code = tuple(stack for stack in span.stacks if not waits_for_input([stack]))
    return _with_line(replace(span, stacks=code), too_long - waited_s)


def _by_line(parts: list[Part], span: Span, too_long: float) -> Cause:
    """Python code between the steps: what it did most of the time, at the line that half of the excess is at."""
    sums = sum(excess(part) for part in parts)
    if not parts or sums < HALF * too_long:
        return UNKNOWN
    kind = next((part.kind for part in parts if part.kind not in ("no_cpu", "lock", "gc")), "python")
    if kind == "wait" and not _waited(parts, too_long):
        ran = sum(excess(part) for part in parts if part.kind in ("python", "no_cpu"))  # without a CPU only if it had more to do
        kind = "python" if ran >= LITTLE * too_long else "unknown"
    if kind == "wait" and may_have_waited_for_lock(span):
        kind = "unknown"
    share = min(1.0, sums / too_long)
    owned = owner_line(span.stacks, span.sampled_s)
    if owned is not None:
        return Cause(owned.kind, owned.name, owned.frame, share)
    if waits_for_input(span.stacks) >= HALF * span.sampled_s > 0:
        called = functions_called((*span.stacks, *span.other_stacks), too_long)
        if sum(stack.seconds for stack in called) >= HALF * too_long:
            return Cause("py_function", "", shared_line(called).frame, share)
    frees = kind == "wait" and too_long >= FREES_S and span.late_s < HALF * too_long
    turning = [stack for stack in span.stacks if is_epoch_turn(stack) or (frees and is_fits_own(stack))]
    if sum(stack.seconds for stack in turning) >= HALF * span.sampled_s > 0:
        return Cause("python", EPOCH_TURN, None, share)
    line = shared_line(span.stacks, or_librarys=True, least=_least_share(parts, kind))
    if kind == "unknown":
        return Cause("unknown", "", line.frame, line.share) if line.frame else UNKNOWN
    return Cause(kind, "", line.frame, share)  # type: ignore[arg-type]


def _least_share(parts: list[Part], kind: str) -> float:
    """Return the share of the samples that a line must have, so that it surely spent most of its time as the cause says.

    A turn may run at one line and wait at another. A line with half of the samples may then be either.
    """
    seconds: dict[str, float] = {part.kind: max(0.0, excess(part)) for part in parts if part.kind in ("python", "wait", "disk")}
    of_kind = seconds.get(kind, 0.0) / max(sum(seconds.values()), 1e-9)
    return max(HALF, min(SURE, 2 * (1 - of_kind))) if kind in seconds else HALF


def _waited(parts: list[Part], too_long: float) -> bool:
    """Whether the code waited for most of the time that it would have taken with a CPU.

    Without one most of the time, threads wait for each other, too: what ran wherever it was let run did not wait.
    """
    seconds = {part.kind: excess(part) for part in parts}
    waited, ran, no_cpu = (seconds.get(kind, 0.0) for kind in ("wait", "python", "no_cpu"))
    return waited >= max(HALF * (too_long - no_cpu), SOME * too_long) and not (no_cpu >= ran >= HALF * waited)


def _inside(parts: tuple[Part, ...], seen: Observed, too_long: float) -> Cause:
    """The step itself: a Python function that TensorFlow called, its own work, or no CPU for its threads."""
    span = seen.inside
    called = functions_called((*span.stacks, *span.other_stacks), too_long)
    functions = sum(part.seconds for part in parts if part.kind == "py_function")
    if functions >= HALF * too_long:
        return Cause("py_function", "", shared_line(called).frame, min(1.0, functions / too_long))
    no_cpu = sum(part.seconds for part in parts if part.kind == "no_cpu")
    own = no_cpu + sum(excess(part) for part in parts if part.kind == "tensorflow")
    if own < HALF * too_long:
        return UNKNOWN
    if held_s(span) >= HALF * own:
        held = shared_line(functions_with_lock(span)).frame
        if held:
            return Cause("py_function", "", held, min(1.0, held_s(span) / too_long))
        if span.wanted_lock_s is None:  # it may have come back from TensorFlow, and waited for Python's lock
            return UNKNOWN
    share, work = min(1.0, own / too_long), _work(seen, own)
    if work is None or not work.computed_more:
        if no_cpu >= HALF * too_long:
            return Cause("machine", "", None, no_cpu / too_long)
        if work is not None and work.queued_s is not None and work.queued_s >= HALF * own:
            return Cause("machine", "", None, min(share, work.queued_s / too_long))
    if not _rules_out_functions(seen, too_long) or work is None:
        return UNKNOWN
    if work.computed_more:
        return Cause("tensorflow", "computed", None, share)
    if may_have_waited_for_lock(span):
        return UNKNOWN
    if span.process_queue_s is not None and span.process_queue_s >= NEARLY * own and work.used_s <= LITTLE * own:
        return Cause("machine", "", None, share)
    if span.process_queue_s is None or _lacked_cpu(span.process_queue_s, no_cpu, own):
        return UNKNOWN  # it may have waited for a CPU
    if own < SHORT_WAIT_S and (seen.others_share or 0.0) >= HALF:
        return UNKNOWN
    return Cause("tensorflow", "waited" if work.more_s < LITTLE * own else "", None, share)


def _lacked_cpu(queued_s: float, no_cpu: float, own: float) -> bool:
    """Whether TensorFlow's threads, or the training's, had no CPU for a part of how much longer the step itself took."""
    return queued_s >= SOME * own or no_cpu >= LITTLE * own


class _Work(NamedTuple):
    """What all threads of the process did within a step, beyond the usual."""

    computed_more: bool
    used_s: float  # CPU time in all
    more_s: float  # than usual
    queued_s: float | None  # that they could have run and had no CPU; None: not known


def _work(seen: Observed, own: float) -> _Work | None:
    """``own``: how much longer the step itself took. None where Linux does not tell.

    On a busy machine all work waits for a CPU most of the time. So a step computed more if its CPU time beyond the usual
    would have taken half of ``own`` with the usual wait for each second.
    """
    span = seen.inside
    if span.process_s is None or span.process_least_s is None or seen.usual_process is None:
        return None
    usual = seen.usual_process * max(0.0, span.length_s - own)
    more, surely = span.process_s - usual, span.process_least_s - usual
    computed = span.process_least_s >= COMPUTED_MORE * usual and surely >= max(LEAST_CPU_S, LITTLE * own)
    if span.process_queue_s is None:
        return _Work(computed, span.process_s, more, None)
    queued = span.process_queue_s - (seen.usual_process_queue or 0.0) * span.length_s
    if computed and queued >= HALF * own and seen.usual_process_queue is not None:
        computed = surely * (1 + seen.usual_process_queue / max(seen.usual_process, 1e-9)) >= HALF * own
    return _Work(computed, span.process_s, more, queued)


def _rules_out_functions(seen: Observed, too_long: float) -> bool:
    """Whether a Python function that TensorFlow calls would have been seen, had it taken half of the excess."""
    span = seen.inside
    if not seen.may_call_python:
        return True
    return span.samples > 0 and _tells_line(span, too_long) and span.unseen_s is not None and span.unseen_s <= HALF * too_long


def _doubt(cause: Cause, parts: tuple[Part, ...], seen: Observed, turn: SlowTurn) -> str:
    span = seen.inside if turn.is_inside else seen.between
    if cause.kind == "wait" and span.late_s >= HALF * span.length_s:
        if not span.holders and span.wanted_lock_s is None:
            by = "what this line calls" if cause.frame else "this one"
            return f"Python's lock was held meanwhile, by {by} or by a thread that was not seen."
        if cause.frame:  # known: nobody held it, the training thread itself, or others for a small part of the time
            return ""
    if cause.kind == "unknown" and may_have_waited_for_lock(span):
        return MAY_HAVE_WAITED
    if cause.kind == "unknown" and cause.frame is not None:
        return seen.doubt or NO_COUNTERS
    if (
        cause.kind in ("retrace", "other_run", "tensorflow", "machine", "stopped", "lock", "input", "checkpoint")
        or cause.frame
        or cause.name
    ):
        return ""
    if seen.doubt:
        return seen.doubt
    if not span.stacks:
        return SHORT if span.length_s <= SHORT_S else NO_STACK
    too_long = (turn.length_ns - turn.usual_ns) * 1e-9
    if turn.is_inside and cause.kind == "unknown" and span.wanted_lock_s is None and held_s(span) >= HALF * too_long:
        by = holder_text(span) or "another thread"
        return f"Python's lock was held meanwhile by {by}: the step may have waited for it."
    if turn.is_inside and cause.kind == "unknown" and not _rules_out_functions(seen, too_long):
        return "Its threads were looked at too seldom to tell whether TensorFlow waited for a Python function."
    if not _tells_line(span, too_long):
        return TOO_FEW
    no_cpu = sum(excess(part) for part in parts if part.kind == "no_cpu")
    own = no_cpu + sum(excess(part) for part in parts if part.kind == "tensorflow")
    if turn.is_inside and span.process_queue_s is not None and own >= HALF * too_long:
        return NOT_TOLD_APART if _lacked_cpu(span.process_queue_s, no_cpu, own) else NO_QUEUES
    if turn.is_inside and (span.process_s is None or span.process_queue_s is None):
        return NO_QUEUES
    if parts and cause.kind == "unknown":
        return "No single part of its time makes up half of the excess."
    if sum(stack.seconds for stack in span.stacks if is_loops_own(stack)) >= HALF * span.sampled_s:
        return LOOPS_OWN
    return "No line of code was running for half of the time."
