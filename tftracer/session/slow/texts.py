"""Lines of code, stalls and periods in words: for the page, the summary and the verdict alike. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from tftracer.contract.stalls import CodeLine
from tftracer.slow.recorded import Cause, HostChange, Period, Stall
from tftracer.trace.units import byte_size, duration, percent

#: Shares of the measured time from which on something is named as evidence.
NAMED_SHARE = 0.05
NAMED_BYTES = 1 << 20
#: Shares of samples from which on a doubt is named.
DOUBTFUL_SHARE, COVERED_SHARE = 0.1, 0.8


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th, 97th."""
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def code_text(file: str, line: int, function: str, owner: str) -> str:
    """CheckpointSaverHook (basic_session_run_hooks.py:620), load() (train.py:31)."""
    name = PurePosixPath(file.replace("\\", "/")).name
    place = f"{name}:{line}" if name and line else name
    who = owner or (f"{function}()" if function.isidentifier() else function)
    return f"{who} ({place})" if who and place else who or place


def line_text(line: CodeLine) -> str:
    return code_text(line["file"], line["line"], line["function"], line["owner"])


def lines_text(lines: list[CodeLine], most: int = 3) -> str:
    """The first few, with their shares: "load() (train.py:31) 62%, CheckpointSaverHook (...) 20%"."""
    return ", ".join(f"{line_text(line)} {percent(line['share'])}" for line in lines[:most])


def place_of(cause: Cause) -> str:
    """Whose line a stall was; "" where no line is known."""
    frame = cause.frame
    return code_text(frame.file, frame.line, frame.function, cause.name or frame.owner) if frame else cause.name


# ------------------------------------------------------------------------------------------------------------------ stalls


def cause_text(cause: Cause, gc_s: float) -> str:
    """What a stall was, in a sentence without a full stop."""
    place = place_of(cause)
    at = f" at {place}" if place else ""
    if cause.kind == "gc":
        return f"Python's garbage collection, {duration(gc_s * 1e9)}"
    if cause.kind == "machine":
        return "Its thread had no CPU: other processes or threads had them"
    if cause.kind == "disk":
        return f"Its thread waited for a disk{at}"
    if cause.kind == "hook":
        return f"The hook {place}"
    if cause.kind == "callback":
        return f"The Keras callback {place}"
    if cause.kind == "py_function":
        return f"A Python function that TensorFlow calls: {place}" if place else "A Python function that TensorFlow calls"
    if cause.kind == "wait":
        return f"A wait without CPU (a sleep, a lock, the network){at}"
    if cause.kind == "python":
        return f"Python code{at}"
    return f"Not known; most samples were{at}" if place else "Not known: no measurement shows the cause"


def evidence(stall: Stall) -> list[str]:
    """What was measured, a sentence each."""
    sentences = list(_host_evidence(stall.host)) if stall.host else []
    if stall.gc_s >= 0.001:
        sentences.insert(0, f"Garbage collections on its thread took {duration(stall.gc_s * 1e9)}.")
    if stall.cause.share is not None and stall.cause.kind != "unknown":
        sentences.insert(0, f"The evidence for this cause covers {percent(stall.cause.share)} of the time.")
    return sentences


def _host_evidence(host: HostChange) -> Iterator[str]:
    whole = max(host.seconds, 1e-9)
    if host.on_cpu_s is not None:
        yield f"Its thread ran for {percent(min(host.on_cpu_s / whole, 1.0))} of the time that was measured."
    for seconds, words in (
        (host.run_queue_s, "It could have run and had no CPU for"),
        (host.cpu_pressure_s, "Some process on the machine waited for a CPU for"),
        (host.io_pressure_s, "Some process on the machine waited for a disk for"),
        (host.memory_pressure_s, "Some process on the machine waited for memory to be freed for"),
    ):
        if seconds is not None and seconds >= NAMED_SHARE * whole:
            yield f"{words} {percent(min(seconds / whole, 1.0))} of it."
    if host.machine_cpu_s is not None and host.process_cpu_s is not None and host.cpus:
        others = (host.machine_cpu_s - host.process_cpu_s) / whole
        if others >= NAMED_SHARE * host.cpus:
            yield f"Other processes used {others:.1f} of the machine's {host.cpus} CPUs."
    if host.steal_s is not None and host.cpus and host.steal_s >= NAMED_SHARE * whole * host.cpus:
        yield f"The hypervisor took {percent(host.steal_s / whole / host.cpus)} of the CPUs' time."
    if host.major_faults:
        yield f"{host.major_faults:,} of its memory pages had to come from a disk."
    for size, words in ((host.read_bytes, "read {} from disks"), (host.written_bytes, "wrote {} to disks")):
        if size is not None and size >= NAMED_BYTES:
            yield f"This process {words.format(byte_size(size))}."


def uncertainty(stall: Stall) -> str:
    """What the measurement cannot tell; "" if nothing."""
    return " ".join(_doubts(stall))


def _doubts(stall: Stall) -> Iterator[str]:
    samples = sum(stack.samples for stack in stall.stacks)
    late = sum(stack.late_samples for stack in stall.stacks)
    whole = (stall.end_ns - stall.start_ns) / 1e9
    if not samples:
        yield "No stack was sampled: it was over before sampling began, or sampling was off."
    elif stall.sampled_s < COVERED_SHARE * whole:
        yield f"The stacks cover {percent(stall.sampled_s / whole)} of it: sampling begins when a step is late."
    if samples and late >= DOUBTFUL_SHARE * samples:
        yield f"{percent(late / samples)} of the samples came late: what they show may have begun just then."
    if stall.host is None:
        yield "What the machine did is not known."


def period_text(period: Period) -> str:
    """ "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)"."""
    place = "inside the step" if period.inside else "before the step"
    cause = period.cause
    who = place_of(cause) or {"gc": "garbage collection", "machine": "no CPU", "disk": "a disk"}.get(cause.kind, "")
    return f"Every {ordinal(period.steps)} step: {duration(period.median_s * 1e9)} {place}{', ' if who else ''}{who}"
