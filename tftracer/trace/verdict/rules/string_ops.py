"""Ops that work on strings."""

from __future__ import annotations

import re

from tftracer.contract.trace import Sentence
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step

STRING_SHARE = 0.40  # minimal part of the op time (``OpTime.cautious_share``)
DOMINANT = 0.8  # if one op takes this part of the string ops' time, it is left to the rule about one long op
STRING_OPS = re.compile(r"String\w+|(Static)?Regex\w+|AsString|ReduceJoin|Substr|Unicode\w+|(En|De)codeBase64")

ADVICE = (
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
    return time.sentence("string_ops", selected, "Ops on strings take", ADVICE, ("executions", float(selected.sum())))
