"""Ops that the script runs one by one, without a compiled function. Only profiles show them."""

from __future__ import annotations

import re

from tftracer.contract.trace import Sentence
from tftracer.trace.units import counted, duration, percent
from tftracer.trace.verdict.step import Step, sentence
from tftracer.trace.verdict.time_around_ops import sampled_lines

EAGER_OPS = 20  # minimal number of eager ops in the step
EAGER_SHARE = 0.30  # minimal part of the step in which no eager op runs
LONG_NS = 1_000_000  # Python needs less time from one op to the next; a longer gap has another reason

COMPILE = (
    "Put the step into a tf.function: TensorFlow then runs its ops without Python between them. In Keras, leave out "
    "run_eagerly=True. Where it has to stay eager: fewer and larger ops."
)
ELSEWHERE = (
    "Profile the script (cProfile, or time.perf_counter around the parts of the loop) to see what runs in the long gaps, and "
    "put the step into a tf.function: its ops then run without Python between them."
)
_KERNEL = re.compile(r"EagerKernelExecute$")


def eager_ops(step: Step) -> Sentence | None:
    """Name the time without eager ops. Short gaps are the cost of running ops from Python; long ones have another reason."""
    if step.host is None or step.calls:
        return None
    rows = step.host.rows(_KERNEL)
    outside = step.whole_ns - step.called.length
    if len(rows) and outside > step.called.length:
        return _mostly_outside(step, outside)
    gaps = step.called - step.host.cover(rows) - step.activity.busy
    share = (gaps.length + outside) / step.whole_ns
    if len(rows) < EAGER_OPS or share < EAGER_SHARE:
        return None
    lengths = gaps.end - gaps.start
    is_long = lengths >= LONG_NS
    long_ns = float(lengths[is_long].sum()) + outside
    longest = int(lengths.argmax())
    return sentence(
        "eager_ops",
        f"The script runs {counted(len(rows), 'op')} one by one, without a compiled function: for "
        f"{duration(gaps.length + outside)} ({percent(share)}) of the step none runs"
        f"{_long_gaps(int(is_long.sum()) + bool(outside), long_ns)}{sampled_lines(step.context)}",
        ELSEWHERE if long_ns > (gaps.length + outside) / 2 else COMPILE,
        share,
        {"ops": float(len(rows)), "gaps_ns": float(gaps.length + outside), "long_gaps_ns": long_ns},
        {"nodes": [], "start_ns": float(gaps.start[longest]), "end_ns": float(gaps.end[longest])},
    )


def _mostly_outside(step: Step, outside: int) -> Sentence:
    return sentence(
        "eager_ops",
        f"Of the {duration(step.whole_ns)} of this step, {duration(outside)} ({percent(outside / step.whole_ns)}) pass before "
        "its first op and after its last: the script does something else then (its input, for instance), or waits."
        f"{sampled_lines(step.context)}",
        "See the Python stacks of the run's slow steps, or profile the script (cProfile), to find what it does in that time.",
        outside / step.whole_ns,
        {"outside_ns": float(outside)},
        {"nodes": []},
    )


def _long_gaps(count: int, length_ns: float) -> str:
    if not count:
        return ", and Python prepares the next one."
    where = f"{'lies' if count == 1 else 'lie'} in {counted(count, 'gap')}"
    return (
        f". {duration(length_ns)} of that {where} of {duration(LONG_NS)} or longer, in which the script does something else (its "
        "input, for instance), or waits for a CPU or for Python's lock; in the rest Python prepares the next op."
    )
