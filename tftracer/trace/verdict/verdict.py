"""Rank the sentences of the rules (trace/verdict/rules/): what slows this step down?

Sentences are ranked by how much shorter the step would be without their causes. Shares are of one process, the worker that
computes most: work of a parameter server appears as the reason for its workers' waits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Sentence, Verdict
from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.budget import PART_TITLES, PARTS, Activities, activities, parts_of
from tftracer.trace.analyses.ops import Work, work_of
from tftracer.trace.analyses.over_traces import OpsOverTraces
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.arrays.types import Bool
from tftracer.trace.model import OPS_LEFT_OUT, UNKNOWN_TIME, DeviceKind, Trace, TraceContext
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.compared_with_other_steps import EXPLAINED_SHARE, other_steps, short_step
from tftracer.trace.verdict.main_op_type import MainOpType, main_op_type
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.rules import COMPUTING_CODES, RULES, UNEXPLAINED
from tftracer.trace.verdict.rules.between_steps import USUAL_SHARE
from tftracer.trace.verdict.rules.cause_from_watch import MORE_NS, is_explained
from tftracer.trace.verdict.rules.graph_loops import graph_loops
from tftracer.trace.verdict.rules.input_pipeline import CHEAPER_ADVICE, may_wait_in_usual_steps, runs_beside
from tftracer.trace.verdict.scopes import main_scope_sentence
from tftracer.trace.verdict.step import HELD_UP_NS, ONLY_HERE, Step, sentence
from tftracer.trace.verdict.time_around_ops import SLOW_FACTOR, lock_holder_text, longest_median_s, sampled_lines, slow_around_s
from tftracer.trace.verdict.undelayed_op_times import lacked_cpu_s, may_be_held_up

#: Title of the idle part in a trace without scheduling times: such a trace does not show whether ops waited.
IDLE_OR_WAITING = "idle or waiting to be scheduled"
AROUND = "outside the recorded ops: before the first and after the last"
#: Explanations of parts in which no op runs.
NOT_SHOWN = {
    AROUND: "TensorFlow takes in what the call is given and hands out its results then, {}or the thread waits for a CPU or for "
    "Python's lock; the trace does not show which.",
    "idle": "The trace does not show why.",
    IDLE_OR_WAITING: "The trace does not show why.",
}
FASTER_OPS = "To go faster, make the ops on the critical path cheaper (precision, shapes), or use faster or more devices."
SUMMARIES = "Write summaries more rarely, such as in each hundredth step."
CALL_LESS = (
    "See whether other threads of the script run Python at the same time, or other programs keep the CPUs busy (top). Do more in "
    "one call: larger batches, several steps in a loop, fewer and smaller arguments and results."
)
WORK_AHEAD = "If it waits for its dataset, let that work ahead: prefetch, map(num_parallel_calls=tf.data.AUTOTUNE). "
SEE_THE_GAPS = (
    "See on the timeline what ends before the gaps and what begins after them; trace another step to see whether it has them."
)
#: Codes of sentences that say why time passes before the first op and after the last.
EXPLAIN_AROUND = {"around_ops", "slow_step", "retraced", "compiling", "python_lock", "input_bound", "between_steps"}
#: Codes of sentences whose shares are of ``Step.whole_ns``.
HAVE_SHARES = {
    *("balanced", "communication_bound", "copies", "graph_loops", "idle_device", "input_bound", "memory", "one_op"),
    *("python_function", "python_lock", "scheduling_delay", "tiny_ops"),
}
#: Codes of first sentences that may be wrong for usual steps, if usual steps take far longer and may wait for input.
ABOUT_SHORT_STEPS = {"around_ops", "balanced"}
LAST_RANK = 2  # key for sentences that do not say what the step is bound by
MIN_PART = 0.05  # smaller parts of the step are not listed
MIN_TYPE_SHARE = 0.1  # a step's largest op type is not told if it has a smaller share of the op time
MAIN_SHARE = 0.5  # a part or an op with this share takes most of the step
#: The slow-step watch calls a step slow if it takes SLOW_TURN times the median untraced step, and SLOW_TURN_S longer than it.
SLOW_TURN, SLOW_TURN_S = 3.0, 0.020
#: Starting a trace may take SLOW_TURN_S; if its threads wait for a CPU or for Python's lock, START_IF_BUSY_S.
START_IF_BUSY_S = 0.2
#: A part other than compute stands out if it has at least this share of the step; an op type, if it has at least this
#: share of the op time.
LARGE_PART = 1 / 3


def verdict(
    trace: Trace,
    context: TraceContext,
    findings: list[Finding],
    known_activities: Activities | None = None,
    work: Work | None = None,
    load_arithmetic: Callable[[], Arithmetic] | None = None,
    times: OpsOverTraces | None = None,
) -> Verdict:
    """Return at least one sentence: ``balanced`` if nothing stands out. The comparison with the run's other steps comes last."""
    step = step_of(trace, context, known_activities or activities(trace), work or work_of(trace), load_arithmetic, times)
    sentences = [s for s in (rule(step) for rule in RULES) if s]
    longest_delay_ns = max((s["numbers"].get(HELD_UP_NS, 0.0) for s in sentences), default=0.0)
    ranked = sorted(_explained(sentences), key=lambda s: (_comes_later(s, longest_delay_ns), -_saved_ns(step, s)))
    if not ranked or _comes_later(ranked[0]) == LAST_RANK:
        # No sentence says what bounds the step: name the graph's loops, or describe the step.
        ranked = [graph_loops(step) or describe_step(step), *ranked]
    elif _is_start_of_trace(step, ranked) or (
        ranked[0]["share"] < LARGE_PART and (ONLY_HERE in ranked[0]["numbers"] or _is_unexplained_around(step, ranked))
    ):
        # The first sentence is about less than a third of the step. Either it says nothing about usual steps, or most of the
        # step passes around its ops and no sentence says why.
        ranked.insert(0, describe_step(step))
    elif _waits_for_a_cpu(step, ranked) or (ranked[0]["code"] == "one_core" and lacked_cpu_s(step)):
        # The busy machine delayed a step that mostly computes, or the threads may have run one by one because of it.
        ranked.insert(0, describe_step(step, is_delayed=True))
    elif HELD_UP_NS in ranked[0]["numbers"]:
        # The first sentence is about a delay in this step alone. It stays first only if the delay made the step slow.
        described, held_up = describe_step(step, is_delayed=True), ranked[0]["evidence"]["nodes"]
        if not held_up or step.describe(held_up[0]) not in described["text"]:
            ranked.insert(1 if _makes_slow(step, ranked[0]) else 0, described)
    elif ranked[0]["code"] == "other_thread" and all(s["code"] in ("other_thread", "busy_machine") for s in ranked):
        ranked.insert(1, describe_step(step))  # no other sentence is about the step's own work
    may_wait = ranked[0]["code"] in ABOUT_SHORT_STEPS and not step.context.lock_holder
    short = may_wait_in_usual_steps(step) if may_wait else None
    waits_for_input = any(s["code"] == "input_bound" for s in ranked)
    shorter = None if short or waits_for_input else short_step(step)
    if short and not waits_for_input:
        ranked.insert(0, short)
    elif shorter and step.context.lock_holder:  # steps that wait for Python's lock are of another kind than this one
        ranked.insert(0, shorter)
    compared = None if is_explained(step) else other_steps(step, ranked) or (None if shorter in ranked else shorter)
    shown = [*ranked, compared] if compared else ranked
    return {
        "sentences": shown,
        "step_ns": float(trace.duration_ns),
        "whole_ns": float(step.whole_ns),
        "shares_of": _shares_of(step, ranked[0]),
        "findings": findings,
    }


