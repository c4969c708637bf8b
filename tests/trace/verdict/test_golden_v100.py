"""A profile of a V100, checked by hand: its budget and the verdict's numbers, to the nanosecond, by a plain reading of the file.

Nothing here uses the engine: events as ``plain_protobuf`` reads them, intervals as lists of pairs.
"""

from __future__ import annotations

from functools import lru_cache

import plain_protobuf
from plain_protobuf import Event

from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

NAME = "gpu_v100_excerpt.xplane.pb.gz"
COPIES = ("Memcpy", "Memset")
SENTENCE = (
    "Nothing is recorded on GPU:4 for 739 ms (98%) of this profile, which marks no steps. From its first kernel to its last "
    "19.9 ms pass; between kernels it is idle for 25% of them: for 1.62 ms the host had not launched its next kernel yet, for "
    "3.38 ms it had, and the kernel waited."
)

Span = tuple[int, int]


@lru_cache(maxsize=1)
def planes() -> dict[str, plain_protobuf.PlainPlane]:
    return {plane.name: plane for plane in plain_protobuf.planes(plain_protobuf.content(NAME))}


@lru_cache(maxsize=1)
def answers() -> Answers:
    return Answers(plain_protobuf.content(NAME), TraceContext())


def work() -> list[Event]:
    """What ran on the GPU's streams, in the order of time."""
    lines = planes()["/device:GPU:4"].lines
    return sorted((e for line, es in lines.items() if line.startswith("Stream") for e in es), key=lambda e: e.start_ns)


def is_copy(event: Event) -> bool:
    return event.name.startswith(COPIES)


def launches() -> dict[int, Event]:
    """The host's calls by their correlation ids."""
    return {e.stats["correlation_id"]: e for e in planes()["/host:CPU"].events if "correlation_id" in e.stats}


def spans(events: list[Event]) -> list[Span]:
    return [(e.start_ns, e.start_ns + e.duration_ns) for e in events]


def length(of: list[Span]) -> int:
    """Of the union."""
    total, reached = 0, 0
    for start, end in sorted(of):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


@lru_cache(maxsize=1)
def launching_ops() -> list[Event]:
    """Ops of the host within which work was put on the GPU: on a thread, the one that began last before the call."""
    ids = {e.stats["correlation_id"] for e in work()}
    calls = [call for number, call in launches().items() if number in ids]
    ops = [e for e in planes()["/host:CPU"].events if e.display_name and e.name.endswith(":" + e.display_name)]
    found: dict[int, Event] = {}
    for call in calls:
        around = [op for op in ops if op.thread == call.thread and op.start_ns <= call.start_ns]
        last = max(around, key=lambda op: op.start_ns, default=None)
        if last is not None and last.start_ns + last.duration_ns >= call.start_ns:
            found[id(last)] = last
    return [op for op in found.values() if not runs_for_tf_data(op)]


def runs_for_tf_data(op: Event) -> bool:
    """Whether the executor's turn that ran it works for a function that a thread of tf.data's called: its ops are input."""
    lines = planes()["/host:CPU"].lines.items()
    called = {e.stats.get("id") for line, es in lines if line.startswith("tf_data") for e in es if "CapturedFunction" in e.name}
    turns = [e for _, es in lines for e in es if e.thread == op.thread and e.name == "ExecutorState::Process"]
    around = [e for e in turns if e.start_ns <= op.start_ns <= e.start_ns + e.duration_ns]
    return any(e.stats["id"] in called for e in around)


def test_every_nanosecond_of_the_budget() -> None:
    """Compute, then copies beside it, then launches beside both, and the rest is idle."""
    (gpu,) = [device for device in answers().budget()["devices"] if "GPU:4" in device["device"]]
    kernels, copies = (spans([e for e in work() if is_copy(e) == which]) for which in (False, True))
    hosts = spans(launching_ops())
    parts = gpu["parts_ns"]
    assert parts["compute"] == length(kernels)
    assert parts["copies"] == length(kernels + copies) - length(kernels)
    assert parts["launch_gap"] == length(kernels + copies + hosts) - length(kernels + copies)
    assert parts["idle"] == answers().budget()["step_ns"] - length(kernels + copies + hosts)


def test_the_verdict_and_its_numbers() -> None:
    sentence, casts = answers().verdict()["sentences"]
    assert (sentence["code"], sentence["text"]) == ("idle_device", SENTENCE)
    (gpu,) = [device for device in answers().budget()["devices"] if "GPU:4" in device["device"]]
    assert f"{gpu['parts_ns']['idle'] / 1e6:.0f} ms" == "739 ms"
    kernels = [e for e in work() if not is_copy(e)]
    first, last = kernels[0].start_ns, max(end for _, end in spans(kernels))
    starved = queued = 0
    free = first
    for event in [e for e in work() if first <= e.start_ns < last]:
        if event.start_ns > free:
            launched = min(max(launches()[event.stats["correlation_id"]].start_ns, free), event.start_ns)
            starved, queued = starved + launched - free, queued + event.start_ns - launched
        free = max(free, event.start_ns + event.duration_ns)
    assert (f"{(last - first) / 1e6:.1f}", f"{starved / 1e6:.2f}", f"{queued / 1e6:.2f}") == ("19.9", "1.62", "3.38")
    assert f"{100 * (starved + queued) / (last - first):.0f}%" == "25%"
    cast = sum(e.duration_ns for e in kernels if ":Cast#" in str(e.stats.get("annotation")))
    assert casts["code"] == "layout" and f"(Cast 38%; {cast / 1e6:.2f} ms)" in casts["text"]


def test_every_piece_of_work_was_launched_and_its_launches_are_launches_of_the_gpu() -> None:
    assert len(work()) == 759 == sum(e.stats["correlation_id"] in launches() for e in work())
    lanes = {lane["title"]: lane["slices"] for lane in answers().timeline()["lanes"]}
    assert lanes["GPU:4 launches"] == len(launching_ops()) == 672
