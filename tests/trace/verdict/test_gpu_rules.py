"""What the verdict says of GPUs whose launches have times: on steps written down for it, and on real profiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import plain_protobuf
import pytest
from traces import CPU, STREAM, N, make_trace

from tftracer.trace.analyses.physical_devices import kernels as kernels_of
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.profile_cut import steps
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import UNKNOWN_TIME, NodeKind, Trace, TraceContext
from tftracer.trace.verdict.verdict import verdict

US, MS = 1_000, 1_000_000
V100, MI300 = "gpu_v100_excerpt.xplane.pb.gz", "gpu_mi300_excerpt.xplane.pb.gz"


def sentences(trace: Trace) -> dict[str, Any]:
    return {sentence["code"]: sentence for sentence in verdict(trace, TraceContext(), [])["sentences"]}


def launched(nodes: Sequence[tuple[N, int]]) -> Trace:
    """A trace of (node, when the host launched it; UNKNOWN_TIME: no launch)."""
    trace = make_trace([node for node, _ in nodes])
    return dataclasses.replace(trace, launched_at=np.array([at for _, at in nodes], np.int64))


def kernels(count: int, length: int, gap: int, ahead: int) -> list[tuple[N, int]]:
    """Equal kernels one after the other, each launched ``ahead`` ns before it begins."""
    begins = [i * (length + gap) for i in range(count)]
    return [(N(f"k{i}", "Relu", at, at + length, STREAM), max(at - ahead, 0)) for i, at in enumerate(begins)]


def test_a_gpu_that_waits_for_the_host_to_launch() -> None:
    sentence = sentences(launched(kernels(100, 50 * US, 50 * US, ahead=5 * US)))["launch_bound"]
    assert sentence["share"] == pytest.approx(0.45, abs=0.01) and sentence["numbers"]["launch_gap_ns"] == 99 * 45 * US
    assert "because the host has not launched its next kernel yet: up to 45 µs before k" in sentence["text"]
    assert "The trace does not show what the host does in that time." in sentence["text"]


def test_a_gpu_whose_kernels_are_launched_ahead_does_not_wait_for_the_host() -> None:
    """Though the host launches all the time: the kernels are in the queue already."""
    trace = launched(kernels(100, 50 * US, 50 * US, ahead=200 * US))
    assert "launch_bound" not in sentences(trace)


def test_one_long_gap_in_which_the_host_waits_for_its_input() -> None:
    wait = (N("next", "IteratorGetNext", 0, 6 * MS, CPU, NodeKind.INPUT), UNKNOWN_TIME)
    late = [(dataclasses.replace(n, start=n.start + 6 * MS, end=n.end + 6 * MS), at + 6 * MS) for n, at in kernels(10, MS, 0, 0)]
    sentence = sentences(launched([wait, *late]))["launch_bound"]
    assert (
        "most of it in one gap of 6 ms, before k0 (Relu)" in sentence["text"]
        and "waits for its input for 6 ms" in sentence["text"]
    )
    assert sentence["evidence"]["nodes"][0] == 1


@pytest.mark.parametrize(("count", "length", "named"), [(300, 3 * US, True), (150, 3 * US, False), (300, 12 * US, False)])
def test_small_kernels(count: int, length: int, named: bool) -> None:
    by_code = sentences(launched(kernels(count, length, 5 * US, ahead=100 * US)))
    assert ("small_kernels" in by_code) == named and "launch_bound" not in by_code
    if named:
        assert "300 kernels of 3 µs (median)" in by_code["small_kernels"]["text"]
        assert "5 µs each time (median)" in by_code["small_kernels"]["text"]


def test_small_kernels_that_follow_each_other_closely() -> None:
    assert "small_kernels" not in sentences(launched(kernels(300, 3 * US, 300, ahead=100 * US)))


def test_gaps_before_work_without_a_known_launch_are_not_explained() -> None:
    unknown = [(node, UNKNOWN_TIME) for node, _ in kernels(100, 50 * US, 50 * US, 0)]
    assert not {"launch_bound", "small_kernels"} & sentences(launched(unknown)).keys()


# ------------------------------------------------------------------------------------------------------------ real profiles


def test_a_v100_that_is_busy_in_a_profile_without_steps() -> None:
    """Its kernels are launched 0.7 ms ahead (median): neither the host nor small kernels hold it back. Casts do."""
    by_code = sentences(decode_xspace(plain_protobuf.content(V100)))
    assert list(by_code) == ["idle_device", "layout"]
    assert "on GPU:4 for 739 ms (98%) of this profile, which marks no steps." in by_code["idle_device"]["text"]
    assert (
        "From its first kernel to its last 19.9 ms pass; between kernels it is idle for 25% of them"
        in by_code["idle_device"]["text"]
    )


def held_up(trace: Trace, node: int, ns: int) -> Trace:
    """The trace as it would be if one of its nodes took longer, and all that began behind it came later."""
    behind = np.where(trace.start >= trace.end[node], ns, 0)
    end: Int64 = trace.end + behind
    end[node] += ns
    return dataclasses.replace(trace, start=trace.start + behind, end=end)


@pytest.mark.parametrize(
    ("op", "way", "advice"), [("MemcpyH2D", "to the device", "prefetch"), ("MemcpyD2H", "to the host", "Fetch less")]
)
def test_a_v100_that_a_copy_holds_up(op: str, way: str, advice: str) -> None:
    trace = decode_xspace(plain_protobuf.content(V100))
    while_it_works = trace.start > trace.start[kernels_of(trace)].min()
    copy = int(np.flatnonzero(while_it_works & (trace.op == list(trace.ops).index(op)) & (trace.kind == NodeKind.COPY))[0])
    by_code = sentences(held_up(trace, copy, 15 * MS))
    first = next(iter(by_code.values()))
    assert first["code"] == "copies" and first["share"] > 0.35, by_code
    assert f"most of their time {way}" in first["text"] and advice in first["advice"]
    assert first["evidence"]["nodes"][0] == copy and first["numbers"]["copies"] == 94
    assert "at the same time as kernels" in first["text"]


def test_an_mi300_that_the_host_has_launched_nothing_on() -> None:
    """JAX: a step whose kernels come 43 ms after its first copies, and one that is idle for several reasons."""
    first, second = (Answers(raw, TraceContext()) for _, raw in list(steps(plain_protobuf.content(MI300)))[:2])
    sentence = first.verdict()["sentences"][0]
    assert sentence["code"] == "launch_bound" and "one gap of 43.2 ms, before kernel/loop_transpose_fusion" in sentence["text"]
    assert "no events of the host" in sentence["advice"]
    sentence = second.verdict()["sentences"][0]
    assert sentence["code"] == "idle_device"
    assert (
        "for 261 µs the host had not launched its next kernel yet, for 549 µs it had, and the kernel waited." in sentence["text"]
    )
