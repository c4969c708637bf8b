"""Ops that work on strings, and ``tf.print`` within the step."""

from __future__ import annotations

import re

from tftracer.contract.trace import Sentence
from tftracer.trace.units import counted
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step

PRINT_SHARE = 0.20  # minimal part of the op time
PRINTS = frozenset(("Print", "PrintV2"))
#: The op that formats the text for PrintV2. It counts only in a step with prints: elsewhere its text is for other ops.
FORMAT = "StringFormat"
STRING_SHARE = 0.40  # minimal part of the op time (``OpTime.cautious_share``)
DOMINANT = 0.8  # if one op takes this part of the string ops' time, it is left to the rule about one long op
STRING_OPS = re.compile(r"String\w+|(Static)?Regex\w+|AsString|ReduceJoin|Substr|Unicode\w+|(En|De)codeBase64")

ON_NUMBERS = (
    "Do this work once, when the data is written, or in tf.data's map "
    "(num_parallel_calls, prefetch), beside the step, and give the step numbers (ids)."
)


def string_ops(step: Step) -> Sentence | None:
    """Name ops on strings, which run only on CPUs, if no single one takes most of their time."""
    time = OpTime.of(step)
    selected = time.of_kinds(STRING_OPS.fullmatch)
    if time.cautious_share(selected) < STRING_SHARE:
        return None
    times, names = time.work.self_ns[selected], time.work.name[selected]
    by_name = [float(times[names == name].sum()) for name in set(names.tolist())]
    if max(by_name) >= DOMINANT * sum(by_name):
        return None
    return time.sentence("string_ops", selected, "Ops on strings take", ON_NUMBERS, ("executions", float(selected.sum())))


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
