"""Finds why the inside of a step took longer: a Python function, TensorFlow's work, or a lack of CPUs. No side effects.

``to_explain_s`` is in all functions the time to explain: for a step, how much longer than usual TensorFlow's part took, plus
the time without a CPU.
"""

from __future__ import annotations

from typing import NamedTuple

from tftracer.slow.cause.blamed_code import functions_called, own_python, shared_line
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.cause.parts_of_turn import COMPUTED_MORE, excess, no_cpu_s
from tftracer.slow.cause.waits_for_lock import (
    function_may_have_waited,
    functions_holding_lock,
    held_s,
    holder_text,
    may_have_waited_for_lock,
    other_holders,
)
from tftracer.slow.watch_results import UNKNOWN, Cause, Part

#: A cause explains at least this share of the excess.
HALF = 0.5
#: Shares of a time, or of the CPUs: at most LITTLE is negligible, SOME is notable, MOSTLY is most, NEARLY is almost all.
LITTLE, SOME, MOSTLY, NEARLY = 0.1, 0.25, 0.75, 0.9
#: If the time to explain is shorter, the counters of a busy machine may lack waits for a CPU: Linux counts a wait only when it
#: ends.
SHORT_WAIT_S = 0.2
#: Minimum CPU time of the process, in seconds, from which a conclusion is drawn.
MIN_CPU_S = 0.02
#: A step whose threads mostly waited for a CPU computed more only if its extra CPU time is at least this many seconds, or the
#: share SOME of the time to explain: threads of the input pipeline compute meanwhile, too.
MIN_WORK_S = 0.1


def has_enough_samples(span: Span, excess_s: float) -> bool:
    """Return whether the samples of the thread represent half of the excess, or half of the span if the span is shorter."""
    return span.sampled_s >= HALF * min(span.length_s, excess_s)


def step_cause(parts: tuple[Part, ...], observed: Observed, excess_s: float) -> Cause:
    """Return the cause inside the step: a Python function that TensorFlow called, TensorFlow's work, or a lack of CPUs."""
    span = observed.inside
    called = functions_called(span.all_stacks, excess_s)
    functions_s = sum(part.seconds for part in parts if part.kind == "py_function")
    cpu_wait_s = no_cpu_s(parts)
    to_explain_s = cpu_wait_s + sum(excess(part) for part in parts if part.kind == "tensorflow")
    if functions_s >= HALF * excess_s or functions_s >= max(SOME * excess_s, NEARLY * to_explain_s):
        computed_s = _computed_besides_functions(observed, excess_s)
        if computed_s >= HALF * excess_s:  # a function of the input pipeline waited meanwhile, ahead of the steps
            return Cause("tensorflow", "computed", None, min(1.0, computed_s / excess_s))
        if held_s(span) >= HALF * excess_s and other_holders(span) and not functions_holding_lock(span):
            return Cause("lock", holder_text(span), None, min(1.0, held_s(span) / excess_s))  # the function waited for the lock
        return Cause("py_function", "", shared_line(called).frame or span.function, min(1.0, functions_s / excess_s))
    if to_explain_s < HALF * excess_s:
        return UNKNOWN
    if held_s(span) >= HALF * to_explain_s:
        holder_line = shared_line(functions_holding_lock(span)).frame
        if holder_line:
            return Cause("py_function", "", holder_line, min(1.0, held_s(span) / excess_s))
        if span.lock_wait_s is None:  # the thread may have returned from TensorFlow and waited for Python's lock
            return UNKNOWN
    python_s = max(functions_s, _held_by_others_s(observed))  # during this time the step may have waited for Python
    share, work = min(1.0, to_explain_s / excess_s), _work(span, observed, to_explain_s)
    computed_more = work is not None and work.computed_more
    # Work of TensorFlow's other threads does not explain why the training thread itself had no CPU.
    is_own_work = computed_more and (cpu_wait_s < SOME * excess_s or _thread_computed_more(span, observed, to_explain_s))
    if not is_own_work and cpu_wait_s >= HALF * excess_s:
        return Cause("machine", "", None, min(1.0, cpu_wait_s / excess_s))
    if work is not None and not computed_more and work.queued_s is not None and work.queued_s >= HALF * excess_s:
        return Cause("machine", "", None, min(share, work.queued_s / excess_s))
    is_seen = would_have_seen_python(observed, excess_s)
    if work is None or not (is_seen or (observed.runs_script and span.cpu_s is not None)):
        return UNKNOWN
    unseen_s = 0.0 if is_seen else span.cpu_s or 0.0  # the script's code may have computed on the thread itself
    ran_s = work.more_s - python_s + max(0.0, work.queued_s or 0.0, span.queue_s or 0.0)
    explained_s = max(ran_s, work.with_usual_waits_s - python_s) - unseen_s
    has_worked = work.more_s - unseen_s >= min(MIN_WORK_S, SOME * to_explain_s)
    if is_own_work and has_worked and explained_s >= HALF * to_explain_s:
        share, code = min(share, explained_s / excess_s), own_python(span.stacks)
        if sum(stack.seconds for stack in code) > HALF * span.sampled_s:  # the script's own code computed
            return Cause("python", "", shared_line(code).frame, share)
        return Cause("tensorflow", "computed", None, share)
    if not is_seen or python_s >= SOME * excess_s:
        return UNKNOWN
    if may_have_waited_for_lock(span):
        return UNKNOWN
    queued_s = span.process_queue_s
    if queued_s is not None and queued_s >= NEARLY * to_explain_s and work.used_s <= LITTLE * to_explain_s:
        return Cause("machine", "", None, share)
    if queued_s is None or lacked_cpu(queued_s, cpu_wait_s, to_explain_s):
        return UNKNOWN  # the step may have waited for a CPU
    if to_explain_s < SHORT_WAIT_S and (observed.others_share or 0.0) >= HALF:
        return UNKNOWN
    if may_have_lacked_cpu(observed, to_explain_s):
        return UNKNOWN
    return Cause("tensorflow", "waited" if work.more_s < LITTLE * to_explain_s else "", None, share)


