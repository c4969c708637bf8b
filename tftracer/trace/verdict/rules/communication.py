"""Time spent waiting for tensors of other devices, for collectives, and for ops of other processes."""

from __future__ import annotations

from functools import reduce

import numpy as np

from tftracer.contract.trace import Link, Sentence
from tftracer.trace.analyses import physical_devices
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.model import UNKNOWN_TIME, NodeKind
from tftracer.trace.units import byte_size, counted, duration, percent
from tftracer.trace.verdict.step import MAX_EVIDENCE, Step, evidence_of, mask, sentence

COMMUNICATION_SHARE = 0.20  # minimal part of the step in which communication runs and nothing computes
OTHER_PROCESS_SHARE = 0.20  # minimal part of the step in which only another process works

ALL_RANKS = "Trace the same step on all ranks to see whether one of them comes late. If none does: "
ALL_TRACED = "See in the tab of ranks whether one of them comes late. If none does: "
LESS_TO_SEND = (
    "fewer and larger messages (tensor fusion), compression to 16 bit, a faster network, or more compute in each step (larger "
    "batches)."
)
SENDER_COMPUTES = "Make the sender's part lighter: move that op to the worker, or spread variables over more parameter servers."


def communication_bound(step: Step) -> Sentence | None:
    exposed = step.activity.communication - step.activity.compute
    share = exposed.length / step.whole_ns
    if share < COMMUNICATION_SHARE:
        return None
    hidden = (step.activity.communication & step.activity.compute).length
    numbers = {"exposed_ns": float(exposed.length), "hidden_ns": float(hidden)}
    receivers = {step.trace.devices[c].name for c in step.process.codes}
    links = [link for link in step.links if link["destination"] in receivers]
    collectives = mask(step.trace, step.transfers.without_link) & step.process_nodes
    if links and links[0]["waited_ns"] >= (step.cover(collectives) - step.activity.compute).length:
        return _link(step, links[0], share, numbers)
    more = f" Another {duration(hidden)} of communication run while ops compute." if hidden else ""
    nodes = step.longest(collectives if collectives.any() else step.process_nodes & (step.trace.kind == NodeKind.COMMUNICATION))
    return sentence(
        "communication_bound",
        f"Communication runs for {duration(exposed.length)} ({percent(share)}) in which nothing computes; the longest is "
        f"{step.describe(nodes[0])}.{more}",
        (ALL_TRACED if len(physical_devices.processes(step.trace)) > 1 else ALL_RANKS) + LESS_TO_SEND,
        share,
        numbers,
        evidence_of(step, nodes, "communication"),
    )


def _link(step: Step, link: Link, share: float, numbers: dict[str, float]) -> Sentence:
    trace, transfers = step.trace, step.transfers
    number = transfers.links.index((link["source"], link["destination"]))
    selected = mask(trace, transfers.node[transfers.link == number])
    waited = step.cover(selected) - step.activity.compute
    by_sender = trace.on_devices_where(lambda device: device.name == link["source"])
    sender_ops = by_sender & trace.counted & (trace.kind != NodeKind.COMMUNICATION)
    computing = (waited & step.cover(sender_ops)).length
    sent = {k: float(link[k]) for k in ("bytes", "mean_bandwidth") if link["bytes"]}  # 0: the source has no sizes
    numbers |= {"waited_ns": float(link["waited_ns"]), "messages": float(link["messages"]), **sent}
    numbers["source_computing_ns"] = float(computing)
    size = f", {byte_size(link['bytes'])} at {byte_size(link['mean_bandwidth'])}/s" if link["bytes"] else ""
    text = (
        f"For {duration(link['waited_ns'])} ({percent(link['waited_ns'] / step.whole_ns)}) tensors from "
        f"{step.title(link['source'])} are in transit and nothing computes ({counted(link['messages'], 'message')}{size})."
    )
    if computing >= 0.5 * waited.length:
        slowest = step.longest(sender_ops)
        text += f" For most of that time the sender runs ops itself, the longest {step.describe(slowest[0])}."
        advice = SENDER_COMPUTES
    else:
        advice = (
            "Spread the variables over more parameter servers, send less (16 bit, sparse updates, fewer and larger variables), "
            "or use a faster network. Check whether the sender's machine is busy with something else."
        )
    return sentence(
        "communication_bound", text, advice, share, numbers, evidence_of(step, step.longest(selected), "communication")
    )


def other_process(step: Step) -> Sentence | None:
    """Name a process that runs a part of the step while nothing runs or is scheduled in this one.

    A RecvTensor begins only when the tensor is sent, so no other rule sees the time in which the sender still computes it.
    """
    other_processes = [p for p in physical_devices.processes(step.trace) if p.job and p != step.process]
    if not other_processes or not step.process.job:
        return None
    own = step.activity.busy | step.activity.waiting | step.activity.launches
    busy = [(step.activities.of_process(p).busy - own, p) for p in other_processes]
    waited = reduce(lambda a, b: a | b, (cover for cover, _ in busy))
    share = waited.length / step.whole_ns
    if share < OTHER_PROCESS_SHARE:
        return None
    overlap, other = max(busy, key=lambda pair: pair[0].length)
    members = np.flatnonzero(physical_devices.members(step.trace, other))
    overlap_ns = overlap.within(step.trace.start[members], step.trace.end[members])
    nodes = members[largest_first(overlap_ns, MAX_EVIDENCE)].tolist()
    computing = (overlap & step.activities.of_process(other).compute).length
    if computing >= 0.5 * overlap.length:
        advice = SENDER_COMPUTES
    else:
        advice = (
            "Send less (16 bit, sparse updates), in fewer and larger messages, or spread variables over more parameter servers."
        )
    ready = ", and no op is ready to run there" if (step.trace.scheduled[step.process_nodes] != UNKNOWN_TIME).any() else ""
    return sentence(
        "communication_bound",
        f"For {duration(waited.length)} ({percent(share)}) nothing runs in {step.process.title}{ready}, while {other.title} "
        f"works on the step; what takes longest there is {step.describe(nodes[0])}.",
        advice,
        share,
        {"waited_ns": float(waited.length), "source_computing_ns": float(computing)},
        evidence_of(step, nodes, "critical-path"),
    )
