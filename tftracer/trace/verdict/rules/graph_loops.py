"""Loops of the graph (``tf.while_loop``) that take much of a step in which nothing else stands out."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.step import Step, evidence_of, sentence

LOOPS_SHARE = 0.5  # minimal part of the step in which such a loop runs
WHOLE_STEP = 0.95  # a loop that runs for a larger part repeats whole training steps
LOOPS = ("While", "StatelessWhile")
FEWER_TURNS = (
    "The turns of a loop run one after another, each with its own cost of running ops: compute all turns at once with larger "
    "ops, if they do not depend on each other, or let XLA compile the loop (jit_compile=True)."
)


def graph_loops(step: Step) -> Sentence | None:
    """Name loops that run for a large part of the step. A profile shows a loop as an op that runs as long as its turns."""
    selected = step.process_nodes & step.trace.op_types_where(LOOPS.__contains__)[step.trace.op]
    loops_ns = step.cover(selected).length
    share = loops_ns / step.whole_ns
    if not LOOPS_SHARE <= share < WHOLE_STEP:
        return None
    nodes = step.longest(selected)
    count = int(selected.sum())
    subject = "A loop of the graph runs" if count == 1 else f"{count:,} loops of the graph run"
    longest = f"{'it' if count == 1 else 'the longest'} is {step.describe(nodes[0])}"
    return sentence(
        "graph_loops",
        f"{subject} for {duration(loops_ns)} ({percent(share)}) of the step, turn after turn; {longest}.",
        FEWER_TURNS,
        share,
        {"loops_ns": float(loops_ns), "loops": float(count)},
        evidence_of(step, nodes, "ops"),
    )
