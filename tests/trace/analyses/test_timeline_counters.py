"""Counters of the timeline: every value at every moment against plain counting, and what a trace cannot have is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import plain_protobuf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import GPU, H2D, STREAM, N, make_trace, received

from tftracer.contract.trace import Counter, Counters
from tftracer.trace.analyses.timeline_counters import counters
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.columns import array
from tftracer.trace.decode.node_kinds import NO_COLLECTIVE
from tftracer.trace.model import NodeKind, Trace, TraceContext

DATA = Path(__file__).parents[2] / "data"
LONG = 1 << 33


def counters_of(trace: Trace) -> Counters:
    return Answers(None, TraceContext(), trace=trace).counters()


def recorded(name: str) -> Answers:
    return Answers((DATA / name).read_bytes(), TraceContext())


def one(counters: Counters, key: str) -> Counter:
    (counter,) = [counter for counter in counters["counters"] if counter["key"] == key]
    return counter


def at(counter: Counter, moments: np.ndarray) -> list[float]:
    """The counter's values."""
    time, value = np.cumsum(array(counter["gap_ns"]), dtype=np.float64), array(counter["value"])
    return [float(value[place]) for place in np.searchsorted(time, moments, "right") - 1]


def summed(moments: np.ndarray, start: np.ndarray, end: np.ndarray, size: np.ndarray) -> list[float]:
    """What plain counting has at each moment."""
    return [float(size[(start <= moment) & (moment < end)].sum()) for moment in moments]


times = st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 8))


@given(st.lists(times, min_size=1, max_size=25))
def test_ops_running_and_ready_are_what_counting_has(spans: list[tuple[int, int, int]]) -> None:
    nodes = [
        N(f"op{i}", "A", start, start + length, scheduled=max(0, start - early)) for i, (start, length, early) in enumerate(spans)
    ]
    trace = make_trace(nodes)
    counters, moments, ones = counters_of(trace), np.arange(20), np.ones(trace.n)
    assert at(one(counters, "running"), moments) == summed(moments, trace.start, trace.end, ones)
    assert at(one(counters, "ready"), moments) == summed(moments, trace.scheduled, trace.start, ones)


@pytest.mark.parametrize("name", ["ps_worker0_tf2.21_cpu.pb", "horovod_rank0_tf2.15_cpu.pb", "conv_tf2.12_cpu.pb"])
def test_a_recorded_step_has_what_counting_has(name: str) -> None:
    answers = recorded(name)
    trace, counters = answers.trace, answers.counters()
    moments = np.linspace(0, trace.duration_ns, 400).astype(np.int64)
    ops = trace.counted & (trace.kind != NodeKind.COMMUNICATION)
    assert at(one(counters, "running"), moments) == summed(moments, trace.start[ops], trace.end[ops], np.ones(ops.sum()))
    timed = ops & (trace.scheduled >= 0)
    ready = summed(moments, trace.scheduled[timed], trace.start[timed], np.ones(timed.sum()))
    assert at(one(counters, "ready"), moments) == ready
    tensors = answers.memory()["tensors"]
    for number, curve in enumerate(answers.memory()["curves"]):
        mine = [t for t in tensors if (t["allocator"], t["device"]) == (curve["allocator"], curve["device"])]
        alloc, free, size = (np.array([t[key] for t in mine]) for key in ("alloc_ns", "free_ns", "bytes"))
        held = one(counters, f"memory-{number}")
        assert at(held, moments[:-1]) == summed(moments[:-1], alloc, free, size)
        assert array(held["value"]).max() == curve["peak_bytes"]


def test_bytes_in_flight_are_those_of_transfers_and_collectives() -> None:
    nodes = [received("a", 10, 30, 1_000), received("b", 20, 40, 500), N("send", "_Send", 0, 50, kind=NodeKind.COMMUNICATION)]
    counter = one(counters_of(make_trace(nodes)), "in-flight")
    assert at(counter, np.array([0, 10, 20, 29, 30, 40])) == [0, 1_000, 1_500, 1_500, 500, 0]
    assert counter["note"] == ""

    answers = recorded("horovod_rank0_tf2.15_cpu.pb")
    trace, outputs = answers.trace, answers.outputs
    reduces = [i for i in range(trace.n) if NO_COLLECTIVE.fullmatch(trace.ops[trace.op[i]]) is None and trace.kind[i] == 1]
    sizes = np.array([outputs.requested_bytes[outputs.node == i].sum() for i in reduces])
    assert sizes.sum() > 0
    moments = np.linspace(0, trace.duration_ns, 200).astype(np.int64)
    expected = summed(moments, trace.start[reduces], trace.end[reduces], sizes)
    assert at(one(answers.counters(), "in-flight"), moments) == expected


