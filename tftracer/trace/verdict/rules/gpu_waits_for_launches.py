"""A GPU without work: before its ops are launched, and between small kernels."""

from __future__ import annotations

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.arrays.types import Bool
from tftracer.trace.model import DeviceKind, NodeKind
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.gpu_gaps import Gaps
from tftracer.trace.verdict.step import MAX_EVIDENCE, Step, evidence_of, mask, sentence

LAUNCH_SHARE = 0.20  # minimal part of the step in which a GPU waits for launches
ONE_LAUNCH_SHARE = 0.50  # minimal part of the waiting time, for a single launch to be named
MEANWHILE_SHARE = 0.50  # minimal part of the waiting time, for an activity of the host to be named
GAPS_SHARE = 0.20  # minimal part of the step in which a GPU is idle between launched kernels
SMALL_COUNT = 200  # minimal number of small kernels
SMALL_NS = 10_000  # launching a shorter kernel takes longer than running it

HOST_AHEAD = (
    "Give each kernel more work, so that the host stays ahead: larger batches; XLA (jit_compile=True, "
    "tf.config.optimizer.set_jit) or fused ops; several steps in one call (steps_per_execution)."
)
LOOK_AT_HOST = (
    "See on the timeline what the host's threads do in that gap, and move it out of the step, or let it run while the GPU works."
)
NO_HOST = "This profile has no events of the host: record one with them to see what it does in that gap."


def launch_bound(step: Step) -> Sentence | None:
    if step.gaps:  # the times of launches are known
        return _starved(step)
    devices = zip(step.activities.groups, step.activities.each)
    gaps = [((a.launches - a.busy).length, g) for g, a in devices if len(a.launches)]
    gap, group = max(gaps, key=lambda pair: pair[0], default=(0, None))
    share = gap / step.whole_ns
    if group is None or share < LAUNCH_SHARE:
        return None
    launches = _launches(step, group)
    nodes = step.longest(launches)
    longest = int((step.trace.end - step.trace.start)[nodes[:1]].sum())
    if longest >= ONE_LAUNCH_SHARE * gap:
        return _one_launch(step, group, nodes, gap, longest)
    kernels = physical_devices.members(step.trace, group) & physical_devices.kernels(step.trace)
    count = int(kernels.sum())
    mean = float((step.trace.end - step.trace.start)[kernels].mean()) if count else 0.0
    ran = f"{count:,} kernels ran, {duration(mean)} each on average" if count else "no kernel ran"
    return sentence(
        "launch_bound",
        f"{group.title} has nothing to run for {duration(gap)} ({percent(share)}) while the host launches its "
        f"{int(launches.sum()):,} ops; {ran}.",
        HOST_AHEAD,
        share,
        {"launch_gap_ns": float(gap), "kernels": float(count), **({"mean_kernel_ns": mean} if count else {})},
        {**evidence_of(step, nodes, "budget"), "lane": group.key},
    )


def _starved(step: Step) -> Sentence | None:
    """Tell that the GPU is idle because its next work is not launched yet, where the times of launches are known."""
    gaps = max(step.gaps, key=lambda each: int(each.starved.sum()))
    gap, whole = int(gaps.starved.sum()), step.whole_of(gaps)
    share = gap / whole
    if share < LAUNCH_SHARE:
        return None
    order = np.argsort(-gaps.starved, kind="stable")
    nodes = [int(node) for node in gaps.next_node[order[:MAX_EVIDENCE]]]
    longest = int(gaps.starved[order[0]])
    count = len(gaps.kernels)
    median = float(np.median((step.trace.end - step.trace.start)[gaps.kernels])) if count else 0.0
    where = (
        f"most of it in one gap of {duration(longest)}," if longest >= ONE_LAUNCH_SHARE * gap else f"up to {duration(longest)}"
    )
    return sentence(
        "launch_bound",
        f"{gaps.group.title} has nothing to run for {duration(gap)} ({percent(share)}{step.of_whole(gaps)}) because the host "
        f"has not launched its next kernel yet: {where} before {step.describe(nodes[0])}. {_meanwhile(step, gaps)}",
        _advice(step, longest >= ONE_LAUNCH_SHARE * gap),
        share,
        {"launch_gap_ns": float(gap), "longest_gap_ns": float(longest), "kernels": float(count), "median_kernel_ns": median},
        {**evidence_of(step, nodes, "budget"), "lane": gaps.group.key},
    )