def headline(verdict: Verdict) -> str:
    """Return the text for lists of traces: the share of recorded ops if some are left out, the first sentence, the time that its
    shares refer to, and whether other threads' ops ran beside the step or the machine was busy."""
    sentences = verdict["sentences"]
    left_out = next((f["message"] for f in verdict["findings"] if f["code"] == OPS_LEFT_OUT), "")
    recorded = left_out.rpartition(" (")[2].rstrip(")") + ". " if left_out.endswith(")") else ""
    later = {s["code"] for s in sentences[1:]}
    beside = " Meanwhile other threads ran TensorFlow ops." if "other_thread" in later else ""
    busy = " The machine was busy." if "busy_machine" in later else ""
    return recorded + sentences[0]["text"] + verdict["shares_of"] + beside + busy


def _shares_of(step: Step, first: Sentence) -> str:
    """Return a sentence that names the time that the first sentence's shares refer to; "" if that is the whole step, or
    if the sentence names it already."""
    text, wholes = first["text"], (duration(step.whole_ns), "first op to its last")
    has_shares = first["code"] in HAVE_SHARES and "%" in text and not any(whole in text for whole in wholes)
    return step.whole_of_shares if has_shares else ""


def _explained(sentences: list[Sentence]) -> list[Sentence]:
    """Leave out sentences that say only that nothing runs, if another one says why."""
    reasons = {s["code"] for s in sentences} - {*COMPUTING_CODES, *UNEXPLAINED}
    if reasons & {"tiny_ops", "busy_machine"}:
        return [
            s for s in sentences if s["code"] not in UNEXPLAINED or "waited_ns" in s["numbers"]
        ]  # waited_ns: the step waits for its input
    return [s for s in sentences if s["code"] != "idle_device"] if reasons else sentences


