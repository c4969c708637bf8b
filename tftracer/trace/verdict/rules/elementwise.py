"""Ops that compute little for each element that they read and write."""

from __future__ import annotations

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.op_kinds import REDUCTIONS, is_elementwise
from tftracer.trace.analyses.physical_devices import runs_on
from tftracer.trace.arrays.types import Bool
from tftracer.trace.model import DeviceKind
from tftracer.trace.units import byte_size, duration
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.rules.layout_ops import LAYOUT_OPS
from tftracer.trace.verdict.rules.number_types import TRY_FLOAT32, are_in_float64
from tftracer.trace.verdict.rules.sparse_tables import dense_ops
from tftracer.trace.verdict.rules.tiny_ops import TINY_NS
from tftracer.trace.verdict.step import Step, evidence_of, sentence

ELEMENTWISE_SHARE = 0.40  # minimal part of the op time (``OpTime.cautious_share``)
SMALL_BYTES = 1024  # an op that reads and writes less works on scalars or on short vectors, so it was delayed if it takes long
MIN_RATE = 1e7  # bytes per second; slower ops were delayed by something else
DOMINANT = 0.8  # minimum share of the ops' time for one kind to name them all, or for one op to get advice of its own


def _called(time: OpTime, selected: Bool) -> str:
    """Name the ops by the kind that takes most of their time."""
    reduces = selected & time.of_kinds(REDUCTIONS.fullmatch)
    share = float(time.work.self_ns[reduces].sum()) / max(float(time.work.self_ns[selected].sum()), 1.0)
    return "Reductions" if share >= DOMINANT else "Elementwise ops" if share < 1 - DOMINANT else "Elementwise ops and reductions"


def _advice(step: Step, mainly_one: bool, on_cpu: bool) -> str:
    if mainly_one:  # little to fuse it with
        return (
            "Smaller tensors, or a smaller type (16-bit), make it faster; or do it once, before the loop, if its inputs stay the "
            "same."
        )
    how = "jit_compile=True" if step.calls else "tf.config.optimizer.set_jit, or jit_compile=True of a tf.function"
    fuse = (
        f"Let XLA fuse them, so that memory is read and written once for several: {how} in which the gradients are computed, too."
    )
    return fuse + " On a CPU that may take longer instead: measure it." * on_cpu


def elementwise(step: Step) -> Sentence | None:
    """Name long elementwise ops: each reads its whole inputs from memory and writes a whole output."""
    time = OpTime.of(step)
    selected = time.of_kinds(is_elementwise)
    selected &= time.work.duration >= TINY_NS  # the time of shorter ops is mostly the cost of running an op at all
    if time.cautious_share(selected) < ELEMENTWISE_SHARE:
        return None
    if step.arithmetic is not None:
        selected &= ~(step.arithmetic.bytes[time.work.node] < SMALL_BYTES)  # NaN: the size of a tensor is unknown
    selected &= ~(dense_ops(step, time)[0] | time.of_kinds(LAYOUT_OPS.__contains__))  # these have another remedy
    if time.cautious_share(selected) < ELEMENTWISE_SHARE:
        return None
    in_float64 = are_in_float64(step, time, selected)
    on_cpu = bool(runs_on(step.trace, DeviceKind.CPU)[time.work.node[selected]].all())
    nodes, spent = time.longest(selected), float(time.work.self_ns[selected].sum())
    numbers = {"elementwise_ns": spent, "executions": float(selected.sum())}
    moved = float(step.arithmetic.bytes[time.work.node[selected]].sum()) if step.arithmetic else np.nan
    if moved > 0 and moved / spent * 1e9 < MIN_RATE:
        return None  # memory is never that slow: something delayed these ops
    size = f" {byte_size(moved)} pass through memory for them, {byte_size(moved / spent * 1e9)}/s." if moved > 0 else ""
    mainly_one = float(time.work.self_ns[selected].max(initial=0.0)) >= DOMINANT * spent
    return sentence(
        "elementwise",
        f"{_called(time, selected)} take {time.share_words(selected)} ({time.types(selected)}; {duration(spent)}): each reads "
        f"and writes whole tensors and computes little.{size} The longest is {step.describe(nodes[0])}.{time.scope(selected)}"
        f"{' They compute in float64.' * in_float64}",
        f"{TRY_FLOAT32} " * in_float64 + _advice(step, mainly_one, on_cpu),
        time.share_of_step(selected),
        {**numbers, "bytes": moved} if moved > 0 else numbers,
        {**evidence_of(step, nodes, "ops"), "op": time.op(selected)},
    )
