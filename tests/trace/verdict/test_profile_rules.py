"""What the verdict says of steps in profiles, on real ones that were made slow by one thing each."""

from __future__ import annotations

from typing import Any

import plain_protobuf
import pytest
from traces import TF_DATA, N, make_trace

from tftracer.trace.answers import Answers
from tftracer.trace.model import NodeKind, TraceContext
from tftracer.trace.verdict.verdict import verdict

MS = 1_000_000


def sentences(name: str, context: TraceContext | None = None) -> list[Any]:
    return list(Answers(plain_protobuf.content(name), context or TraceContext()).verdict()["sentences"])


def first(name: str, context: TraceContext | None = None) -> Any:
    return sentences(name, context)[0]


def test_the_stage_of_tf_data_that_a_step_waits_for() -> None:
    found = first("slow_map_tf2.21.xplane.pb.gz")
    assert found["code"] == "input_bound" and found["share"] > 0.9
    assert "The stage that holds it up is Map (Root > Prefetch > Map), which runs for 50.6 ms of that, one call" in found["text"]
    assert "A Python function of tf.data runs for 50.4 ms of that time." in found["text"]
    assert "TensorFlow ops" in found["advice"] and found["numbers"]["python_ns"] > 50 * MS


def test_a_stage_that_began_before_the_trace_is_only_probably_the_cause() -> None:
    found = first("slow_map_begun_before_tf2.15.xplane.pb.gz")
    assert found["code"] == "input_bound" and "is probably Map (Root > Prefetch > Map)" in found["text"]
    assert "what it reads took 31.5 µs" in found["text"] and "num_parallel_calls" in found["advice"]
    assert "stage_ns" not in found["numbers"]


def test_of_a_distribution_strategy_the_datasets_own_stage_is_named() -> None:
    found = next(s for s in sentences("slow_map_mirrored_tf2.21.xplane.pb.gz") if s["code"] == "input_bound")
    assert "is Map (Root > Prefetch > Rebatch > Map)" in found["text"]


def test_what_tf_data_does_ahead_of_the_step_is_no_wait() -> None:
    step = [N(f"m{i}", "MatMul", i * 2 * MS, (i + 1) * 2 * MS) for i in range(3)]
    ahead = [
        N(name, op, 6 * MS, 9 * MS, TF_DATA, NodeKind.INPUT)
        for name, op in (("f", "PyFunc"), ("Iterator::Root::Prefetch::Map", "Map"))
    ]
    found = verdict(make_trace([*step, N("last", "Add", 9 * MS, 10 * MS), *ahead]), TraceContext(), [])
    assert "input_bound" not in [s["code"] for s in found["sentences"]]
    assert "python_function" not in [s["code"] for s in found["sentences"]]


@pytest.mark.parametrize("name", ["convnet_tf2.15.xplane.pb", "convnet_tf2.21.xplane.pb"])
def test_nothing_stands_out_in_a_small_network(name: str) -> None:
    assert [s["code"] for s in sentences(name)] == ["balanced"]
