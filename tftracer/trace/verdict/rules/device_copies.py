"""Copies between host and device, or on the device, while nothing computes."""

from __future__ import annotations

import re

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.model import NodeKind
from tftracer.trace.units import byte_size, counted, duration, percent
from tftracer.trace.verdict.step import Step, evidence_of, sentence

COPIES_SHARE = 0.15  # minimal part of the step in which copies run and nothing else does
DIRECTION_SHARE = 0.80  # a direction is named if at least this part of the copies' time is in it

DIRECTIONS = {
    "to the device": re.compile(r"H(ost)?(2|to)D", re.IGNORECASE),
    "to the host": re.compile(r"D(evice)?(2|to)H", re.IGNORECASE),
    "on the device": re.compile(r"D(2|to)D", re.IGNORECASE),
}
KEEP_ON_DEVICE = (
    "Keep the data on the device: look for ops without a GPU kernel between ops that have one (log_device_placement), feed less, "
    "copy the next batch while this one is computed (tf.data.experimental.prefetch_to_device)."
)
ADVICE_TO_HOST = (
    "Fetch less, and more rarely: metrics, prints and .numpy() in the loop copy to the host, as do ops without a GPU kernel "
    "(log_device_placement)."
)


def copies(step: Step) -> Sentence | None:
    exposed = (step.activity.copies - step.activity.compute - step.activity.communication) & step.judged_time
    share = exposed.length / step.judged_time.length
    if share < COPIES_SHARE:
        return None
    selected = step.process_nodes & (step.trace.kind == NodeKind.COPY)
    nodes, count = step.longest(selected), int(selected.sum())
    moved = float(step.trace.bytes_moved[selected].sum(dtype=np.float64))  # 0: the source has no sizes
    size = f", {byte_size(moved)}" if moved else ""
    hidden = (step.activity.copies & step.activity.compute & step.judged_time).length
    hidden_text = f" Another {duration(hidden)} of copies run at the same time as kernels." if hidden else ""
    lengths = {
        direction: step.cover(selected & step.trace.op_types_where(pattern.search)[step.trace.op]).length
        for direction, pattern in DIRECTIONS.items()
    }
    direction, longest = max(lengths.items(), key=lambda pair: pair[1])
    where = f", most of their time {direction}" if longest >= DIRECTION_SHARE * sum(lengths.values()) > 0 else ""
    return sentence(
        "copies",
        f"Copies between host and device take {duration(exposed.length)} ({percent(share)}) in which nothing computes "
        f"({counted(count, 'copy', 'copies')}{size}{where}); the longest is {step.describe(nodes[0])}.{hidden_text}",
        ADVICE_TO_HOST if where and direction == "to the host" else KEEP_ON_DEVICE,
        share,
        {"exposed_ns": float(exposed.length), "copies": float(count), **({"bytes": moved} if moved else {})},
        evidence_of(step, nodes, "budget"),
    )
