"""The measurements that support the cause of a slow step, in sentences. No side effects."""

from __future__ import annotations

from collections.abc import Iterator

from tftracer.contract.stalls import StallCause
from tftracer.slow.cause.parts_of_turn import excess, no_cpu_s, share_of_code
from tftracer.slow.record.sums_by_kind import CODE_CAUSES, HOOK_CAUSES
from tftracer.slow.watch_results import HostChange, Stall
from tftracer.trace.units import byte_size, duration, percent

#: Evidence is mentioned if it makes up at least this share of the measured time, or this number of bytes.
MIN_SHARE = 0.05
MIN_BYTES = 1 << 20
#: Bytes are counted once a second. They count as the slow step's if it took at least this share of that second.
MOST_OF_SECOND = 0.75
#: Another activity of the thread in the code that is the cause is mentioned if it took at least this share of the slow step.
NOTABLE = 0.2
#: Causes that are code of the script, a hook or a callback: all time at this code counts, whether the thread ran or waited.
CODE_OR_HOOK_CAUSES = (*CODE_CAUSES, *HOOK_CAUSES)
NO_CPU = "without a CPU"
#: Kind of a cause -> how the sentence about its share begins.
EXPLAINS: dict[StallCause, str] = {
    "python": "The Python code of its thread",
    "wait": "This wait",
    "disk": "This wait",
    "hook": "This hook",
    "callback": "This callback",
    "py_function": "This function",
    "retrace": "The call in which it was traced (the tracing and the first execution)",
}


def evidence(stall: Stall) -> list[str]:
    """Return sentences about the measurements, except those that the parts of the step's time already show."""
    sentences = list(_host_evidence(stall.host, bool(stall.parts))) if stall.host else []
    if stall.host and _counts_belong_to(stall, stall.host):
        sentences += _disk_evidence(stall.host)
    if stall.gc_s >= 0.001 and not stall.parts:
        sentences.insert(0, f"Garbage collections on its thread took {duration(stall.gc_s * 1e9)}.")
    if stall.cause.kind == "lock" and stall.others_gc_s >= MIN_SHARE * stall.length_s:
        collected = duration(stall.others_gc_s * 1e9)
        sentences.insert(0, f"Other threads collected garbage for {collected} of this time, and held the lock meanwhile.")
    if stall.cause.share is not None and stall.cause.kind != "unknown":
        who, share = EXPLAINS.get(stall.cause.kind, "The cause"), stall.cause.share
        included = _included(stall)
        if included:
            who += f", including {' and '.join(included)},"
            share = max(share, share_of_code(stall.parts, stall.excess_s))
        share = min(share, 1 - sum(other.seconds for other in stall.others) / max(stall.excess_s, 1e-9))
        about = "about " * (stall.cause.kind == "py_function" and stall.inside)  # by samples, which are few
        sentences.insert(0, f"{who} explains {about}{percent(share)} of the time beyond the usual.")
        without_cpu_s = no_cpu_s(stall.parts)
        if stall.cause.kind in CODE_OR_HOOK_CAUSES and NO_CPU not in who and without_cpu_s >= NOTABLE * stall.length_s:
            sentences.insert(1, f"Its thread had no CPU for {duration(without_cpu_s * 1e9)} of it.")
    return sentences


def _included(stall: Stall) -> list[str]:
    """Return what else the thread did in the time of the code that is the cause: it computed, waited, or had no CPU."""
    kinds = {"python": "Python code", "wait": "waiting", "disk": "waiting for a disk"} if stall.cause.kind in CODE_CAUSES else {}
    kinds = {**kinds, "no_cpu": NO_CPU} if stall.cause.kind in CODE_OR_HOOK_CAUSES else {}
    causes = {stall.cause.kind, *(other.cause.kind for other in stall.others)}
    owners = {frame.owner for stack in stall.stacks for frame in stack.frames if frame.owner}
    if len(owners) > 1 or any(other.cause.kind in CODE_OR_HOOK_CAUSES for other in stall.others):
        kinds.pop("no_cpu", None)  # the other code may have had no CPU
    seconds = {kind: sum(excess(part) for part in stall.parts if part.kind == kind) for kind in kinds if kind not in causes}
    return [
        f"{duration(took * 1e9)} {'' if kind == 'no_cpu' else 'of '}{kinds[kind]}"
        for kind, took in seconds.items()
        if took >= (MIN_SHARE if kind == "no_cpu" else NOTABLE) * stall.length_s
    ]


def _host_evidence(host: HostChange, has_parts: bool) -> Iterator[str]:
    """Yield sentences about the host. ``has_parts``: whether the parts of the step's time show what the thread did."""
    whole = max(host.seconds, 1e-9)
    if host.on_cpu_s is not None and not has_parts:
        yield f"Its thread ran for {percent(min(host.on_cpu_s / whole, 1.0))} of the time that was measured."
    for seconds, words in (
        (None if has_parts else host.run_queue_s, "It could have run and had no CPU for"),
        (host.cpu_pressure_s, "Some process on the machine waited for a CPU for"),
        (host.io_pressure_s, "Some process on the machine waited for a disk for"),
        (host.memory_pressure_s, "Some process on the machine waited for memory to be freed for"),
    ):
        if seconds is not None and seconds >= MIN_SHARE * whole:
            yield f"{words} {percent(min(seconds / whole, 1.0))} of it."
    others_share = host.others_share or 0.0
    if host.cpus and others_share >= MIN_SHARE:
        yield f"Other processes used {others_share * host.cpus:.1f} of the machine's {host.cpus} CPUs."
    if host.steal_s is not None and host.cpus and host.steal_s >= MIN_SHARE * whole * host.cpus:
        yield f"The hypervisor took {percent(host.steal_s / whole / host.cpus)} of the CPUs' time."
    if host.major_faults:
        yield f"{host.major_faults:,} of its memory pages had to come from a disk."


def _counts_belong_to(stall: Stall, host: HostChange) -> bool:
    """Return whether the counts of one second belong to the slow step, not to the time before or after it."""
    return stall.length_s >= MOST_OF_SECOND * host.seconds


def _disk_evidence(host: HostChange) -> Iterator[str]:
    for size, words in ((host.read_bytes, "read {} from disks"), (host.written_bytes, "wrote {} to disks")):
        if size is not None and size >= MIN_BYTES:
            yield f"This process {words.format(byte_size(size))}."
