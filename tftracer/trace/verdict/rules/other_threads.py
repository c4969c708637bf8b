"""Ops that other threads run beside the step's."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.decode.profile_host import TF_DATA
from tftracer.trace.model import DeviceKind, NodeKind
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.step import Step, evidence_of, sentence

BESIDE_SHARE = 0.30  # minimal part of the step in which both compute
#: Two computations that share the CPUs evenly take twice as long: without the other one, this part of the time goes away.
SAVED = 0.5


def other_thread(step: Step) -> Sentence | None:
    """Tell that other threads ran TensorFlow's ops (of an evaluation, for example) while the step's ops ran."""
    trace = step.trace
    on_cpu = trace.on_devices_where(lambda device: device.kind is DeviceKind.CPU and device.name != TF_DATA)
    outside = on_cpu & (trace.kind == NodeKind.OUTSIDE) & (trace.start < trace.duration_ns)
    if not outside.any():
        return None
    beside = step.cover(outside) & step.activity.compute
    share = beside.length / step.whole_ns
    if share < BESIDE_SHARE:
        return None
    nodes = step.longest(outside)
    return sentence(
        "other_thread",
        f"While ops of the step ran, other threads ran TensorFlow ops that are not of this step, for {duration(beside.length)} "
        f"({percent(share)} of the step); the longest is {step.describe(nodes[0])}. All of them share the CPUs and TensorFlow's "
        "threads.",
        "Run them between the steps, or in another process on other cores: while both compute, each takes longer.",
        SAVED * share,
        {"beside_ns": float(beside.length)},
        evidence_of(step, nodes, "budget"),
    )