def test_a_gpu_is_busy_while_a_kernel_or_a_copy_runs() -> None:
    nodes = [
        N("launch", "MatMul", 0, 5, GPU, NodeKind.LAUNCH),
        N("k1", "MatMul", 10, 20, STREAM),
        N("k2", "MatMul", 15, 30, STREAM),
        N("copy", "MEMCPYHtoD", 40, 50, H2D, NodeKind.COPY),
    ]
    counters = counters_of(make_trace(nodes))
    busy = one(counters, "gpu-0")
    assert busy["unit"] == "share"
    assert at(busy, np.array([0, 10, 19, 29, 30, 40, 49, 50])) == [0, 1, 1, 1, 0, 1, 1, 0]
    assert at(one(counters, "running"), np.array([0, 5, 15])) == [1, 0, 0]  # the launch alone takes a thread


def test_a_profile_has_its_allocators_memory_and_its_gpus() -> None:
    answers = Answers(plain_protobuf.content("gpu_v100_excerpt.xplane.pb.gz"), TraceContext())
    counters = answers.counters()
    trace, curves = answers.trace, answers.memory()["curves"]
    for number, curve in enumerate(curves):
        held = one(counters, f"memory-{number}")
        assert curve["allocator"] in held["title"]
        assert array(held["value"]).max() == curve["peak_bytes"]
        assert at(held, np.array(curve["time_ns"])) == curve["bytes"]
    busy = [counter for counter in counters["counters"] if counter["key"].startswith("gpu-")]
    assert busy and all(set(array(counter["value"])) <= {0, 1} for counter in busy)
    assert {missing["title"] for missing in counters["missing"]} >= {"Ops ready", "Bytes in flight"}
    assert trace.source == "xspace"


def test_what_a_trace_cannot_have_is_said_and_not_drawn() -> None:
    counters = counters_of(make_trace([N("a", "A", 0, 10)]))
    assert [counter["key"] for counter in counters["counters"]] == ["running"]
    assert {missing["title"] for missing in counters["missing"]} == {"Ops ready", "Bytes in flight", "Memory"}
    assert all(missing["reason"].endswith(".") for missing in counters["missing"])

    counters = counters_of(
        make_trace([N("a", "MatMul", 0, 10, GPU), N("r", "HorovodAllreduce", 2, 4, kind=NodeKind.COMMUNICATION)])
    )
    reasons = {missing["title"]: missing["reason"] for missing in counters["missing"]}
    assert "no kernels" in reasons["GPU:0 busy"]
    assert "how many bytes its transfers and collectives move" in reasons["Bytes in flight"]


def test_what_is_left_out_is_noted() -> None:
    nodes = [N("a", "A", 0, 10, scheduled=0), N("b", "A", 5, 9), received("a", 10, 30, 1_000), received("b", 20, 40, 0)]
    counters = counters_of(make_trace(nodes))
    assert one(counters, "ready")["note"].startswith("Of 1 of 2 ops")
    assert one(counters, "in-flight")["note"].startswith("Without 1 of 2 transfers")


@pytest.mark.filterwarnings("error")
def test_a_collective_with_an_impossible_size_is_one_of_unknown_size() -> None:
    answers = recorded("horovod_rank0_tf2.15_cpu.pb")
    for size in (2**63 - 1, -(2**63)):
        everywhere = np.full(len(answers.outputs.node), size)
        outputs = replace(answers.outputs, requested_bytes=everywhere, allocated_bytes=everywhere)
        missing = counters(answers.trace, outputs, [])["missing"]
        assert any("does not tell how many bytes" in each["reason"] for each in missing)


def test_times_and_values_of_any_size_travel() -> None:
    nodes = [received("a", LONG, 3 * LONG, LONG), N("b", "A", 0, 3 * LONG)]
    counter = one(counters_of(make_trace(nodes)), "in-flight")
    assert at(counter, np.array([0, LONG - 1, LONG, 3 * LONG - 1, 3 * LONG])) == [0, 0, LONG, LONG, 0]