def _comes_later(candidate: Sentence, longest_delay_ns: float = 0.0) -> int:
    """Return the first sort key: 0 for causes in every step, 1 for delays of this step alone (an op that is usually short, a time
    before the step), ``LAST_RANK`` for a busy machine, which slows everything and does not show what bounds the step.

    ``longest_delay_ns``: the longest delay of an op. A cause that the watch found gets 1, too, if it cost less time
    than this.
    """
    if candidate["code"] == "busy_machine":
        return LAST_RANK
    numbers = candidate["numbers"]
    return 1 if HELD_UP_NS in numbers or ONLY_HERE in numbers or numbers.get(MORE_NS, longest_delay_ns) < longest_delay_ns else 0


def _is_start_of_trace(step: Step, ranked: list[Sentence]) -> bool:
    """Tell whether the first sentence is about a pause before this step alone, so short that starting the trace may have caused
    it."""
    first, is_busy = ranked[0], any(s["code"] == "busy_machine" for s in ranked) or bool(step.context.lock_holder)
    numbers = first["numbers"]
    before_s = (numbers.get("before_step_ns", 0.0) - numbers.get("between_steps_ns", 0.0)) / 1e9
    limit_s = START_IF_BUSY_S if is_busy else SLOW_TURN_S
    return first["code"] == "between_steps" and ONLY_HERE in numbers and before_s < limit_s


def _is_unexplained_around(step: Step, ranked: list[Sentence]) -> bool:
    """Tell whether most of the step passes before its first op and after its last, and no sentence says why."""
    return _is_around(step) and not EXPLAIN_AROUND & {s["code"] for s in ranked}


def _is_around(step: Step) -> bool:
    """Tell whether most of the step passes around its ops, in a step of usual length or one that the watch calls slow."""
    share, largest = _parts(step)[0] if step.trace.n else (0.0, "")
    took, usual = step.context.step_s or 0.0, step.context.median_s or 0.0
    is_usual_or_slow = took < SLOW_FACTOR * usual or took >= max(SLOW_TURN * usual, usual + SLOW_TURN_S)
    return largest == AROUND and share > MAIN_SHARE and is_usual_or_slow


def _waits_for_a_cpu(step: Step, ranked: list[Sentence]) -> bool:
    """Tell whether the first sentence is about a thread without a CPU on a busy machine, in a step that mostly computes."""
    waits = ranked[0]["code"] == "scheduling_delay" and any(s["code"] == "busy_machine" for s in ranked)
    return waits and _parts(step)[0][1] == PART_TITLES["compute"]


def _makes_slow(step: Step, held_up: Sentence) -> bool:
    """Tell whether the step is slow, and the delay accounts for most of its excess over untraced steps."""
    took, usual = step.whole_ns, (step.context.median_s or 0.0) * 1e9
    return 0 < SLOW_FACTOR * usual <= took and held_up["numbers"][HELD_UP_NS] >= EXPLAINED_SHARE * (took - usual)


def _saved_ns(step: Step, candidate: Sentence) -> float:
    """Return the time, in this step or before it, that would be saved without the cause. Sentences are sorted by it."""
    numbers = candidate["numbers"]
    if MORE_NS in numbers:
        return numbers[MORE_NS]
    if candidate["code"] == "between_steps":
        usual_ns, before_ns = numbers.get("between_steps_ns", np.inf), numbers.get("before_step_ns", np.inf)
        return min(usual_ns, before_ns) if USUAL_SHARE in numbers or before_ns == np.inf else before_ns
    if candidate["code"] == "beside_steps":  # its share is of the whole training: converted to a time per step
        turn_ns = ((step.context.median_s or step.whole_ns / 1e9) + (step.context.between_steps_s or 0.0)) * 1e9
        return turn_ns * candidate["share"] / (1 - min(candidate["share"], 0.99))
    saved_ns = candidate["share"] * step.whole_ns
    return saved_ns - _known_to_the_watch_ns(step) if candidate["code"] == "python_function" else saved_ns