def _advice(step: Step, is_one_gap: bool) -> str:
    if not is_one_gap:
        return HOST_AHEAD
    return LOOK_AT_HOST if physical_devices.runs_on(step.trace, DeviceKind.CPU).any() else NO_HOST


def _meanwhile(step: Step, gaps: Gaps) -> str:
    """Name the activity of the host that fills most of these gaps, if there is one."""
    starving, process_activity = gaps.starving, step.activity
    waits = step.cover(step.waits_for_input)
    launches = step.cover(_launches(step, gaps.group))
    activities = {
        "The host waits for its input for": waits,
        "The host runs Python functions for": step.cover(step.python_functions) - waits,
        "The host computes on the CPU for": step.cover(_on_cpu(step)) - waits,
        "The host launches ops for": launches - waits,
        "The host communicates for": process_activity.communication - waits,
    }
    text, longest = max(((text, (cover & starving).length) for text, cover in activities.items()), key=lambda pair: pair[1])
    if longest >= MEANWHILE_SHARE * starving.length:
        return f"{text} {duration(longest)} of that time."
    return "The trace does not show what the host does in that time."


def _on_cpu(step: Step) -> Bool:
    """Return [n] whether each execution computes on the host."""
    on_cpu = physical_devices.runs_on(step.trace, DeviceKind.CPU)
    selected: Bool = step.process_nodes & on_cpu & (step.trace.kind == NodeKind.COMPUTE)
    return selected


def small_kernels(step: Step) -> Sentence | None:
    """Name kernels so short that the time between them matters as much as they do."""
    if not step.gaps:
        return None
    gaps = max(step.gaps, key=lambda each: int(each.queued.sum()))
    between, whole, kernels = int(gaps.queued.sum()), step.whole_of(gaps), gaps.kernels
    share = between / whole
    if share < GAPS_SHARE or len(kernels) < SMALL_COUNT:
        return None
    median = float(np.median((step.trace.end - step.trace.start)[kernels]))
    if median >= SMALL_NS:
        return None
    median_gap = float(np.median(gaps.queued[gaps.queued > 0]))
    return sentence(
        "small_kernels",
        f"{gaps.group.title} runs {len(kernels):,} kernels of {duration(median)} (median), and does nothing for "
        f"{duration(between)} ({percent(share)}{step.of_whole(gaps)}) between them, though the next was launched: "
        f"{duration(median_gap)} each time (median).",
        "Fewer and larger kernels: XLA (jit_compile=True, tf.config.optimizer.set_jit) fuses elementwise ops; larger batches; "
        "fused layers and optimizers. The profiler itself makes such gaps somewhat longer.",
        share,
        {"between_ns": float(between), "kernels": float(len(kernels)), "median_kernel_ns": median, "median_gap_ns": median_gap},
        {**evidence_of(step, step.longest(mask(step.trace, kernels)), "budget"), "lane": gaps.group.key},
    )


def _launches(step: Step, group: Group) -> Bool:
    """Return [n] whether each execution is of the host for a GPU. The budget counts all of them as launches."""
    on_gpu = physical_devices.members(step.trace, group) & physical_devices.runs_on(step.trace, DeviceKind.GPU)
    selected: Bool = on_gpu & (step.trace.kind != NodeKind.COMMUNICATION)
    return selected


def _one_launch(step: Step, group: Group, nodes: list[int], gap: int, longest: int) -> Sentence:
    first = nodes[0]
    launched_kernel = bool((launch_of(step.trace) == first).any())
    if launched_kernel:
        launched_nothing = ""
        advice = (
            "Trace a later step. If the launch is short there, this one was probably the op's first execution, which loads its "
            "library (cuBLAS, cuDNN) and may try out algorithms. If it stays long, the host may be waiting for GPU memory or "
            "for a lock."
        )
    else:
        launched_nothing = " and launches nothing on the GPU"
        advice = (
            "Look at what the op does on the host: it may wait for input or for another process. If it is slow work, see whether "
            "it can run before the step or in parallel with it."
        )
    return sentence(
        "launch_bound",
        f"{group.title} has nothing to run for {duration(gap)} ({percent(gap / step.whole_ns)}), most of it during one op on the "
        f"host: {step.describe(first)} takes {duration(longest)} there{launched_nothing}.",
        advice,
        gap / step.whole_ns,
        {"launch_gap_ns": float(gap), "launch_ns": float(longest)},
        {**evidence_of(step, nodes, "budget"), "lane": group.key},
    )
