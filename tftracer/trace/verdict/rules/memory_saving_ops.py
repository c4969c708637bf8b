"""Ops that TensorFlow's memory optimizer added to save memory."""

from __future__ import annotations

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.step import Step, evidence_of, sentence

SWAP_SHARE = 0.10  # minimal part of the step that goes into swapping tensors or computing them again


def memory_saving(step: Step) -> Sentence | None:
    """Name ops of TensorFlow's memory optimizer, which swap tensors to the host or compute them again."""
    text = bytes(step.trace.names.data)
    if not any(part in text for part in (b"swap_", b"Recomputed/")):
        return None  # the usual case: the names, up to a million, need not be read one by one
    saves_memory = np.array([_saves_memory(name) for name in step.trace.names] or [False])
    selected = step.process_nodes & saves_memory[step.trace.name]
    spent = step.cover(selected).length
    share = spent / step.whole_ns
    if share < SWAP_SHARE:
        return None
    nodes = step.longest(selected)
    return sentence(
        "memory",
        "Ops that TensorFlow's memory optimizer added, which swap tensors to the host or compute them again, run for "
        f"{duration(spent)} ({percent(share)}); the longest is {step.describe(nodes[0])}.",
        "Smaller batches, 16-bit activations, or a device with more memory; the memory tab shows what is alive at the peak.",
        share,
        {"spent_ns": float(spent), "ops": float(selected.sum())},
        evidence_of(step, nodes, "memory"),
    )


def _saves_memory(name: str) -> bool:
    own_name = name.rsplit("/", 1)[-1]
    return own_name.startswith(("swap_in_", "swap_out_")) or name.startswith("Recomputed/")
