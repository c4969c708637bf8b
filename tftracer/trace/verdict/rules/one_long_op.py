"""One op that runs for a large part of the step."""

from __future__ import annotations

import re

from tftracer.contract.trace import Evidence, Sentence
from tftracer.trace.analyses import physical_devices
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Bool
from tftracer.trace.model import DeviceKind
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.rules.feeds_and_fetches import around_ops, converts_arguments
from tftracer.trace.verdict.rules.number_types import TRY_FLOAT32, is_in_float64
from tftracer.trace.verdict.rules.strings_and_prints import FORMAT, ON_NUMBERS, PRINTS, STRING_OPS, printing
from tftracer.trace.verdict.step import HELD_UP_NS, Step, evidence_of, mask, sentence, spoken
from tftracer.trace.verdict.time_around_ops import HOST_OP_NS, SLOW_FACTOR, longest_median_s
from tftracer.trace.verdict.undelayed_op_times import HELD_UP

ONE_OP_SHARE = 0.40  # minimal part of the step in which one op runs
LONGER = 2.0  # an op that is short in other steps is named if it takes more than this many times its time there
ALONE_SHARE = 0.20  # minimal part of the step in which the op runs alone, if other ops run beside it for long
BESIDE_SHARE = 0.5  # other ops are mentioned if they run beside the op for at least this part of its time

EACH_STEP = (
    "See whether it has to be that large (shapes, precision, recomputation), whether it can be split over devices or run on a "
    "GPU, and whether anything else could run in parallel with it."
)
ON_GPU = (
    "See whether it has to be that large (shapes, precision, recomputation), and whether anything else could run in parallel "
    "with it."
)
SMALLER = "See whether it and the ops that run beside it have to be that large (shapes, precision, recomputation)."
HELD_UP_ADVICE = (
    "Something held it up in this step (other work on the machine), or it had more to do than usual: compare the step with "
    "another traced step of the run."
)

SAVE_ADVICE = "Save less often, or fewer variables (those of the optimizer double or triple them), or to a faster disk."
SAVE_OPS = re.compile(r"Save(V2|Slices)?|Restore(V2|Slice)?|MergeV2Checkpoints|ShardedFilename")
_LOOKUPS = re.compile(r"LookupTableFind\w*")


def one_op(step: Step) -> Sentence | None:
    """Name an op whose executions run for a large part of the step: the longest without delays, else one that was delayed."""
    undelayed = _one_op(step, step.longest_op(OpTime.of(step).ns_without_outliers))
    if undelayed and HELD_UP_NS not in undelayed["numbers"]:
        return undelayed
    held_up = _one_op(step, step.longest_op(), only_held_up=True)
    return max(filter(None, (undelayed, held_up)), key=lambda candidate: candidate["share"], default=None)


