"""Describes lines of code, slow steps and periods in words, for the page, the summary and the verdict. No side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from tftracer.contract import stalls as contract
from tftracer.contract.stalls import CodeLine, StallCause, WithoutCpu
from tftracer.slow.answer.code_lines import code_lines
from tftracer.slow.cause.parts_of_turn import excess
from tftracer.slow.record.sums_by_kind import HOOK_CAUSES
from tftracer.slow.watch_results import EPOCH_TURN, FIRST_CALL, OF_TRACER, Cause, OtherCause, Period, Stall
from tftracer.trace.units import about_duration, duration, percent

#: The length of a part is given if it is at least this share of the excess.
HALF = 0.5
#: Slow steps are called regular if at least this share of them is in periods.
MOSTLY = 0.8
NOWHERE = ", at an unknown line"


def ordinal(number: int) -> str:
    """Return "1st", "2nd", "3rd", "11th", "97th"."""
    digit = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(digit, 'th') }"


def step_text(step: int | None, call: int | None) -> str:
    """Return "step 97", or "step 26 (call 2,211 of all signatures)" if its function has steps with other signatures, too.

    ``step``: None if the call has another signature than the run with which its slow steps are listed.
    """
    if step is None:
        return f"call {call:,} of all signatures" if call else "a step"
    return f"step {step:,}" + (f" (call {call:,} of all signatures)" if call and call != step else "")


def trace_text(trace_id: int, step: int | None, headline: str) -> str:
    """Return a sentence with the headline of a trace and the step that it shows."""
    return f"Trace {trace_id}, of {step_text(step, None)}, says: {headline}"


def next_text(period: contract.Period) -> str:
    """Return the expected next slow step of a period; "" if it has ended.

    The distances of a period count calls of all signatures.
    """
    if period["next_step"] is None:
        return ""
    if period["last_call"] in (0, period["last_step"]):
        return step_text(period["next_step"], None)
    return f"call {period['last_call'] + period['every']:,} of all signatures"


def code_text(file: str, line: int, function: str, owner: str) -> str:
    """Return "CheckpointSaverHook (basic_session_run_hooks.py:620)", "load() (train.py:31)"."""
    name = PurePosixPath(file.replace("\\", "/")).name
    place = f"{name}:{line}" if name and line else name
    who = owner or (f"{function}()" if function.isidentifier() else function)
    return f"{who} ({place})" if who and place else who or place


def line_text(line: CodeLine) -> str:
    return code_text(line["file"], line["line"], line["function"], line["owner"])


def lines_text(lines: list[CodeLine], limit: int = 3) -> str:
    """Return the first lines with their shares: "load() (train.py:31) 62%, CheckpointSaverHook (...) 20%"."""
    return ", ".join(f"{line_text(line)} {percent(line['share'])}" for line in lines[:limit])


def place_of(cause: Cause) -> str:
    """Return the code that made a step slow: a line, another thread or another run; "" if not known."""
    frame = cause.frame
    if cause.name == EPOCH_TURN:
        return cause.name
    if cause.kind in ("lock", "other_run") and cause.name:
        return cause.name.rpartition(": ")[0] if cause.kind == "other_run" else cause.name
    owner = cause.name if cause.kind in HOOK_CAUSES else ""
    return code_text(frame.file, frame.line, frame.function, owner or frame.owner) if frame else owner


# -------------------------------------------------------------------------------------------------------------- slow steps


def cause_text(stall: Stall) -> str:
    """Return the causes of a slow step as a sentence without a full stop.

    Seconds in it are the length of the part that is the cause.
    """
    others = " and ".join(map(_other, stall.others))
    if others and stall.cause.kind == "unknown":
        return f"Not known for most of it; {others}"
    return _cause(stall) + (f"; besides, {others}" if others else "")


def _other(other: OtherCause) -> str:
    """Return what else took much of a slow step: "about 90 ms at save() (train.py:12)"."""
    kind, place, took = other.cause.kind, place_of(other.cause), duration(other.seconds * 1e9)
    at, about = f" at {place}" if place else "", about_duration(other.seconds)
    words = {
        "lock": f"Python's lock was held for {about}{' by ' if place else ''}{place}",
        "checkpoint": f"a checkpoint for {took}: {other.cause.name}{', called' if at else ''}{at}",
        "retrace": f"{took} in which a function was traced: {other.cause.name}",
        "other_run": f"{took} in steps of another run: {other.cause.name}",
        "input": f"{took} of waiting for the next element of a dataset{at}",
        "hook": f"{about} in the hook {place}",
        "callback": f"{about} in the Keras callback {place}",
        "tensorflow": f"{about} of work of TensorFlow or its input pipeline",
        "machine": f"{about} in which threads had no CPU",
        "gc": f"{about} of Python's garbage collection{at}",
        "py_function": f"{about} in a Python function that TensorFlow calls{': ' if place else ''}{place}",
        "stopped": f"{about} in which the process was stopped",
    }
    return words.get(kind, f"{about}{at or NOWHERE}")


def _cause(stall: Stall) -> str:
    cause, place = stall.cause, place_of(stall.cause)
    at = f" at {place}" if place else ""
    if place == EPOCH_TURN:
        return f"{EPOCH_TURN[0].upper()}{EPOCH_TURN[1:]} of fit"
    if cause.kind == "retrace":
        return _retraced(stall, at)
    if cause.kind == "other_run":
        return f"Steps of another run: {cause.name}" + (f", called at {_line_of(cause)}" if cause.frame else "")
    if cause.kind == "checkpoint":
        return f"A checkpoint: {cause.name}{', called' if at else ''}{at}"
    if cause.kind == "input":
        return f"Waited for the next element of a dataset{at}"
    if cause.kind in ("wait", "python"):
        what = _what(stall, cause.kind)
        did, then = ("Waited", ", ") if cause.kind == "wait" else ("Python code", "; ")
        return f"{did}{at or NOWHERE}{_called_function(stall)}{then + what if what else ''}"
    if cause.kind == "tensorflow":
        return _tensorflow(stall)
    if cause.kind == "unknown":
        if place:
            return f"Not known; most samples were{at}"
        return "Not known" if stall.doubt else "Not known: no measurement shows the cause"
    if without_cpu(stall) == "any":
        return _no_cpu_for_tensorflow(stall)
    seconds = _seconds(stall)
    took, collected = f" for {about_duration(seconds)}" if seconds else "", duration((seconds or stall.gc_s) * 1e9)
    return {
        "gc": ", ".join(filter(None, (f"Python's garbage collection, {collected}", _what(stall, "gc"), at.strip()))),
        "machine": f"Its thread had no CPU{took}{_without_cpu_at(stall)}: other processes or threads had them",
        "disk": f"Waited for a disk{at}",
        "hook": f"The hook {place}{_hook_detail(stall)}",
        "callback": f"The Keras callback {place}{_hook_detail(stall)}",
        "py_function": f"A Python function that TensorFlow calls{': ' if place else ''}{place}",
        "lock": f"Python's lock was held{f' for {about_duration(seconds)}' if seconds else ''}{' by ' if place else ''}{place}",
        "stopped": f"The process was stopped{f' for at least {duration(seconds * 1e9)}' if seconds else ''}",
    }[cause.kind]


def _hook_detail(stall: Stall) -> str:
    """Return what a hook or callback mostly did, if it waited, saved or ran another run's steps: ", which waited"; else ""."""
    largest = max(stall.parts, key=excess, default=None)
    if largest is None or excess(largest) < HALF * stall.excess_s:
        return ""
    if largest.kind == "other_run":
        return f", in steps of another run: {largest.what}"
    if largest.kind == "checkpoint" and largest.what.partition(".")[0] != stall.cause.name:
        return f", in {largest.what}"
    return f", which waited {largest.what}" if largest.kind == "wait" and largest.what else ""


