"""The roofline, by hand on a few ops and on real steps: rates, intensities, and which roof an op is judged by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain_protobuf
import pytest
from traces import CPU, GPU, PS, STREAM, N, make_trace

from tftracer.contract.machine import MeasuredRoof
from tftracer.contract.roofline import Roof
from tftracer.errors import UnknownError
from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.ops import work_of
from tftracer.trace.analyses.roofline import roofline
from tftracer.trace.answers import Answers
from tftracer.trace.device_peaks import Hardware
from tftracer.trace.model import NodeKind, Trace, TraceContext

DATA = Path(__file__).parents[2] / "data"
US = 1000
FLOAT, HALF = 1, 19
UNKNOWN = float("nan")
MEASURED: MeasuredRoof = {
    "host": "here",
    "processor": "EPYC",
    "measured_at": 1.7e9,
    "doubt": "",
    "devices": [
        {
            "kind": "CPU",
            "title": "EPYC, 2 cores",
            "rates": [{"dtype": "float32", "flops_per_s": 100e9, "by": "NumPy"}],
            "bytes_per_s": 10e9,
        }
    ],
}


def arithmetic(trace: Trace, flops: list[float], moved: list[float], dtype: int = FLOAT) -> Arithmetic:
    is_matrix = np.array([trace.ops[code] == "MatMul" for code in trace.op.tolist()])
    return Arithmetic(np.array(flops), np.array(moved), is_matrix, np.full(trace.n, dtype, np.int32))


def answer(nodes: list[N], flops: list[float], moved: list[float], by: Any = "name", dtype: int = FLOAT, **context: Any) -> Any:
    trace = make_trace(nodes)
    return roofline(trace, work_of(trace), arithmetic(trace, flops, moved, dtype), TraceContext(**context), [], by)


STEP = [
    N("a", "MatMul", 0, 100 * US),
    N("b", "MatMul", 100 * US, 300 * US),
    N("c", "Relu", 300 * US, 350 * US),
    N("a", "MatMul", 350 * US, 450 * US),
    N("d", "MatMul", 450 * US, 500 * US),  # its shapes are not known
    N("e", "RecvTensor", 500 * US, 600 * US, kind=NodeKind.COMMUNICATION),
]
FLOPS = [1e6, 4e6, 0.0, 3e6, UNKNOWN, 0.0]
BYTES = [1e5, 1e5, 4e5, 1e5, 1e5, 1e6]


def test_ops_are_added_up_by_name() -> None:
    found = answer(STEP, FLOPS, BYTES)
    rows = {row["key"]: row for row in found["rows"]}
    assert [row["key"] for row in found["rows"]] == ["a", "b", "c"]  # by time; nothing unknown, no transfer
    assert (rows["a"]["count"], rows["a"]["total_ns"], rows["a"]["flops"]) == (2, 200 * US, 4e6)
    assert rows["a"]["flops_per_s"] == pytest.approx(20e9) and rows["a"]["intensity"] == 20.0
    assert rows["c"]["flops_per_s"] == 0 and rows["c"]["bytes_per_s"] == pytest.approx(8e9)
    assert rows["b"]["node"] == 1 and rows["b"]["dtype"] == "float32" and rows["b"]["device"] == CPU
    assert (found["known_ns"], found["work_ns"], found["unknown_matrix_ops"]) == (450 * US, 500 * US, 1)
    assert found["remedy"] == "" and found["left_out"] == 0


def test_and_by_type() -> None:
    found = answer(STEP, FLOPS, BYTES, "type")
    assert [(row["key"], row["count"], row["total_ns"]) for row in found["rows"]] == [
        ("MatMul", 3, 400 * US),
        ("Relu", 1, 50 * US),
    ]


def test_what_is_left_out_is_counted() -> None:
    trace = make_trace(STEP)
    found = roofline(trace, work_of(trace), arithmetic(trace, FLOPS, BYTES), TraceContext(), [], "name", limit=1)
    assert (len(found["rows"]), found["left_out"], found["left_out_ns"]) == (1, 2, 250 * US)


def test_the_best_of_the_trace_judges_where_nothing_else_is_known() -> None:
    found = answer(STEP, FLOPS, BYTES)
    roofs = {roof["dtype"]: (roof["rate"], roof["node"]) for roof in found["roofs"]}
    assert roofs == {"float32": (pytest.approx(30e9), 3), "": (pytest.approx(8e9), 2)}
    shares = {row["key"]: (row["of_roof"], row["judged_by"]) for row in found["rows"]}
    assert shares == {"a": (pytest.approx(2 / 3), "best"), "b": (pytest.approx(2 / 3), "best"), "c": (1.0, "best")}
    texts = {words["source"]: words["text"] for words in found["words"]}
    assert "not the machine's peak" in texts["best"] and "tftracer roof --save" in texts["measured"]


def test_the_best_of_the_runs_other_traces_judges_too() -> None:
    def best(dtype: str, rate: float, device: str = "CPU") -> Roof:
        return {"source": "best", "device": device, "dtype": dtype, "unit": "", "rate": rate, "node": 7}

    other_traces = [[best("float32", 60e9), best("float32", 900e9, "GPU"), best("", 4e9)], [best("float64", 5e9)], []]
    trace = make_trace(STEP)
    found = roofline(
        trace, work_of(trace), arithmetic(trace, FLOPS, BYTES), TraceContext(), [], "name", other_traces=other_traces
    )
    roofs = {roof["dtype"]: (roof["rate"], roof["node"]) for roof in found["roofs"]}
    assert roofs == {"float32": (60e9, -1), "": (pytest.approx(8e9), 2), "float64": (5e9, -1)}
    assert {row["key"]: row["of_roof"] for row in found["rows"]}["a"] == pytest.approx(1 / 3)
    (text,) = [words["text"] for words in found["words"] if words["source"] == "best"]
    assert text == "Best rates of 3 traces of this run, not the machine's peak rates."


def test_a_traces_best_rates_are_its_own_roof() -> None:
    answers = Answers((DATA / "conv_costgraph_tf2.21_cpu.pb").read_bytes(), TraceContext())
    best = answers.best_rates()["rates"]
    assert best and best == [roof for roof in answers.roofline()["roofs"] if roof["source"] == "best"]
    assert answers.roofline(other_traces=[{"rates": best}])["rows"] == answers.roofline()["rows"]


def test_executions_too_short_to_be_judged_set_no_mark() -> None:
    found = answer([N("a", "MatMul", 0, US - 1)], [1e6], [1e3])
    assert found["roofs"] == [] and found["rows"][0]["of_roof"] is None and found["rows"][0]["judged_by"] is None
    assert any("1 µs" in words["text"] for words in found["words"])


def test_what_was_measured_comes_first() -> None:
    found = answer(STEP, FLOPS, BYTES, measured_roof={**MEASURED, "doubt": "It was busy."})
    shares = {row["key"]: (row["of_roof"], row["judged_by"]) for row in found["rows"]}
    # a: 20 of 100 GFLOP/s, as 20 FLOP/byte allow all of it; c: 8 of 10 GB/s
    assert shares == {"a": (pytest.approx(0.2), "measured"), "b": (pytest.approx(0.2), "measured"), "c": (0.8, "measured")}
    low = answer([N("a", "MatMul", 0, 100 * US)], [1e5], [1e5], measured_roof=MEASURED)["rows"][0]
    assert low["of_roof"] == pytest.approx(0.1)  # 1 FLOP/byte at 10 GB/s allows 10 GFLOP/s; it does 1
    assert any("2023-11-14" in w["text"] and "EPYC, 2 cores" in w["text"] and "busy" in w["text"] for w in found["words"])


def test_another_type_of_number_is_not_judged_by_float32() -> None:
    row = answer(STEP[:1], [1e6], [1e5], dtype=HALF, measured_roof=MEASURED)["rows"][0]
    assert (row["dtype"], row["judged_by"]) == ("float16", "best")


def test_one_machine_s_roof_is_not_that_of_several_processes() -> None:
    found = answer([*STEP, N("f", "MatMul", 0, 100 * US, PS)], [*FLOPS, 1e6], [*BYTES, 1e5], measured_roof=MEASURED)
    assert {row["judged_by"] for row in found["rows"]} == {"best"}
    assert any("several processes" in words["text"] for words in found["words"])


ON_GPU = [N("a", "MatMul", 0, 20 * US, GPU, NodeKind.LAUNCH), N("a", "MatMul", 20 * US, 120 * US, STREAM)]


def test_a_gpu_is_judged_by_its_table() -> None:
    trace = replace(make_trace(ON_GPU), hardware={"/device:GPU:0": Hardware("Nvidia", "7.0", 80, 1.53e9, 898e9)})
    found = roofline(trace, work_of(trace), arithmetic(trace, [0.0, 1e9], [0.0, 1e6], HALF), TraceContext(), [], "name")
    (row,) = found["rows"]
    assert (row["kind"], row["key"], row["op"]) == ("GPU", "a", "MatMul")
    assert row["of_roof"] == pytest.approx(10e12 / 125.3e12, rel=0.01) and row["judged_by"] == "peak"
    assert {(roof["dtype"], roof["unit"]) for roof in found["roofs"] if roof["source"] == "peak"} == {
        *(("float64", ""), ("float32", ""), ("float16", ""), ("float16", "tensor cores"), ("", ""))
    }
    assert any("80 multiprocessors at 1.53 GHz" in words["text"] for words in found["words"])


def test_a_gpu_known_by_its_name_and_one_that_is_not_known() -> None:
    name = [{"name": "Tesla T4", "compute_capability": "7.5"}]
    assert answer(ON_GPU, [0.0, 1e9], [0.0, 1e6], gpu_devices=name)["rows"][0]["judged_by"] == "peak"
    found = answer(ON_GPU, [0.0, 1e9], [0.0, 1e6])
    assert found["rows"][0]["judged_by"] == "best"
    assert any("which GPU this is" in words["text"] for words in found["words"] if words["source"] == "peak")


def test_a_trace_without_shapes_says_what_to_do() -> None:
    found = answer(STEP[:1], [UNKNOWN], [UNKNOWN])
    assert found["rows"] == [] and found["roofs"] == [] and "partition graphs" in found["remedy"]
    assert found["unknown_matrix_ops"] == 1
    assert (
        answer(STEP, [UNKNOWN, UNKNOWN, 0.0, UNKNOWN, UNKNOWN, 0.0], BYTES)["remedy"] == found["remedy"]
    )  # the bytes of others are known
    assert answer(STEP[2:3], [0.0], [1e5])["remedy"] == ""  # there is no matrix op


def test_profiles() -> None:
    """Real ones: a CPU's says no shapes; on a V100 the table judges; the MI300's memory is faster than its profiler says."""

    def of(name: str) -> Any:
        return Answers(plain_protobuf.content(name), TraceContext()).roofline()

    assert "tftracer run" in of("transformer_tf2.21.xplane.pb.xz")["remedy"]
    with_graph = of("partitioned_tf2.21.xplane.pb.xz")  # recorded as it says
    assert with_graph["remedy"] == "" and any(row["flops"] > 0 for row in with_graph["rows"])
    v100 = [row for row in of("gpu_v100_excerpt.xplane.pb.gz")["rows"] if row["kind"] == "GPU"]
    assert len(v100) > 100 and {row["judged_by"] for row in v100} == {"peak"}
    assert all(0 < row["of_roof"] < 1 for row in v100)
    mi300 = of("gpu_mi300_excerpt.xplane.pb.gz")
    (memory,) = [roof for roof in mi300["roofs"] if not roof["dtype"]]
    assert memory["source"] == "best" and 2.6624e12 < memory["rate"] < 5.3e12


def test_real_steps() -> None:
    """Each row is what its executions add up to, one by one."""
    answers = Answers((DATA / "horovod_rank0_tf2.15_cpu.pb").read_bytes(), TraceContext())
    found, trace, each = answers.roofline(), answers.trace, answers.arithmetic
    assert len(found["rows"]) > 100 and found["left_out"] == 0 and found["unknown_matrix_ops"] == 0
    assert 0.5 < found["known_ns"] / found["work_ns"] <= 1
    for row in found["rows"]:
        nodes = [n for n in range(trace.n) if trace.names[int(trace.name[n])] == row["key"] and each.bytes[n] > 0]
        assert row["count"] == len(nodes) and row["node"] in nodes
        assert row["flops"] == pytest.approx(sum(each.flops[n] for n in nodes))
        assert row["total_ns"] == sum(int(trace.end[n] - trace.start[n]) for n in nodes)
    best = max(found["roofs"], key=lambda roof: roof["dtype"])
    node = best["node"]
    assert best["rate"] == pytest.approx(each.flops[node] / (trace.end[node] - trace.start[node]) * 1e9)
    with pytest.raises(UnknownError, match="by name or type"):
        answers.roofline("scope")  # type: ignore[arg-type]
