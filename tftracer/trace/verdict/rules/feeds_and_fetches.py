"""Time before the first op of a step and after the last, in which TensorFlow handles feeds and fetches."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool
from tftracer.trace.decode.labels import parse_input, parse_label
from tftracer.trace.decode.outputs_and_memory import decode_resources
from tftracer.trace.model import MAX_FED_VALUES, FedValue
from tftracer.trace.units import byte_size, counted, duration, percent
from tftracer.trace.verdict.step import Step, sentence
from tftracer.trace.verdict.time_around_ops import LIKE_THE_STEP, SLOW_FACTOR, sampled_lines

AROUND_SHARE = 0.30  # minimal part of the step that passes around its ops
AROUND_NS = 500_000  # minimal time around the ops: less is the usual cost of a call
CALL_NS = 5_000_000  # maximal cost of a call itself: in a longer step it is not the reason
#: Feeds and fetches of this many bytes, strings (or Python values) or tensors are named as the reason.
FEED_BYTES, FEED_STRINGS, MANY_TENSORS = 1_000_000, 1_000, 200
MAX_EXCESS = 0.5  # the time before the first op is named only if the step's excess over usual steps is at most this part of it
MAX_NODES = 100_000  # in a larger trace the fetched tensors are not looked for
#: Types of fed values that hold Python values (``FedValue.dtype``).
PYTHON_DTYPES = ("list", "object")
#: Reasons for copying fed values: those of ``FedCopy``, and a tensor of another type.
CONVERTED = "converted"
COPIES = (CONVERTED, "order", "list")
_RETVAL = "_retval_"


class Amount(NamedTuple):
    """The amount that is fed or fetched."""

    bytes: int
    strings: int
    values: int  # Python values, in lists or arrays of objects
    tensors: int  # number of all tensors

    @property
    def is_much(self) -> bool:
        return self.bytes >= FEED_BYTES or max(self.strings, self.values) >= FEED_STRINGS or self.tensors >= MANY_TENSORS

    def words(self) -> str:
        parts = [byte_size(self.bytes)] if self.bytes else []
        parts += [counted(self.strings, "string")] if self.strings else []
        parts += [counted(self.values, "Python value")] if self.values else []
        return " and ".join(parts)


def around_ops(step: Step) -> Sentence | None:
    """Return a sentence on long times around the ops, and the reason. Another rule covers calls that traced their function."""
    before, after, python = step.around
    fed = _fed(step)
    if step.is_session:
        around_ns = before + after
    else:
        outside_ns = min(_untraced_ns(step), max(step.whole_ns - step.trace.duration_ns, 0))
        around_ns = min(python + _converting_before_ns(step), step.whole_ns) if fed.is_much else min(python, outside_ns)
    share = around_ns / step.whole_ns
    if not step.trace.n or share < AROUND_SHARE or around_ns < AROUND_NS or any(call.was_traced for call in step.calls):
        return None
    fetched = _fetched(step)
    is_known = fed.is_much or fetched.is_much or (step.context.fed is None and step.context.feeds)
    if not is_known and (step.whole_ns > CALL_NS or step.context.median_s is None):
        return None  # no call costs that much; without untraced steps, tracing may be the reason
    numbers = {"around_ns": float(around_ns), "before_ns": float(before), "after_ns": float(after), "fed_bytes": float(fed.bytes)}
    return sentence(
        "around_ops",
        f"{_lengths(step, around_ns, share, bool(is_known))}{_fed_words(step, fed)}{_fetched_words(fetched)}"
        f"{'' if is_known else sampled_lines(step.context)}",
        _advice(step, fed, fetched),
        share,
        {**numbers, "fed_strings": float(fed.strings), "fetched_bytes": float(fetched.bytes)},
        {"nodes": []},
    )


def converts_arguments(step: Step) -> Bool:
    """Return [n] whether an op converts an argument of a function to a tensor. TensorFlow 2.21 runs these before the function."""
    if step.is_session or not step.context.fed:
        return np.zeros(step.trace.n, np.bool_)
    return step.process_nodes & step.trace.op_types_where("_EagerConst".__eq__)[step.trace.op]


def _converting_before_ns(step: Step) -> int:
    """Return the time in which arguments are converted to tensors before the call."""
    in_calls = reduce(lambda a, b: a | b, (Cover.span(call.start, call.end) for call in step.calls), Cover.empty())
    return (step.cover(converts_arguments(step)) - in_calls).length


def _untraced_ns(step: Step) -> int:
    """Return the maximal time around the ops in the run's untraced calls: profiling makes a call longer."""
    median = step.context.median_s
    return step.whole_ns if median is None else max(int(median * 1e9) - step.trace.duration_ns, 0)