def _one_op(step: Step, selected: Bool, only_held_up: bool = False) -> Sentence | None:
    """Name one op by its ``selected`` executions. ``only_held_up``: only if it is short in other traces of the run."""
    cover = step.cover(selected)
    runs, share = cover.length, cover.length / step.whole_ns
    if share < ONE_OP_SHARE:
        return None
    nodes, count = step.longest(selected), int(selected.sum())
    if converts_arguments(step)[nodes[0]] and around_ops(step) is not None:
        return None
    if step.functions_without_ops[nodes[0]] and not only_held_up:
        return _compiled_function(step, nodes, runs)
    noun = "kernels" if physical_devices.on_stream(step.trace)[nodes[0]] else "executions"
    turns = f" in {count:,} {noun}" if count > 1 else ""
    where, on_gpu = _where(step, selected, nodes[0])
    is_named = count == 1 or step.name(nodes[0]) != step.op(nodes[0])  # the ops of an eager loop have no names
    subject = (
        f"One op, {step.describe(nodes[0])} on {where}, runs" if is_named else f"Ops of type {step.op(nodes[0])} on {where} run"
    )
    what = f"{subject} for {duration(runs)}{turns}"
    numbers = {"op_ns": float(runs), "executions": float(count)}
    evidence: Evidence = {**evidence_of(step, nodes, "ops"), "op": step.op(nodes[0])}
    op_usual_ns = float(step.usual_ns[step.trace.name[nodes[0]]]) if step.usual_ns is not None else 0.0
    beside_ns = 0 if on_gpu else (cover & step.cover(mask(step.trace, step.computing.node) & ~selected)).length
    excess_ns = max(runs - op_usual_ns, 0.0)
    is_usually_short = 0 < op_usual_ns < ONE_OP_SHARE * (step.whole_ns - max(excess_ns - beside_ns, 0.0))
    took = float((step.trace.end - step.trace.start)[selected].sum())
    if 0 < (LONGER if is_usually_short else HELD_UP) * op_usual_ns < took:
        elsewhere = "in most traced steps of the run it takes about" if step.has_enough_traces else "in others it takes at most"
        if is_usually_short:
            share = excess_ns / step.whole_ns
            text = f"{what}; {elsewhere} {duration(op_usual_ns)}. At most {duration(excess_ns)} of the step are due to that."
            numbers |= {"usual_ns": op_usual_ns, HELD_UP_NS: excess_ns}
            return sentence("one_op", text, HELD_UP_ADVICE, share, numbers, evidence)
        what += f" ({elsewhere} {duration(op_usual_ns)})"  # it runs for a large part of other steps, too
    elif is_usually_short:
        return None
    if only_held_up or (step.op(nodes[0]) in (FORMAT, *PRINTS) and printing(step)):
        return None
    in_float64 = is_in_float64(step, nodes[0])
    in_parallel = beside_ns >= BESIDE_SHARE * runs
    text = f"{what}: {percent(share)} of {step.whole_words}.{' It computes in float64.' * in_float64}"
    if in_parallel:
        share = (runs - beside_ns) / step.whole_ns
        if share < ALONE_SHARE:
            return None
        text += f" For {duration(beside_ns)} of that other ops run at the same time: without it, the step may be shorter by less."
    on_text = STRING_OPS.fullmatch(step.op(nodes[0])) or _LOOKUPS.fullmatch(step.op(nodes[0]))
    saves = SAVE_OPS.fullmatch(step.op(nodes[0]))
    advice = f"{TRY_FLOAT32} " * in_float64 + (
        SAVE_ADVICE if saves else ON_NUMBERS if on_text else SMALLER if in_parallel else ON_GPU if on_gpu else EACH_STEP
    )
    usual_ns = longest_median_s(step.context) * 1e9
    if usual_ns and not on_gpu and SLOW_FACTOR * usual_ns + HOST_OP_NS * count <= runs:  # calls may return before a GPU has ended
        text += f" The run's untraced steps take {duration(usual_ns)} in all: here something held it up, or it had more to do."
        numbers |= {HELD_UP_NS: max(runs - usual_ns, 0.0)}
    return sentence("one_op", text, advice, share, numbers, evidence)


def _compiled_function(step: Step, nodes: list[int], runs: int) -> Sentence:
    share = runs / step.whole_ns
    return sentence(
        "one_op",
        f"A function that XLA compiled, {step.name(nodes[0])}, runs for {duration(runs)}: {percent(share)} of the step. The "
        "trace shows nothing of what runs in it.",
        "TensorFlow 2.21 records what XLA runs on a CPU, 2.15 does not. Or trace a step without jit_compile to see which ops "
        "take the time.",
        share,
        {"op_ns": float(runs), "executions": float(len(nodes))},
        evidence_of(step, nodes, "ops"),
    )


def _where(step: Step, selected: Bool, longest: int) -> tuple[str, bool]:
    """Return words for the device, or the devices, of the op's executions, and whether all are GPUs."""
    codes = set(distinct(step.trace.device[selected]).tolist())
    groups = [group for group in step.activities.groups if codes & set(group.codes)]
    on_gpu = all(group.kind is DeviceKind.GPU for group in groups)
    if len(groups) > 1:
        return (f"{len(groups)} devices ({groups[0].title} to {groups[-1].title}; counted once where they run at once)", on_gpu)
    return spoken(step.trace.devices[step.trace.device[longest]].title), on_gpu