def _without_cpu_at(stall: Stall) -> str:
    frame = stall.place
    return f" at {code_text(frame.file, frame.line, frame.function, frame.owner)}" if frame else ""


def _seconds(stall: Stall) -> float | None:
    """Return the seconds of the part that is the cause; None if not measured, or less than half of the excess."""
    kind = "no_cpu" if stall.cause.kind == "machine" else stall.cause.kind
    of_tracer = stall.cause.name == OF_TRACER  # its threads' lock is a part of its own
    parts = [part for part in stall.parts if part.kind == kind and (kind != "lock" or (part.what == OF_TRACER) == of_tracer)]
    seconds = sum(part.seconds for part in parts)
    return seconds if seconds >= HALF * stall.excess_s else None


def without_cpu(stall: Stall) -> WithoutCpu:
    """Return which threads had no CPU: "own" for the step's thread (measured), "any" for others; "" if that is not the cause."""
    if stall.cause.kind != "machine":
        return ""
    is_any = not _seconds(stall) and any(part.kind in ("tensorflow", "other_run") for part in stall.parts)
    return "any" if is_any else "own"


def _no_cpu_for_tensorflow(stall: Stall) -> str:
    what = _what(stall, "tensorflow") or _what(stall, "other_run")
    return "Threads of the process had no CPU: other processes or threads had them" + (f"; {what}" if what else "")


def _what(stall: Stall, kind: str) -> str:
    """Return what else was measured about the parts of one kind, besides their length; "" if nothing."""
    return next((part.what for part in stall.parts if part.kind == kind and part.what), "")


def _retraced(stall: Stall, at: str) -> str:
    """Describe the retracing of the step's own function, or of a function that was called before the step.

    The text begins with the function's name. The step's own function is named without arguments, because those of the
    new signature differ.
    """
    title, colon, change = stall.cause.name.rpartition(": ")  # a title may have a colon
    who, what = (title, change) if colon and not stall.inside else (stall.run.title.partition(" (")[0], stall.cause.name)
    return f"{who} was traced{'' if what == FIRST_CALL else ' anew'}{': ' if what else ''}{what}" + (
        f", called{at}" if at else ""
    )


