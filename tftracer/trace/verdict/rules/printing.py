"""Cost of ``tf.print`` within the step."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.units import counted
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step

PRINT_SHARE = 0.20  # minimal part of the op time
PRINTS = frozenset(("Print", "PrintV2"))
#: The op that formats the text for PrintV2. It counts only in a step with prints: elsewhere its text is for other ops.
FORMAT = "StringFormat"


def printing(step: Step) -> Sentence | None:
    time = OpTime.of(step)
    prints = time.of_kinds(PRINTS.__contains__)
    if not prints.any():
        return None
    selected = prints | time.of_kinds(FORMAT.__eq__)
    if time.least_share(selected) < PRINT_SHARE:
        return None
    return time.sentence(
        "printing",
        selected,
        f"{counted(int(prints.sum()), 'tf.print')} in the step: making and writing the text takes",
        "Print in every hundredth step (tf.cond on the step's number), and fewer values (summarize=3, or a mean). Or return the "
        "values and print them in Python. In a function, prints run one after the other, and wait for what comes before them.",
        ("prints", float(prints.sum())),
    )