def _known_to_the_watch_ns(step: Step) -> float:
    """Return the delay by a Python function that TensorFlow calls, if the slow-step watch names its line; else 0."""
    slow = [slow for slow in step.context.slow_times if slow["inside"] and slow["cause"] == "py_function"]
    return max((slow["duration_s"] - (slow["usual_s"] or 0.0) for slow in slow), default=0.0) * 1e9


def step_of(
    trace: Trace,
    context: TraceContext,
    known_activities: Activities,
    work: Work,
    load_arithmetic: Callable[[], Arithmetic] | None = None,
    times: OpsOverTraces | None = None,
) -> Step:
    """Return the Step of the process to judge: the one that computes most; a parameter server only if there is no other."""
    processes = physical_devices.processes(trace)
    workers = [p for p in processes if p.job != "ps"] or processes
    candidates = [(known_activities.of_process(p), p) for p in workers]
    if not candidates:
        no_process = Group("", "this process", [], "", -1, DeviceKind.CPU)
        return Step(trace, context, known_activities, work, no_process, known_activities.whole)
    activity, process = max(candidates, key=lambda pair: pair[0].compute.length)
    parts = parts_of(activity, trace.duration_ns)
    return Step(trace, context, known_activities, work, process, activity, parts, load_arithmetic, times)


def describe_step(step: Step, is_delayed: bool = False) -> Sentence:
    """Describe a step for which no rule names the bound. ``is_delayed``: another sentence names a delay of this step alone."""
    if not step.trace.n:
        return sentence("balanced", "The trace holds no ops.", "The findings say what is missing in it.", 0.0, {}, {"nodes": []})
    (share, main_part), *smaller = _parts(step)
    computes = main_part == PART_TITLES["compute"]
    beside = runs_beside(step) if main_part in NOT_SHOWN else ""
    listed = ", ".join(f"{percent(part)} {title}" for part, title in smaller if part >= MIN_PART)
    op_type = main_op_type(step) if computes else None
    time = OpTime.of(step)
    undelayed = step.longest_op(time.ns_without_outliers)
    is_delayed = is_delayed or bool(computes and lacked_cpu_s(step) and (undelayed != step.longest_op()).any())
    longest_op = undelayed if is_delayed else step.longest_op()
    scope = ""
    if op_type is not None and op_type.leads and smaller[0][0] < LARGE_PART:
        text = f"{op_type.text} The step is {percent(share)} compute{', ' * bool(listed)}{listed}."
    elif computes:
        opening = "Beside what was held up in this step, nothing stands out. " if is_delayed else "Nothing stands out. "
        scope = main_scope_sentence(time.work, step.trace, time.ns_without_outliers if is_delayed else time.work.self_ns)
        is_one_type = not is_delayed and op_type is not None and op_type.share >= LARGE_PART
        is_one_op = step.cover(longest_op).length >= MAIN_SHARE * step.whole_ns
        opening = "" if smaller[0][0] >= LARGE_PART or is_one_type or is_one_op or scope else opening
        text = f"{opening}The step is {percent(share)} compute{', ' * bool(listed)}{listed}."
    else:
        rest = f"; the rest is {listed}" if listed else ""
        subject = "Most" if share > MAIN_SHARE else "The largest part"
        text = f"{subject} of {step.whole_words}, {percent(share)} of {duration(step.whole_ns)}, is {main_part}{rest}."
    return sentence(
        "balanced",
        text + _describe_longest_op(time, longest_op, op_type, text, scope, is_delayed)
        if computes
        else f"{text} {_not_shown(step, main_part, beside)}".rstrip()
        + _describe_ops(step, main_part)
        + _more_than_usual(step, main_part),
        (SUMMARIES if op_type and op_type.is_summary else FASTER_OPS)
        if computes
        else CHEAPER_ADVICE
        if beside
        else _advice(step, main_part),
        share,
        {"compute_ns": step.parts["compute"]},
        {"nodes": [], "tab": "critical-path"},
    )


def _not_shown(step: Step, part: str, beside: str) -> str:
    """Explain a part without ops. In a session's step other hooks run, too; a step of Keras takes its batch from the dataset."""
    if part not in NOT_SHOWN:
        return ""
    if part != AROUND:
        return beside.lstrip() or NOT_SHOWN[part]
    more = "hooks run, " * step.is_session + "the step waits for its batch, " * _takes_its_batch(step)
    holder = lock_holder_text(step.context)
    lock = f"{holder}: this step may have waited for it, too. " if holder else ""
    return lock + NOT_SHOWN[part].format(more) + sampled_lines(step.context) + beside