def _lengths(step: Step, around_ns: int, share: float, is_known: bool) -> str:
    """Say how long the call and its ops take. ``is_known``: what is fed or fetched explains the time around the ops."""
    whole = duration(step.whole_ns)
    took, usual = (int((seconds or 0.0) * 1e9) for seconds in (step.context.step_s, step.context.median_s))
    is_traced_step = step.whole_ns >= LIKE_THE_STEP * took
    is_longer = 0 < usual < LIKE_THE_STEP * step.whole_ns
    if not step.is_session:
        takes = "takes" if is_traced_step else "takes at least" if is_longer else "usually takes"
        return (
            f"The call of the function {takes} {whole}. For {duration(around_ns)} ({percent(share)}) of it TensorFlow does not "
            "run the function yet, or no longer: it takes in its arguments, hands out its results, or waits for a CPU or for "
            "Python's lock."
        )
    where = f" ({duration(step.around.before_ns)} before the first op)" if _knows_before(step) else ""
    is_slow = 0 < SLOW_FACTOR * usual <= step.whole_ns or (is_longer and not is_traced_step)
    takes = "takes at least" if is_slow else "takes" if is_traced_step else "usually takes"
    usually = f", usually {duration(usual)}," if is_slow else "," if is_traced_step else ";"
    ops = duration(step.trace.duration_ns)
    ops_text = f"and its ops {ops} of that:" if is_slow or is_traced_step else f"in this traced step its ops take {ops}: at least"
    return (
        f"session.run {takes} {whole}{usually} {ops_text} {duration(around_ns)} ({percent(share)}) pass before the first op and "
        f"after the last{where}, where TensorFlow takes in what is fed and hands out what is fetched"
        f"{'.' if is_known else ', and hooks run.'}"
    )


def _knows_before(step: Step) -> bool:
    """Tell whether the time before the first op is known. If the step's excess is a large part of it, it may be the time to start
    the trace; in a slow step ``around`` has subtracted that."""
    context = step.context
    excess_ns = max((context.step_s or 0.0) - (context.median_s or context.step_s or 0.0), 0.0) * 1e9
    before = step.around.before_ns
    is_slow = before > max((context.median_s or 0.0) * 1e9 - step.trace.duration_ns, 0.0)
    return context.began_at is not None and (is_slow or excess_ns <= MAX_EXCESS * before)


def _fed(step: Step) -> Amount:
    values = step.context.fed or []
    elements = [int(np.prod(value["shape"], dtype=np.float64)) for value in values]
    strings = sum(n for n, value in zip(elements, values) if value["dtype"] == "string")
    python_values = sum(n for n, value in zip(elements, values) if value["dtype"] in PYTHON_DTYPES)
    return Amount(sum(value["bytes"] or 0 for value in values), strings, python_values, _count(step, values))


def _count(step: Step, values: list[FedValue]) -> int:
    """Return the number of fed values. ``values`` has only the largest; ``feeds`` of a session's step counts all."""
    return max(len(values), (step.context.feeds or 0) if step.is_session else 0)


def _fetched(step: Step) -> Amount:
    """Return the amount fetched: the outputs of the fetched ops. Only a session's trace shows it."""
    trace = step.trace
    if not step.is_session or not trace.content.size or trace.n > MAX_NODES:
        return Amount(0, 0, 0, 0)
    returned = [parse_label(label) for label in trace.labels if _RETVAL in label]
    producers = {parse_input(label.inputs[0])[:2] for label in returned if label.inputs}
    if not producers:
        return Amount(0, 0, 0, 0)
    outputs, size, strings = decode_resources(trace)[0], 0, 0
    for output, (node, slot) in enumerate(zip(outputs.node.tolist(), outputs.slot.tolist())):
        if (step.name(node), slot) not in producers:
            continue
        if outputs.dtype_of(output) == "string":
            strings += int(np.nan_to_num(outputs.shapes.elements[outputs.shape[output]]))
        else:
            size += int(outputs.requested_bytes[output])
    return Amount(size, strings, 0, len(producers))