def _computed_besides_functions(observed: Observed, excess_s: float) -> float:
    """Return the CPU seconds beyond the usual in a step without those of Python functions; 0 if they are not surely more."""
    work = _work(observed.inside, observed, excess_s)
    if work is None or not work.computed_more or observed.inside.functions_cpu_s is None:
        return 0.0
    return work.more_s - observed.inside.functions_cpu_s


def _held_by_others_s(observed: Observed) -> float:
    """Return for how long other threads held Python's lock during a step that may call Python functions, if for most of it."""
    return observed.inside.length_s * (observed.inside.other_holder_share or 0.0) if function_may_have_waited(observed) else 0.0


def _thread_computed_more(span: Span, observed: Observed, to_explain_s: float) -> bool:
    """Return whether the training thread itself used far more CPU time than usual."""
    usual_s = (observed.usual_cpu or 0.0) * max(0.0, span.length_s - to_explain_s)
    return (span.cpu_s or 0.0) >= max(MIN_CPU_S, COMPUTED_MORE * usual_s)


def had_no_cpu(observed: Observed, to_explain_s: float) -> bool:
    """Return whether a lack of CPUs explains why the steps of another run in this turn took ``to_explain_s`` seconds longer."""
    span = observed.between
    work = _work(span, observed, to_explain_s)
    queued = max(span.queue_s or 0.0, (work.queued_s or 0.0) if work is not None else 0.0)
    return queued >= HALF * to_explain_s and not (work is not None and work.computed_more)


def lacked_cpu(queued_s: float, cpu_wait_s: float, to_explain_s: float) -> bool:
    """Return whether TensorFlow's threads (``queued_s``) or the training thread (``cpu_wait_s``) had no CPU for much of the time
    to explain."""
    return queued_s >= SOME * to_explain_s or cpu_wait_s >= LITTLE * to_explain_s


def may_have_lacked_cpu(observed: Observed, to_explain_s: float) -> bool:
    """Return whether TensorFlow's threads may have had no CPU for a notable part of ``to_explain_s``.

    That is so if other processes used the CPUs, and Linux counted long waits for a CPU, some of which may have been sleeps.
    """
    doubtful = observed.inside.process_doubtful_queue_s or 0.0
    return (observed.others_share or 0.0) >= MOSTLY and doubtful >= SOME * to_explain_s


class _Work(NamedTuple):
    """CPU time of the process's threads during a step, without other Python threads, and how much more than usual it is."""

    computed_more: bool  # whether the process surely used far more CPU time than usual
    used_s: float  # CPU time
    more_s: float  # CPU time beyond the usual
    queued_s: float | None  # time for which threads were ready to run but had no CPU, beyond the usual; None: not known
    with_usual_waits_s: float  # more_s plus the waits for a CPU that usually come with so much CPU time


def _work(span: Span, observed: Observed, to_explain_s: float) -> _Work | None:
    """Return what the process did during a span; None if Linux's counters are missing.

    On a busy machine, each second of CPU time brings a usual wait for a CPU with it. If threads waited for a CPU for half of
    ``to_explain_s``, the step computed more only if its extra CPU time plus the usual wait for it is half of ``to_explain_s``.
    """
    if span.process_s is None or span.process_min_s is None or observed.usual_process is None:
        return None
    python_s = span.python_s or 0.0  # such threads compute on, even if the step only waits
    used_s, min_s = (max(0.0, each - python_s) for each in (span.process_s, span.process_min_s))
    usual_rate = max(0.0, observed.usual_process - (observed.usual_python or 0.0))
    usual = usual_rate * max(0.0, span.length_s - to_explain_s)
    more, min_more_s = used_s - usual, min_s - usual
    waits = (observed.usual_process_queue or 0.0) / max(observed.usual_process, 1e-9)  # for each second of CPU time
    explained_s = min_more_s * (1 + waits)
    computed = min_s >= COMPUTED_MORE * usual and min_more_s >= MIN_CPU_S and explained_s >= LITTLE * to_explain_s
    if span.process_queue_s is None:
        return _Work(computed, used_s, more, None, more)
    queued = span.process_queue_s - (observed.usual_process_queue or 0.0) * span.length_s
    if queued >= HALF * to_explain_s and observed.usual_process_queue is not None:
        computed = computed and explained_s >= HALF * to_explain_s
    return _Work(computed, used_s, more, queued, more + min(more * waits, span.process_queue_s))


def would_have_seen_python(observed: Observed, excess_s: float) -> bool:
    """Return whether Python code in the step that took half of the excess would be known.

    Calls of Python functions by TensorFlow are measured. Stacks show the script's own code.
    """
    are_functions_known = not observed.may_call_python or observed.inside.functions_s is not None
    return are_functions_known and (not observed.runs_script or has_enough_samples(observed.inside, excess_s))