def _tensorflow(stall: Stall) -> str:
    place = place_of(stall.cause)
    at = f" at {place}" if place else ""
    who = "TensorFlow" if place else "TensorFlow or its input pipeline"
    words = {"computed": f"{who} computed longer{at}", "waited": f"TensorFlow waited inside the step{at}"}
    what = _what(stall, "tensorflow")
    traced = "; it was traced, which takes a part of this time" if stall.is_traced else ""
    return words.get(stall.cause.name, f"{who} took longer inside the step{at}") + (f": {what}" if what else "") + traced


def _line_of(cause: Cause) -> str:
    frame = cause.frame
    return code_text(frame.file, frame.line, frame.function, frame.owner) if frame else ""


def _called_function(stall: Stall) -> str:
    """Return the function that the cause's line called for most of the time: ", in sort (numpy/_core/fromnumeric.py)"."""
    frame = stall.cause.frame
    lines = code_lines(stall.stacks) if frame else []
    called = next((line["calls"] for line in lines if frame and (line["file"], line["line"]) == (frame.file, frame.line)), "")
    return f", in {called}" if called else ""


class Rhythm(NamedTuple):
    """The periods of one length in a group."""

    in_each: int  # number of slow steps in each span of the period's length
    share: float  # share of the expected steps that were slow, from 0 to 1

    def text(self, length: int) -> str:
        """Return "every 97th step (60% of them)", "twice in every 50 steps"."""
        some = f" ({percent(self.share)} of them)" if self.share < MOSTLY else ""
        if self.in_each == 1:
            return f"every {ordinal(length)} step{some}"
        return f"{'twice' if self.in_each == 2 else f'{self.in_each} times'} in every {length:,} steps{some}"


def group_text(
    causes: Sequence[StallCause],
    place: str,
    every: Mapping[int, Rhythm],
    times: int,
    regular: int | None,
    placed: int,
    is_exact: bool = True,
) -> str:
    """Return "Every 97th step: waiting at load() (train.py:31)"; without a period "Waiting at load() (train.py:31)".

    ``every``: length of a period -> its rhythm. ``regular``: how many of the ``times`` slow steps were in the periods; None: not
    known. ``placed``: how many have a known place; without a period, the text gives this number. ``is_exact``: whether
    ``regular`` is exact.
    """
    some = "" if every or placed == times else f", {placed:,} of {times:,} times"
    at = f"{some} at {place}" if place else ""
    words: dict[StallCause, str] = {
        "gc": "Python's garbage collection",
        "machine": "No CPU: other processes or threads had them",
        "disk": "waiting for a disk",
        "hook": f"the hook {place}",
        "callback": f"the Keras callback {place}",
        "py_function": f"a Python function that TensorFlow calls{': ' if place else ''}{place}",
        "wait": "waiting",
        "python": "Python code",
        "lock": f"Python's lock, held by {place}" if place else "Python's lock, held by another thread",
        "retrace": f"a function was traced{at}",
        "other_run": f"steps of another run{': ' if place else ''}{place}",
        "input": f"waiting for the next element of a dataset{at}",
        "checkpoint": f"a checkpoint{at}",
        "tensorflow": f"TensorFlow{'' if at else ' or its input pipeline'} took longer inside the step{at}",
        "stopped": "the process was stopped",
        "unknown": "the cause is not known",
    }
    text = " and ".join(words[cause] for cause in causes)
    if place == EPOCH_TURN:
        text = f"{EPOCH_TURN} of fit"
    elif causes == ["gc"]:
        text += at
    elif any(cause in ("disk", "wait", "python") for cause in causes):
        text += at or ("" if causes[0] == "disk" else NOWHERE)
    if not every:
        return text[0].upper() + text[1:]
    if all(rhythm.in_each == 1 and rhythm.share >= MOSTLY for rhythm in every.values()):
        periods = f"every {' and every '.join(map(ordinal, every))} step"
    else:
        periods = " and ".join(rhythm.text(length) for length, rhythm in every.items())
    about = "" if is_exact else "about "
    if regular is not None and regular < MOSTLY * times:
        return f"{text[0].upper()}{text[1:]}, {about}{regular:,} of {times:,} times {periods}"
    part = f" ({about}{regular:,} of {times:,} times)" if regular is not None and regular < times else ""
    return f"{periods[0].upper()}{periods[1:]}: {text}{part}"


def period_text(period: Period) -> str:
    """Return "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)"."""
    place = "inside the step" if period.inside else "before the step"
    cause = period.cause
    words = {"gc": "garbage collection", "machine": "no CPU", "disk": "a disk", "retrace": "traced anew", "stopped": "stopped"}
    words |= {"input": "the next element of a dataset", "checkpoint": "a checkpoint"}
    who = place_of(cause) or words.get(cause.kind, "")
    return f"Every {ordinal(period.steps)} step: {duration(period.median_s * 1e9)} {place}{', ' if who else ''}{who}"