def _fed_words(step: Step, fed: Amount) -> str:
    values = step.context.fed
    if values is None:
        return (
            ""
            if step.context.feeds is None or not step.is_session
            else f" The run feeds {counted(step.context.feeds, 'tensor')}."
        )
    if not values:
        return " Nothing is fed." if step.is_session else ""
    largest = values[0]
    shape = f"[{', '.join(str(size) for size in largest['shape'])}]"
    noun = "value" if step.is_session or fed.values else "array"
    is_cut = not step.is_session and len(values) >= MAX_FED_VALUES  # then the number of a function's arguments is not known
    number = f"{'at least ' * is_cut}{counted(fed.tensors, noun)}"
    number += "" if step.is_session else " that TensorFlow makes tensors of"
    amount = f"{'at least ' * (is_cut or fed.tensors > len(values))}{fed.words()}" if fed.words() else "little"
    what = f" It is fed {amount} in {number}; the largest is {largest['name']}: {largest['dtype']} {shape}."
    return what + "".join(_copied_words(copied, reason) for reason in COPIES if (copied := _copied(values, reason)))


def _copied(values: list[FedValue], reason: str) -> list[FedValue]:
    """Return the values copied for this reason, the largest first; [] if they have few bytes."""
    copied = [value for value in values if (_is_converted(value) if reason == CONVERTED else value["copied"] == reason)]
    return copied if sum(value["bytes"] or 0 for value in copied) >= FEED_BYTES else []


def _is_converted(value: FedValue) -> bool:
    """Tell whether an array is converted to its tensor's type."""
    return value["bytes"] is not None and value["tensor_dtype"] not in ("", value["dtype"])


def _copied_words(copied: list[FedValue], reason: str) -> str:
    largest, more = copied[0], len(copied) - 1
    words = {
        CONVERTED: f"is converted from {largest['dtype']} to {largest['tensor_dtype']}",
        "order": "is brought into C order",
        "list": f"is put together from a list of {counted(largest['shape'][0], 'array')}" if largest["shape"] else "",
    }[reason]
    too = f", and {counted(more, 'other')} like it" if more else ""
    return f" First, {largest['name']} {words}{too}."


def _fetched_words(fetched: Amount) -> str:
    if not fetched.is_much:
        return ""
    number = f"{counted(fetched.tensors, 'tensor')}" if fetched.tensors >= MANY_TENSORS else ""
    return f" It fetches {f'{number}: ' * bool(number and fetched.words()) or number}{fetched.words()}."


def _advice(step: Step, fed: Amount, fetched: Amount) -> str:
    advice, fed_values = [], step.context.fed or []
    if fed.strings >= FEED_STRINGS or fetched.strings >= FEED_STRINGS:
        advice.append("Strings are converted one by one: use numbers (ids, or bytes in a uint8 array) in their place.")
    if fed.values >= FEED_STRINGS:
        dtypes = {value["tensor_dtype"] for value in fed_values if value["dtype"] in PYTHON_DTYPES} - {""}
        of_type = f" ({', '.join(sorted(dtypes))})" if dtypes else ""
        advice.append(f"Feed NumPy arrays of the tensor's type{of_type}: Python's values are converted one by one.")
    for value in _copied(fed_values, CONVERTED)[:1]:
        advice.append(f"Make the array {value['tensor_dtype']} from the start, or convert it once before the loop (astype).")
    if _copied(fed_values, "order"):
        advice.append("Bring the array into C order once, before the loop (np.ascontiguousarray).")
    if _copied(fed_values, "list"):
        advice.append("Put the arrays of a list into one once, before the loop (np.stack).")
    if fed.is_much:
        advice.append(
            "Read the data in the graph with tf.data, in whole batches: it prepares the next batch while this one is computed. "
            "What stays the same, keep in a variable."
            if step.is_session
            else "Pass tensors that tf.data makes (prefetch prepares the next batch while this one is computed), not NumPy "
            "arrays; what stays the same, keep in a variable or convert it once (tf.constant)."
        )
    if max(fed.tensors, fetched.tensors) >= MANY_TENSORS:
        advice.append("Each tensor costs some microseconds by itself: stack them into few.")
    if fetched.is_much:
        advice.append("Fetch less and more rarely: what is fetched is copied, or converted, for Python.")
    if not advice and step.is_session:
        advice.append(
            "session.make_callable saves a part of each call's cost; so does doing more in one call (several steps in a "
            "tf.while_loop, larger batches), and fewer hooks and fetches."
        )
    if not advice:
        advice.append("Do more in one call: several steps in a loop inside the function, larger batches, fewer arguments.")
    return " ".join(advice)