def _more_than_usual(step: Step, part: str) -> str:
    """Say that the time around the ops is far longer than whole untraced steps; "" if it is not."""
    around_ns, usual_ns = step.whole_ns - step.trace.duration_ns, longest_median_s(step.context) * 1e9
    if part != AROUND or not 0 < 2 * usual_ns <= around_ns:
        return ""
    if slow_around_s(step.context):
        around = duration(slow_around_s(step.context) * 1e9)
        return f" The run's untraced steps take {duration(usual_ns)} in all (median), those around this one {around}."
    return f" The run's untraced steps take {duration(usual_ns)} in all: most of the time outside the ops is not in them."


def _advice(step: Step, part: str) -> str:
    return WORK_AHEAD * _takes_its_batch(step) + CALL_LESS if part == AROUND else SEE_THE_GAPS


def _takes_its_batch(step: Step) -> bool:
    """Tell whether the call itself takes the next element of its dataset, as Keras's training step does."""
    return step.context.title.partition(":")[0] in ("fit", "evaluate", "predict")


def _parts(step: Step) -> list[tuple[float, str]]:
    """Return (share of the step, title) for each part of the process's budget, the largest first."""
    shares = [(step.parts[part] / step.whole_ns, PART_TITLES[part]) for part in PARTS]
    if not (step.trace.scheduled[step.process_nodes] != UNKNOWN_TIME).any():
        shares = [(share, IDLE_OR_WAITING if title == PART_TITLES["idle"] else title) for share, title in shares]
    return sorted([*shares, (1 - step.trace.duration_ns / step.whole_ns, AROUND)], key=lambda each: -each[0])


def _describe_ops(step: Step, main_part: str) -> str:
    """Describe the ops of a step that mostly passes before and after them."""
    work = step.computing
    by_time = step.longest_op(work.duration.astype(np.float64))
    longest = max(by_time, step.python_functions, key=lambda selected: step.cover(selected).length)
    nodes = step.longest(longest)
    if main_part != AROUND or not nodes:
        return ""
    runs = step.cover(longest).length
    spanned = f"From the first op to the last {duration(step.trace.duration_ns)} of it pass"
    return f" {spanned}; the longest, {step.describe(nodes[0])}, runs for {duration(runs)}."


def _describe_longest_op(
    time: OpTime, longest_op: Bool, op_type: MainOpType | None, text: str, scope: str, is_delayed: bool
) -> str:
    """Describe the longest op ([n] its executions), as a share of the step, and the op type, as a share of the op time, unless
    ``text`` names it. ``scope``: a sentence about the main scope. ``is_delayed``: the op is the longest after ops that were held
    up are left out."""
    step, nodes = time.step, time.step.longest(longest_op)
    if not nodes or op_type is None:
        return ""
    runs, name = float(step.cover(longest_op).length), step.describe(nodes[0])
    longest = f" The longest op, {name}, runs for {percent(runs / step.whole_ns)} of the step."
    if is_delayed:
        runs = _without_delay_ns(time, longest_op, nodes[0], runs)
        is_long = runs >= MIN_PART * step.whole_ns
        # With few traces, the time of an op that was held up in two of them is not lowered, though it may be short in the others.
        is_sure = step.has_enough_traces or runs < step.cover(longest_op).length or not may_be_held_up(step, time.work, nodes[0])
        tells = is_long and is_sure
        longest = f" Without what was held up, the longest op, {name}, runs for {duration(runs)}." if tells else ""
    if text.startswith(op_type.text) or op_type.share < MIN_TYPE_SHARE:
        return longest
    return f"{longest} {op_type.text}{'' if scope in op_type.text else scope}"


def _without_delay_ns(time: OpTime, op: Bool, node: int, runs_ns: float) -> float:
    """Return how long an op runs without what held it up, at most as long as usual in the run. ``op``: [n] its executions;
    ``node``: one of them."""
    rows, usual_ns = op[time.work.node], time.step.usual_ns
    delay_ns = float((time.work.self_ns - time.ns_without_outliers)[rows].sum())
    known_ns = float((usual_ns * time.step.executions_ratio)[time.step.trace.name[node]]) if usual_ns is not None else 0.0
    return min(runs_ns - delay_ns, known_ns or runs_ns)
