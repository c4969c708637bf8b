"""The rules about steps that compute nearly all the time: what each names, and the case in which it keeps silent."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from traces import CPU, GPU, STREAM, N, make_trace

from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.over_traces import OpTotals, over_traces
from tftracer.trace.answers import Answers
from tftracer.trace.model import CpuUse, NodeKind, TraceContext
from tftracer.trace.verdict.verdict import headline, verdict

MS = 1_000_000
DOUBLE, FLOAT = 2, 1


def in_a_row(*ops: tuple[str, str, float], device: str = CPU, **more: Any) -> list[N]:
    """(name, type, ms): one after the other."""
    nodes, at = [], 0
    for name, op, ms in ops:
        nodes.append(N(name, op, at, at + int(ms * MS), device, **more))
        at += int(ms * MS)
    return nodes


def sentences(nodes: list[N], context: TraceContext | None = None, dtype: int = FLOAT) -> dict[str, Any]:
    trace = make_trace(nodes)
    work, traffic = np.full(trace.n, 1e6), np.full(trace.n, 1e6)
    known = Arithmetic(work, traffic, np.ones(trace.n, bool), np.full(trace.n, dtype))
    answer = verdict(trace, context or TraceContext(), [], load_arithmetic=lambda: known)["sentences"]
    ranked = [s["share"] for s in answer if s["code"] != "busy_machine"]
    assert ranked == sorted(ranked, reverse=True)
    return {s["code"]: s for s in answer}


def matmuls(count: int, ms: float) -> list[tuple[str, str, float]]:
    return [(f"m{i}", "MatMul", ms) for i in range(count)]


# -------------------------------------------------------------------------------------------------------------- float64


@pytest.mark.parametrize(("dtype", "others_ms", "expected"), [(DOUBLE, 8, True), (DOUBLE, 120, False), (FLOAT, 8, False)])
def test_matrix_ops_in_float64(dtype: int, others_ms: float, expected: bool) -> None:
    others = [(f"t{i}", "TopKV2", others_ms / 4) for i in range(4)]
    found = sentences(in_a_row(*matmuls(4, 2), *others), dtype=dtype).get("float64")
    assert (found is not None) == expected
    if found:
        assert "take 50% of the op time (MatMul 50%; 8 ms)" in found["text"] and "float32" in found["advice"]
        assert found["share"] == pytest.approx(0.375) and found["evidence"]["nodes"] == [0, 1, 2, 3]


def test_elementwise_ops_in_float64() -> None:
    nodes = in_a_row(*matmuls(2, 1), *[(f"e{i}", "Tanh", 2.0) for i in range(4)])
    found = sentences(nodes, dtype=DOUBLE)
    assert "take 100% of the op time (Tanh 80%, MatMul 20%; 10 ms)" in found["float64"]["text"]
    assert found["elementwise"]["text"].endswith("They compute in float64.") and "float32" in found["elementwise"]["advice"]
    assert "float64" not in sentences(nodes)["elementwise"]["text"]


@pytest.mark.parametrize(
    ("op", "dtype", "expected"), [("MatMul", DOUBLE, True), ("MatMul", FLOAT, False), ("Sort", DOUBLE, False)]
)
def test_one_long_matrix_op_says_that_it_computes_in_float64(op: str, dtype: int, expected: bool) -> None:
    found = sentences(in_a_row(("m", op, 8), ("t", "TopKV2", 2)), dtype=dtype)["one_op"]
    assert ("It computes in float64." in found["text"]) == ("float32" in found["advice"]) == expected


def test_nothing_is_said_of_number_types_that_are_not_known() -> None:
    trace = make_trace(in_a_row(*matmuls(8, 1)))
    assert [s["code"] for s in verdict(trace, TraceContext(), [])["sentences"]] == ["balanced"]


# --------------------------------------------------------------------------------------------------------- slow kernels

CONVOLUTIONS = [*[(f"c{i}", "Conv2D", 1.0) for i in range(4)], ("depthwise", "DepthwiseConv2dNative", 4.0)]


def codes_over(
    traces: list[list[tuple[str, str, float]]], flops: dict[str, float], context: TraceContext | None = None, dtype: int = FLOAT
) -> dict[str, Any]:
    """Of the first trace, beside the others; ``flops`` by op."""
    made = [make_trace(in_a_row(*ops)) for ops in traces]
    totals = []
    for trace in made:
        of_trace = Answers(None, TraceContext(), trace=trace).op_totals("name")
        totals.append(OpTotals(**of_trace))
    count = np.array([flops[name] for name, _, _ in traces[0]])
    n = made[0].n
    known = Arithmetic(count, np.full(n, 1e7), np.ones(n, bool), np.full(n, dtype))
    answer = verdict(made[0], context or TraceContext(), [], load_arithmetic=lambda: known, times=over_traces(totals))
    return {s["code"]: s for s in answer["sentences"]}


FLOPS = {**{f"c{i}": 1e8 for i in range(4)}, "depthwise": 2e7}


def test_an_op_that_is_slow_in_each_of_four_traces() -> None:
    found = codes_over([CONVOLUTIONS] * 4, FLOPS)["slow_kernel"]
    assert "depthwise (DepthwiseConv2dNative) takes 50% of the op time and computes 5 GFLOP/s" in found["text"]
    assert "at its fastest in 4 traces" in found["text"] and "reaches 100 GFLOP/s" in found["text"]
    assert found["evidence"]["nodes"] == [4] and found["share"] == pytest.approx(0.5 * 0.95)


def test_three_traces_are_too_few() -> None:
    assert "slow_kernel" not in codes_over([CONVOLUTIONS] * 3, FLOPS)


def test_an_op_that_was_fast_once_is_not_slow() -> None:
    quick = [*CONVOLUTIONS[:4], ("depthwise", "DepthwiseConv2dNative", 1.0)]
    assert "slow_kernel" not in codes_over([CONVOLUTIONS, CONVOLUTIONS, CONVOLUTIONS, quick], FLOPS)


def test_an_op_whose_equal_is_fast_was_disturbed() -> None:
    disturbed = [*CONVOLUTIONS[:3], ("c3", "Conv2D", 40.0)]
    assert "slow_kernel" not in codes_over([disturbed] * 4, FLOPS)


def test_an_op_that_runs_more_often_in_some_traces_is_not_compared() -> None:
    assert "slow_kernel" not in codes_over([CONVOLUTIONS, CONVOLUTIONS, CONVOLUTIONS, [*CONVOLUTIONS, CONVOLUTIONS[4]]], FLOPS)


# --------------------------------------------------------------------------------------------------------------- layout


def test_several_ops_on_strings_are_named_together_and_a_single_one_by_itself() -> None:
    several = [("split", "StringSplitV2", 3.0), ("replace", "StaticRegexReplace", 4.0), ("hash", "StringToHashBucketFast", 3.0)]
    found = sentences(in_a_row(*matmuls(5, 1), *several))["string_ops"]
    assert found["text"].startswith("Ops on strings take 67% of the op time (StaticRegexReplace 27%, ")
    alone = sentences(in_a_row(*matmuls(2, 1), ("replace", "StaticRegexReplace", 8.0), ("split", "StringSplitV2", 0.5)))
    assert "string_ops" not in alone and alone["one_op"]["advice"] == found["advice"]


def test_transposes_whoever_wrote_them() -> None:
    transposes = [("t0", "_MklTranspose", 2.0), ("t1", "Transpose", 2.0), ("c", "Cast", 1.0)]
    found = sentences(in_a_row(*matmuls(5, 1), *transposes))["layout"]
    assert "take 50% of the op time (Transpose 40%, Cast 10%; 5 ms)" in found["text"]
    assert found["evidence"]["op"] in ("_MklTranspose", "Transpose") and found["evidence"]["tab"] == "ops"


def test_copies_on_the_host_are_added_up_but_not_tiny_ones() -> None:
    copies = [("a", "ConcatV2", 1.0), ("b", "StridedSlice", 1.0), ("c", "_MklConcatV2", 1.0)]
    assert (
        "take 33% of the op time (ConcatV2 22%, StridedSlice 11%; 3 ms)"
        in sentences(in_a_row(*matmuls(6, 1), *copies))["layout"]["text"]
    )
    tiny = [(f"s{i}", "StridedSlice", 0.01) for i in range(900)]
    assert "layout" not in sentences(in_a_row(*matmuls(6, 1), *tiny))


def test_ops_of_one_scope_are_named_by_it() -> None:
    clipping = [
        (f"clip_by_global_norm/{name}", op, 1.0) for name, op in (("mul_1", "Mul"), ("mul_2", "Mul"), ("L2Loss", "L2Loss"))
    ]
    rest = [("while/body/add_1", "AddV2", 1.0), *[(f"dense/m{i}", "MatMul", 0.2) for i in range(10)]]
    found = sentences(in_a_row(*clipping, *rest))["elementwise"]
    assert found["text"].endswith("75% of that is in clip_by_global_norm.")
    in_layer = [(f"gradient_tape/net/lstm/{i}/mul", "Mul", 1.0) for i in range(2)] + [("net/lstm/mul", "Mul", 1.0)]
    assert sentences(in_a_row(*in_layer, *rest[1:]))["elementwise"]["text"].endswith(
        "100% of that is in net/lstm and its gradients."
    )
    for apart in ([("a/mul", "Mul", 1.0), ("b/mul", "Mul", 1.0), ("c/mul", "Mul", 1.0)], [("while/body/add", "AddV2", 1.0)] * 3):
        assert " of that is in " not in sentences(in_a_row(*apart, *rest[1:]))["elementwise"]["text"]


def test_an_op_and_its_gradients_are_one_scope() -> None:
    """A judge read "53% of that is in logits/MatMul" where the layer had 99%: the forward op itself was left out."""
    logits = [
        ("StatefulPartitionedCall/logits/MatMul", "MatMul", 4.0),
        *[(f"gradient_tape/logits/MatMul/{i}", "MatMul", 2.5) for i in (1, 2)],
    ]
    others = [(f"dense_{i}/MatMul", "MatMul", 0.1) for i in range(3)]
    text = sentences(in_a_row(*logits, *others, ("loss/Softmax", "Softmax", 6.0)))["balanced"]["text"]
    assert "97% of that is in logits/MatMul and its gradients." in text


def test_a_layer_with_most_of_the_op_time_is_named_with_its_gradients() -> None:
    kinds = ["Einsum", "Softmax", "RandomUniform", "BatchMatMulV2"]
    layer = [(f"seq/attention/{kind}", kind, 2.0) for kind in kinds]
    layer += [(f"gradient_tape/seq/attention/{kind}/x", kind, 0.5) for kind in kinds]
    others = [("seq/dense/MatMul", "MatMul", 0.5), ("loss/Mean", "Mean", 0.1)]
    found = sentences(in_a_row(*layer, *others))["balanced"]["text"]
    assert found.endswith("94% of the op time is in seq/attention and its gradients.")
    model = [(f"net/{name}/{kind}", kind, 1.0) for name in "abcd" for kind in kinds]
    assert "of the op time is in" not in sentences(in_a_row(*model, *others))["balanced"]["text"]


def test_a_metric_of_many_casts_is_named_by_its_scope() -> None:
    """A judge read "Ops that only copy tensors take 47% of the op time" of a metric that took 84%."""
    metric = [(f"auc/{kind}", kind, 1.0) for kind in ("Cast", "Tile", "Transpose", "Reshape", "Greater", "Sum")]
    found = sentences(in_a_row(*metric, ("dense/MatMul", "MatMul", 0.9)))["layout"]["text"]
    assert found.endswith("87% of the op time is in auc.")
    parts = [(f"auc/{part}/{kind}", kind, 0.1) for part in ("broadcast_weights", "assert") for kind in ("Greater", "Sum")]
    found = sentences(in_a_row(*metric, *parts, ("dense/MatMul", "MatMul", 0.9)))["layout"]["text"]
    assert found.endswith("88% of the op time is in auc."), "its small parts do not make it a model"


def test_scopes_that_differ_by_a_number_are_named_together() -> None:
    losses = [(f"stft{n}/{kind}", kind, 1.0) for n in ("", "_1", "_2", "_3") for kind in ("FFT", "Frame", "Window", "Tile")]
    found = sentences(in_a_row(*losses, ("dense/MatMul", "MatMul", 4.0)))["balanced"]["text"]
    assert found.endswith("80% of the op time is in stft, stft_1 and 2 others like them.")


def test_a_scope_of_the_whole_model_is_not_named() -> None:
    nodes = [(f"net/layer{i}/{op}", op, 1.0) for i in range(5) for op in ("Mul", "MatMul")]
    assert " of that is in " not in sentences(in_a_row(*nodes))["elementwise"]["text"]


def test_one_interrupted_transpose_is_no_pattern() -> None:
    assert "layout" not in sentences(in_a_row(*matmuls(8, 1), ("t0", "Transpose", 3.0), ("t1", "Transpose", 0.1)))


def test_one_long_cast_is_a_pattern_where_other_traces_have_it() -> None:
    one_cast = [*matmuls(6, 1), ("c", "Cast", 6.0), ("t", "Transpose", 0.1)]
    flops = {name: 1e6 for name, _, _ in one_cast}
    assert "layout" not in codes_over([one_cast], flops)
    assert "layout" in codes_over([one_cast] * 4, flops)


def test_matrix_ops_in_float64_that_were_interrupted_are_no_pattern_where_other_traces_tell() -> None:
    nodes = [("m0", "MatMul", 0.3), ("m1", "MatMul", 0.3), *[(f"t{i}", "TopKV2", 3.0) for i in range(4)]]
    flops = {name: 1e6 for name, _, _ in nodes}
    held_up = [(name, op, 8.0 if op == "MatMul" else ms) for name, op, ms in nodes]
    assert "float64" in codes_over([held_up], flops, dtype=DOUBLE)
    assert "float64" not in codes_over([held_up, *[nodes] * 3], flops, dtype=DOUBLE)


TRANSPOSED = [*matmuls(8, 1), ("t0", "Transpose", 0.1), ("t1", "Transpose", 0.1), ("e0", "Mul", 0.1), ("e1", "Mul", 0.1)]
USUAL_FLOPS = {name: 1e6 for name, _, _ in TRANSPOSED}


def interrupted(*names: str) -> list[tuple[str, str, float]]:
    return [(name, op, 60.0 if name in names else ms) for name, op, ms in TRANSPOSED]


def test_several_interrupted_ops_are_no_pattern_where_other_traces_tell() -> None:
    for code, names in (("layout", ("t0", "t1")), ("elementwise", ("e0", "e1"))):
        assert code in codes_over([interrupted(*names)], USUAL_FLOPS)
        assert code not in codes_over([interrupted(*names), *[TRANSPOSED] * 3], USUAL_FLOPS)
        assert code in codes_over([interrupted(*names)] * 4, USUAL_FLOPS)


def test_interrupted_ops_are_no_pattern_where_two_other_traces_differ_by_much() -> None:
    """The shortest time counts: the other trace in which the ops took long was interrupted, too."""
    traces = [interrupted("e0", "e1"), interrupted("e0", "e1"), TRANSPOSED]
    assert "elementwise" not in codes_over(traces, USUAL_FLOPS)
    assert "elementwise" in codes_over(traces[:2], USUAL_FLOPS)


@pytest.mark.parametrize(("beside_ms", "code"), [(6, "one_op"), (9, "balanced")])
def test_an_op_beside_which_others_run_ranks_by_the_time_in_which_it_runs_alone(beside_ms: int, code: str) -> None:
    """Without it, a step of 10 ms would be shorter by that time at most."""
    nodes = [N("long", "MatMul", 0, 10 * MS), N("beside", "TopKV2", 0, beside_ms * MS)]
    first = verdict(make_trace(nodes), TraceContext(), [])["sentences"][0]
    assert first["code"] == code
    if code == "one_op":
        assert first["share"] == pytest.approx(0.4) and "For 6 ms of that other ops run at the same time" in first["text"]


def test_an_op_is_no_bound_if_it_takes_a_small_part_of_other_traced_steps() -> None:
    """1.9 ms of a balanced step of 4.5 ms, elsewhere 1 ms: twice as long is told as that."""
    usual = [("t", "Transpose", 1.0), *[(f"x{i}", kind, 0.5) for i, kind in enumerate(("Svd", "Qr", "Where", "Sort", "TopKV2"))]]
    flops = {name: 1e6 for name, _, _ in usual}

    def found(ms: float) -> dict[str, Any]:
        return codes_over([[("t", "Transpose", ms), *usual[1:]], *[usual] * 3], flops)

    assert "one_op" not in found(1.9)
    assert "it takes about 1 ms. At most 1.5 ms of the step are due to that." in found(2.5)["one_op"]["text"]


def test_of_two_ops_that_were_held_up_the_one_that_lost_more_is_told() -> None:
    usual = [("conv", "Conv2D", 5.0), ("product", "MatMul", 3.0), ("fft", "FFT", 2.0)]
    held_up = [("conv", "Conv2D", 40.0), ("product", "MatMul", 70.0), ("fft", "FFT", 2.0)]
    text = codes_over([held_up, *[usual] * 3], {name: 1e6 for name, _, _ in usual})["one_op"]["text"]
    assert text.startswith("One op, product (MatMul)") and "At most 67 ms of the step are due to that." in text


def test_a_pattern_without_an_op_that_was_held_up_beside_it_comes_first_and_says_so() -> None:
    usual = [*[(f"e{i}", "Tanh", 0.5) for i in range(6)], ("gather", "GatherV2", 0.2)]
    held_up = [*usual[:-1], ("gather", "GatherV2", 6.0)]
    found = codes_over([held_up, *[usual] * 3], {name: 1e6 for name, _, _ in usual})
    assert (
        next(iter(found)) == "elementwise"
        and "take 33% of the op time, 94% without what was held up" in found["elementwise"]["text"]
    )


def test_a_pattern_with_an_op_that_was_held_up_says_its_share_without_it() -> None:
    usual = [*[(f"add{i}", "AddV2", 1.0) for i in range(6)], *[(f"m{i}", "MatMul", 1.0) for i in range(4)], ("t", "Tanh", 0.5)]
    held_up = [*usual[:-1], ("t", "Tanh", 6.0)]
    found = codes_over([held_up, *[usual] * 2], {name: 1e6 for name, _, _ in usual})["elementwise"]
    assert "take 75% of the op time, 62% without what was held up" in found["text"]
    assert found["share"] == pytest.approx(6.5 / 10.5, abs=0.01)


def test_of_few_traces_one_with_a_delay_weighs_nothing_in_the_shares_of_another() -> None:
    usual = [*[(f"add{i}", "AddV2", 1.0) for i in range(6)], ("a", "Assign", 1.0), ("m", "MatMul", 1.0)]
    held_up = [*usual[:-2], ("a", "Assign", 20.0), ("m", "MatMul", 1.0)]
    found = codes_over([usual, held_up, usual], {name: 1e6 for name, _, _ in usual})
    assert "take 75% of the op time" in found["elementwise"]["text"]


def test_a_pattern_whose_longest_op_was_held_up_is_told_beside_it() -> None:
    usual = [(f"e{i}", "Tanh", 0.5) for i in range(6)]
    found = codes_over([[("e0", "Tanh", 8.0), *usual[1:]], *[usual] * 3], {name: 1e6 for name, _, _ in usual})
    assert list(found)[:2] == ["elementwise", "one_op"]


def test_products_of_which_one_was_held_up_are_not_most_of_the_op_time() -> None:
    others = [(f"x{i}", op, 1.0) for i, op in enumerate(("MaxPoolGrad", "Softplus", "Conv2D", "Tile", "TopKV2"))]
    usual = [("a", "MatMul", 0.8), ("b", "BatchMatMulV2", 0.8), *others]
    held_up = [("a", "MatMul", 3.0), ("b", "BatchMatMulV2", 3.0), *others]
    flops = {name: 1e6 for name, _, _ in usual}
    assert "Most op time goes into products" not in codes_over([held_up, *[usual] * 3], flops)["balanced"]["text"]
    assert "Most op time goes into products" in codes_over([held_up, *[held_up] * 3], flops)["balanced"]["text"]
    rest = [(name, op, 0.5) for name, op, _ in others]
    usual = [("a", "MatMul", 1.0), ("b", "BatchMatMulV2", 1.0), ("c", "MatMul", 1.5), *rest]
    held_up = [("a", "MatMul", 3.2), *usual[1:]]
    text = codes_over([held_up, *[usual] * 3], {name: 1e6 for name, _, _ in usual})["balanced"]["text"]
    assert "products, with 70% of the total, 58% without what held up single ops (" in text


@pytest.mark.parametrize(("turns", "expected"), [(12, True), (3, False), (20, False)])
def test_loops_of_the_graph_are_told_where_nothing_else_stands_out(turns: int, expected: bool) -> None:
    """Also silent on a loop of whole training steps."""
    types = ("Softplus", "Conv2D", "TopKV2", "MaxPoolGrad")
    body = [N(f"b{i}", types[i % 4], i * MS, (i + 1) * MS) for i in range(turns)]
    others = [N(f"x{i}", types[i % 4], (turns + i) * MS, (turns + i + 1) * MS) for i in range(20 - turns)]
    loop = N("ctc/While", "While", 0, turns * MS, kind=NodeKind.CONTROL)
    found = sentences([loop, *body, *others])
    assert ("graph_loops" in found) == expected
    assert not expected or found["graph_loops"]["text"] == (
        "A loop of the graph runs for 12 ms (60%) of the step, turn after turn; it is ctc/While (While)."
    )


def test_a_trace_whose_last_op_type_does_not_compute_is_described() -> None:
    """Its types are more than those of the ops that compute."""
    trace = make_trace(
        [N("m", "MatMul", 0, MS), N("s", "Svd", MS, 2 * MS), N("q", "Qr", 2 * MS, 3 * MS), N("r", "_Recv", 3 * MS, 3 * MS)]
    )
    assert verdict(trace, TraceContext(), [])["sentences"][0]["text"].startswith("The step is 100% compute.")


def test_an_op_that_does_no_work_is_not_what_a_step_is_bound_by_on_a_busy_machine() -> None:
    trace = make_trace(in_a_row(("shape/Const", "Const", 10.0), *matmuls(8, 1)))
    busy = used(wall_s=0.060, cpu_s=0.030, run_queue_s=0.150, cpus=2.0)
    for context, begins in ((used(), "One op, shape/Const"), (busy, "Without what held up single ops, most op time goes into 8")):
        text = verdict(trace, context, [])["sentences"][0]["text"]
        assert text.startswith(begins), text


def test_one_op_that_was_held_up_says_how_long_it_usually_takes() -> None:
    long = codes_over([interrupted("m0"), *[TRANSPOSED] * 3], USUAL_FLOPS)["one_op"]
    assert long["numbers"]["usual_ns"] == MS
    assert "in most traced steps of the run it takes about 1 ms. At most 59 ms of the step are due to that." in long["text"]
    assert "held it up in this step" in long["advice"]
    always = codes_over([interrupted("m0")] * 4, USUAL_FLOPS)["one_op"]
    assert "most traced steps" not in always["text"] and "has to be that large" in always["advice"]


MIXED = [
    (f"x{i}", kind, 0.3) for i, kind in enumerate(("MatMul", "Conv2D", "TopKV2", "Svd", "Qr", "Fill", "Where", "Sort", "Range"))
]


@pytest.mark.parametrize(
    ("held_up_ms", "usual_s", "first"),
    [(3.0, None, "balanced"), (3.0, 0.0050, "balanced"), (3.0, 0.0027, "one_op"), (2.0, 0.0001, "balanced")],
    ids=("usual steps are not known", "the step is as long as usual", "it explains the difference", "it explains a part of it"),
)
def test_an_op_that_was_held_up_comes_first_only_where_it_explains_a_slow_step(
    held_up_ms: float, usual_s: float | None, first: str
) -> None:
    """No type has most of the op time, held up or not."""
    flops = {name: 1e6 for name, _, _ in MIXED}
    held_up = [(name, op, held_up_ms if name == "x4" else ms) for name, op, ms in MIXED]
    found = codes_over([held_up, MIXED, MIXED], flops, TraceContext(median_s=usual_s))
    share = (held_up_ms - 0.3) / (held_up_ms + 2.4)
    assert next(iter(found)) == first and found["one_op"]["share"] == pytest.approx(share)
    assert f"At most {held_up_ms - 0.3:.2g} ms of the step are due to that." in found["one_op"]["text"]
    if first == "balanced":
        assert found["balanced"]["text"].startswith("Beside what was held up in this step, nothing stands out.")


def test_a_loop_that_takes_more_turns_than_usual_was_not_held_up() -> None:
    """A judge read "Without what held up single ops, ..." of a step whose loop took 500 turns, not 5."""
    usual = [*[("mix", "MatMul", 0.3)] * 5, *matmuls(10, 0.1), ("a", "AddV2", 0.1)]
    longer = [*[("mix", "MatMul", 0.3)] * 500, *usual[5:]]
    found = codes_over([longer, usual, usual, usual], {name: 1e6 for name, _, _ in longer})
    text = (
        "One op, mix (MatMul) on the CPU, runs for 150 ms in 500 executions (in most traced steps of the run it takes about 1.5"
    )
    assert list(found) == ["one_op"] and found["one_op"]["text"].startswith(text)


def test_types_that_were_held_up_are_named_where_the_list_leaves_them_out() -> None:
    """A judge read "The largest op types are _MklMatMul, Cumsum and ReluGrad"; the table had BiasAddGrad second."""
    usual = [("m0", "MatMul", 0.6), ("m1", "MatMul", 0.6), ("c0", "Conv2D", 0.5), ("c1", "Conv2D", 0.5), ("s", "Svd", 0.4)]
    flops = {name: 1e6 for name, _, _ in usual}
    delayed = [(name, op, 1.6 if name == "s" else ms) for name, op, ms in usual]
    text = codes_over([delayed, usual, usual], flops, TraceContext())["balanced"]["text"]
    assert "The largest op types, without Svd (42%), which was held up, are MatMul (with 32% of the total op time)" in text
    assert "Without what was held up, the longest op, m0 (MatMul), runs for 600 µs." in text


MANY = [*matmuls(40, 0.1), *[(f"a{i}", "AddV2", 0.02) for i in range(40)]]


def held_up(name: str, ms: float) -> list[tuple[str, str, float]]:
    return [(each, op, ms if each == name else usual) for each, op, usual in MANY]


@pytest.mark.parametrize("others", [1, 3])
def test_beside_other_traces_an_op_that_was_held_up_is_not_what_a_step_is_bound_by(others: int) -> None:
    """A busy machine interrupted one product of forty for 38 ms: 90% of the step, in this trace alone."""
    flops = {name: 1e6 for name, _, _ in MANY}
    found = codes_over([held_up("m7", 38.0), *[MANY] * others], flops)
    assert next(iter(found)) == "balanced" and found["balanced"]["text"].startswith(
        "Most op time goes into 40 ops of type MatMul"
    )
    usually = "in most traced steps of the run it takes about" if others == 3 else "in others it takes at most"
    assert (
        f"; {usually} 100 µs. At most 37.9 ms of the step are due to that." in found["one_op"]["text"]
        and "held it up in this step" in found["one_op"]["advice"]
    )
    another = codes_over([held_up("a7", 38.0), *[MANY] * others], flops)["balanced"]["text"]
    assert another.startswith("Without what held up single ops, most op time goes into 40 ops of type MatMul.")


def test_the_op_that_takes_most_where_nothing_is_held_up_is_named_beside_one_that_was() -> None:
    """A decomposition of 2.4 ms, 41% of a step in which a product of 1 µs was interrupted for 2.7."""
    usual = [("svd", "Svd", 2.4), ("mul", "Mul", 0.1)]
    found = codes_over([[usual[0], ("mul", "Mul", 2.7)], usual, usual], {"svd": 1e6, "mul": 1e6})["one_op"]
    assert found["text"].startswith("One op, svd (Svd) on the CPU, runs for 2.4 ms: 47% of the step.")
    assert "usual_ns" not in found["numbers"]


@pytest.mark.parametrize(("is_busy", "flops", "first"), [(True, 1e6, "balanced"), (False, 1e6, "one_op"), (True, 4e8, "one_op")])
def test_of_many_equal_ops_one_that_was_interrupted_on_a_busy_machine_is_no_bound(
    is_busy: bool, flops: float, first: str
) -> None:
    """Without any other trace. An op that has far more to do than the others of its type keeps its time."""
    trace = make_trace(in_a_row(*held_up("m7", 38.0)))
    work = np.full(80, 1e6)
    work[7] = flops
    known = Arithmetic(work, np.full(80, 1e4), np.ones(80, bool), np.full(80, FLOAT))
    context = used(wall_s=0.060, cpu_s=0.030, run_queue_s=0.150, cpus=2.0) if is_busy else used()
    assert verdict(trace, context, [], load_arithmetic=lambda: known)["sentences"][0]["code"] == first


# ------------------------------------------------------------------------------------------------------------- printing


def test_prints_are_named_and_not_the_op_that_makes_their_text() -> None:
    found = sentences(in_a_row(*matmuls(2, 1), ("StringFormat", "StringFormat", 9.0), ("PrintV2", "PrintV2", 1.0)))
    assert "one_op" not in found and found["printing"]["text"].startswith(
        "1 tf.print in the step: making and writing the text takes 83% of the op time (StringFormat 75%, PrintV2 8%; 10 ms)"
    )
    without = sentences(in_a_row(*matmuls(2, 1), ("format", "StringFormat", 9.0)))  # tf.strings.format
    assert "printing" not in without and "one_op" in without


def test_many_short_prints_explain_the_gaps_between_them() -> None:
    prints = [N(f"p{i}", "PrintV2", i * 40_000, i * 40_000 + 10_000) for i in range(100)]
    assert [*sentences(prints)] == ["printing"]


@pytest.mark.parametrize(("op", "is_text"), [("StaticRegexReplace", True), ("LookupTableFindV2", True), ("TopKV2", False)])
def test_work_on_strings_is_not_advised_to_run_on_a_gpu(op: str, is_text: bool) -> None:
    found = sentences(in_a_row(("op", op, 9.0), *matmuls(2, 1)))["one_op"]
    assert ("GPU" in found["advice"]) != is_text and ("tf.data's map" in found["advice"]) == is_text


# ---------------------------------------------------------------------------------------------------------- elementwise


def test_long_elementwise_ops_with_what_they_move() -> None:
    chain = [(f"e{i}", ("Mul", "AddV2", "Tanh")[i % 3], 1.0) for i in range(6)]
    found = sentences(in_a_row(*matmuls(4, 1), *chain))["elementwise"]
    assert "take 60% of the op time (Mul 20%, AddV2 20%, Tanh 20%; 6 ms)" in found["text"]
    assert "6 MB pass through memory for them, 1 GB/s" in found["text"] and "set_jit" in found["advice"]


def test_short_elementwise_ops_are_another_matter() -> None:
    assert "elementwise" not in sentences(in_a_row(*[(f"e{i}", "Mul", 0.01) for i in range(900)]))


def test_an_op_that_was_fast_in_another_trace_does_not_fill_a_usual_step() -> None:
    """A judge read "One op, truediv_5, runs for 4.45 ms: 48% of a usual step": it was held up, as in a third trace."""
    rest = [("m0", "MatMul", 1.0), ("m1", "MatMul", 1.0)]
    context = TraceContext(step_s=0.0226, median_s=0.0093, began_at=1e9, fastest_traced_s=0.0204, lock_holder="thread vocabulary")
    traces = [[*rest, ("d", "RealDiv", ms)] for ms in (4.45, 0.01, 25.0)]
    flops = {name: 1e6 for name, _, _ in traces[0]}
    assert "one_op" not in codes_over(traces, flops, context)
    assert "one_op" in codes_over(traces[:1], flops, context)


def test_an_op_on_scalars_that_took_long_was_delayed_and_reads_no_whole_tensor() -> None:
    """A judge read "Pow 8%" of eight scalars, one of them held up for 2.99 ms."""
    trace = make_trace(in_a_row(*matmuls(4, 1), *[(f"e{i}", "Mul", 1.0) for i in range(6)], ("p", "Pow", 3.0)))
    traffic = np.array([1e6] * 10 + [12])
    known = Arithmetic(np.full(11, 1e6), traffic, np.ones(11, bool), np.full(11, FLOAT))
    answer = verdict(trace, TraceContext(), [], load_arithmetic=lambda: known)["sentences"]
    (text,) = [sentence["text"] for sentence in answer if sentence["code"] == "elementwise"]
    assert "take 46% of the op time (Mul 46%; 6 ms)" in text


# ------------------------------------------------------------------------------------------------- the update of tables

LOOKUP = N("lookup", "ResourceGather", 0, MS, inputs=("table", "ids"))


def test_an_update_of_all_rows_beside_a_scatter_of_some() -> None:
    update = [
        N("Adam/update/ReadVariableOp", "ReadVariableOp", MS, 3 * MS, inputs=("table/m",)),
        N("Adam/update/mul", "Mul", 3 * MS, 6 * MS),
        N("Adam/update/AssignVariableOp", "AssignVariableOp", 6 * MS, 8 * MS),
        N("Adam/update/ResourceScatterAdd", "ResourceScatterAdd", 8 * MS, 8 * MS + 5_000, inputs=("table/m", "ids")),
        N("m", "MatMul", 8 * MS, 10 * MS),
    ]
    found = sentences([LOOKUP, *update])
    assert "The update of Adam/update works on all rows" in found["dense_update"]["text"]
    assert "70% of the op time (Mul 30%, ReadVariableOp 20%, AssignVariableOp 20%; 7 ms)" in found["dense_update"]["text"]
    assert "elementwise" not in found
    assert "SGD, Adagrad, or a lazy Adam" in found["dense_update"]["advice"]
    by_sgd = [dataclasses.replace(node, name=node.name.replace("Adam", "SGD")) for node in update]
    assert "alone: Adagrad, or a lazy Adam" in sentences([LOOKUP, *by_sgd])["dense_update"]["advice"]
    plain = {"AssignVariableOp": "Assign", "ResourceScatterAdd": "ScatterAdd", "ReadVariableOp": "Sqrt"}
    of_reference = [dataclasses.replace(node, op=plain.get(node.op, node.op)) for node in update]
    gather = dataclasses.replace(LOOKUP, op="GatherV2")
    assert "The update of Adam/update works on all rows" in sentences([gather, *of_reference])["dense_update"]["text"]


def test_an_update_of_the_looked_up_rows_alone() -> None:
    update = [
        N("SGD/update/UnsortedSegmentSum", "UnsortedSegmentSum", MS, 5 * MS),
        N("SGD/update/ResourceScatterSub", "ResourceScatterSub", 5 * MS, 9 * MS, inputs=("table", "ids")),
    ]
    assert "dense_update" not in sentences([LOOKUP, *update])


def test_what_an_update_computes_with_the_looked_up_rows_is_no_work_on_all_rows() -> None:
    """SGD of a session: 128,000 ids of 5,000 rows; only the count of steps is assigned."""
    update = [
        N("SGD/update/mul", "Mul", MS, 4 * MS),
        N("SGD/update/Neg", "Neg", 4 * MS, 7 * MS),
        N("SGD/update/ResourceScatterAdd", "ResourceScatterAdd", 7 * MS, 9 * MS, inputs=("table", "ids")),
        N("SGD/update/AssignAddVariableOp", "AssignAddVariableOp", 9 * MS, 9 * MS + 2_000),
    ]
    assert "dense_update" not in sentences([LOOKUP, *update])


@pytest.mark.parametrize(("read_whole", "expected"), [(False, True), (True, False)])
def test_a_dense_gradient_of_a_table(read_whole: bool, expected: bool) -> None:
    """Silent where the whole table is used: a transformer's logits are a product with it."""
    apply = N("Adam/ResourceApplyAdam", "ResourceApplyAdam", MS, 8 * MS, inputs=("table", "table/m"))
    read = N("logits/ReadVariableOp", "ReadVariableOp", 8 * MS, 8 * MS + 2_000, inputs=("table" if read_whole else "other",))
    found = sentences([LOOKUP, apply, read]).get("dense_update")
    assert (found is not None) == expected
    assert found is None or "The update of table works on all rows" in found["text"]


# ------------------------------------------------------------------------------------------------------ use of the CPUs


def used(**changes: float) -> TraceContext:
    use = {"wall_s": 0.01, "cpu_s": 0.036, "busiest_thread_s": 0.01, "run_queue_s": 0.001, "cpus": 4.0, **changes}
    use.setdefault("job_cpu_s", use["cpu_s"])
    return TraceContext(cpu_use=CpuUse(**use))  # type: ignore[typeddict-item]


def test_a_busy_machine() -> None:
    found = sentences(in_a_row(*matmuls(10, 1)), used(cpu_s=0.010, run_queue_s=0.025))["busy_machine"]
    assert (
        found["text"].startswith("The machine was busy: your threads waited for a CPU for most of the time in which")
        and "25 ms, summed over all threads, in the 10 ms around the step" in found["text"]
        and "used 1 of the 4 CPUs" in found["text"]
    )
    assert found["share"] == pytest.approx(25 / 35)


def test_a_python_function_that_waited_for_a_cpu_counts_with_what_a_busy_machine_took() -> None:
    """Its thread slept, and was to run again: nothing of TensorFlow computes then."""
    nodes = [N("py", "EagerPyFunc", 0, 9 * MS, kind=NodeKind.INPUT), N("m", "MatMul", 9 * MS, 10 * MS)]
    assert sentences(nodes, used(cpu_s=0.010, run_queue_s=0.025))["busy_machine"]["share"] == pytest.approx(25 / 35)


def test_kernels_of_one_name_on_several_gpus_are_not_said_to_be_of_one() -> None:
    gpus = [f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(3)]
    nodes = [N("k", "MatMul", i * MS, (i + 3) * MS, gpu) for i, gpu in enumerate(gpus)]
    (found,) = [s for s in verdict(make_trace(nodes), TraceContext(), [])["sentences"] if s["code"] == "one_op"]
    assert "on 3 devices (" in found["text"] and "counted once where they run at once), runs for 5 ms" in found["text"]
    assert "run on a GPU" not in found["advice"]


def test_ops_through_which_hardly_a_byte_passes_are_held_up_and_not_bound_by_memory() -> None:
    """The turns of a loop on a busy machine: additions of four numbers that were interrupted."""
    trace = make_trace(in_a_row(*[(f"a{i}", "AddV2", 1.0) for i in range(20)]))
    for size, is_named in ((16.0, False), (1e6, True)):
        known = Arithmetic(np.ones(20), np.full(20, size), np.zeros(20, bool), np.full(20, FLOAT))
        found = verdict(trace, TraceContext(), [], load_arithmetic=lambda known=known: known)["sentences"]  # type: ignore[misc]
        assert ("elementwise" in [s["code"] for s in found]) == is_named


@pytest.mark.parametrize(("op", "code"), [("Relu", "elementwise"), ("_MklTranspose", "layout")])
def test_ops_that_wait_for_their_threads_on_a_busy_machine_are_not_what_a_step_is_bound_by(op: str, code: str) -> None:
    """Twenty ops that move 0.8 MB each in 2 ms, beside products that take 20 ms: unhindered they take 4 ms, less in the cache."""
    trace = make_trace(in_a_row(*[(f"a{i}", op, 2.0) for i in range(20)], *[(f"m{i}", "MatMul", 1.0) for i in range(20)]))
    known = Arithmetic(np.ones(40), np.full(40, 8e5), np.zeros(40, bool), np.full(40, FLOAT))
    for context, is_named in ((used(), True), (used(wall_s=0.060, cpu_s=0.030, run_queue_s=0.150, cpus=2.0), False)):
        found = verdict(trace, context, [], load_arithmetic=lambda: known)["sentences"]
        assert (code in [s["code"] for s in found]) == is_named, found


def test_one_op_that_was_held_up_is_no_work_for_several_threads() -> None:
    """A slice of 60 µs took 53 ms: the step ran on one thread since it waited."""
    one = used(wall_s=0.060, cpu_s=0.050, busiest_thread_s=0.049)
    usual, held_up = ([("slice", "StridedSlice", ms), *matmuls(7, 1)] for ms in (0.06, 53.0))
    flops = {name: 1e6 for name, _, _ in usual}
    assert "one_core" in codes_over([held_up] * 4, flops, one)
    assert "one_core" not in codes_over([held_up, *[usual] * 3], flops, one)


def test_reductions_are_not_called_elementwise_ops() -> None:
    kinds = ("Sum", "Max", "Min", "Prod", "Any")
    found = sentences(in_a_row(*matmuls(5, 1), *[(f"s{i}", kinds[i % 5], 1.0) for i in range(10)]))["elementwise"]
    assert found["text"].startswith("Reductions take") and found["numbers"]["executions"] == 10
    assert "On a CPU that may take longer instead: measure it." in found["advice"]
    both = [(f"s{i}", "Sum" if i % 2 else "AddV2", 1.0) for i in range(10)]
    assert sentences(in_a_row(*matmuls(5, 1), *both))["elementwise"]["text"].startswith("Elementwise ops and reductions take")


def test_xla_is_not_advised_for_a_single_op() -> None:
    one = [("add", "AddV2", 6.0), *matmuls(4, 1)]
    flops = {name: 1e6 for name, _, _ in one}
    assert "XLA" not in codes_over([one] * 4, flops)["elementwise"]["advice"]


def test_a_gradient_that_becomes_dense_is_named_where_no_label_tells_the_table() -> None:
    """A compiled function: the gradient of some rows becomes one of all rows, which an op then applies."""
    nodes = in_a_row(
        ("rows", "ResourceGather", 0.1), ("segments", "UnsortedSegmentSum", 3.0), ("apply", "ResourceApplyAdam", 6.0)
    )
    found = sentences(nodes)["dense_update"]
    assert found["text"].startswith("The gradient of a table becomes dense: ")
    assert "IndexedSlices" in found["advice"] and found["share"] == pytest.approx(9.0 / 9.1)
    again = in_a_row(
        ("rows", "ResourceGather", 0.1),
        ("Adam/Unique", "Unique", 0.1),
        ("Adam/sum", "UnsortedSegmentSum", 3.0),
        ("m", "MatMul", 6.0),
    )
    assert "dense_update" not in sentences(again)


def test_a_regularizer_of_a_whole_table_makes_its_gradient_dense() -> None:
    """The sum of both gradients is dense, since one of them is of the whole table: of the norm, or of a product with it."""
    nodes = [("rows", "ResourceGather", 0.4), ("sum", "UnsortedSegmentSum", 32.0), ("add", "AddN", 20.0)]
    assert "dense_update" in sentences(in_a_row(*nodes, ("norm", "L2Loss", 20.0)))
    assert "dense_update" not in sentences(in_a_row(*nodes, ("logits", "MatMul", 20.0)))


def test_of_a_table_that_is_read_whole_the_optimizer_tells_that_its_gradient_became_dense() -> None:
    """Keras 3 looks rows up in the table's value; sums of segments are a dense gradient only where a variable is updated."""
    looked_up = ("embedding/GatherV2", "GatherV2", 0.1)
    update = [("adam/UnsortedSegmentSum", "UnsortedSegmentSum", 6.0), ("adam/AssignSubVariableOp", "AssignSubVariableOp", 2.0)]
    assert "dense_update" in sentences(in_a_row(looked_up, *update, ("m", "MatMul", 1.0)))
    messages = ("graph/UnsortedSegmentSum", "UnsortedSegmentSum", 6.0)
    assert "dense_update" not in sentences(in_a_row(looked_up, messages, update[1], ("m", "MatMul", 1.0)))


def dataflow(*ops: tuple[str, str, float, str]) -> list[N]:
    """(name, type, ms, what it reads): one after the other."""
    nodes = in_a_row(*(op[:3] for op in ops))
    return [dataclasses.replace(node, inputs=tuple(op[3].split())) for node, op in zip(nodes, ops)]


@pytest.mark.parametrize(("gradient", "expected"), [("Mul", True), ("MatMul", False)])
def test_a_regularizer_whose_gradient_is_made_of_products_with_the_table(gradient: str, expected: bool) -> None:
    """Keras 3: no L2Loss; the sum of segments lies outside the optimizer, which AddN and a product lead to. A product of matrices
    (logits that are computed with the table) is dense in any case."""
    nodes = dataflow(
        ("embedding/GatherV2", "GatherV2", 0.1, "table"),
        ("gradient/Tile", "Tile", 3.0, "one"),
        ("gradient/product", gradient, 3.0, "gradient/Tile table"),
        ("AddN/inputs_1", "UnsortedSegmentSum", 3.0, "embedding/GatherV2 ids"),
        ("AddN", "AddN", 2.0, "gradient/product AddN/inputs_1"),
        ("sgd/Mul", "Mul", 1.0, "AddN rate"),
        ("sgd/AssignSubVariableOp", "AssignSubVariableOp", 2.0, "sgd/Mul"),
    )
    found = sentences(nodes).get("dense_update")
    assert (found is not None) == expected
    assert found is None or ("UnsortedSegmentSum 21%" in found["text"] and found["numbers"]["dense_ns"] == 8 * MS)


def test_an_update_with_a_momentum_belongs_to_the_dense_gradient_whole() -> None:
    """The momentum decays by an op that reads no gradient, and is assigned by a short one that hands it on."""
    nodes = dataflow(
        ("rows", "ResourceGather", 0.1, "table"),
        ("sgd/UnsortedSegmentSum", "UnsortedSegmentSum", 1.0, "rows"),
        ("sgd/velocity", "ReadVariableOp", 0.005, "v"),
        ("sgd/Mul", "Mul", 3.0, "sgd/velocity momentum"),
        ("sgd/Sub", "Sub", 1.0, "sgd/Mul sgd/UnsortedSegmentSum"),
        ("sgd/AssignVariableOp", "AssignVariableOp", 0.01, "v sgd/Sub"),
        ("sgd/ReadVariableOp", "ReadVariableOp", 0.005, "sgd/AssignVariableOp"),
        ("sgd/AssignAddVariableOp", "AssignAddVariableOp", 4.0, "table sgd/ReadVariableOp"),
    )
    assert sentences(nodes)["dense_update"]["numbers"]["dense_ns"] == 9 * MS


def test_messages_that_a_product_follows_are_no_gradient_of_a_table() -> None:
    """A graph network adds up what neighbours send; a product stands between that and the variable that is updated."""
    nodes = dataflow(
        ("messages/GatherV2", "GatherV2", 0.1, "nodes"),
        ("messages/UnsortedSegmentSum", "UnsortedSegmentSum", 6.0, "messages/GatherV2 ids"),
        ("dense/MatMul", "MatMul", 1.0, "messages/UnsortedSegmentSum kernel"),
        ("sgd/AssignSubVariableOp", "AssignSubVariableOp", 0.5, "dense/MatMul"),
    )
    assert "dense_update" not in sentences(nodes)


def test_an_update_counts_whole_where_it_reads_a_variable_that_it_has_assigned() -> None:
    """Keras 3's Adam: the moments are assigned, read again, and applied."""
    nodes = dataflow(
        ("embedding/GatherV2", "GatherV2", 0.1, "table"),
        ("adam/UnsortedSegmentSum", "UnsortedSegmentSum", 3.0, "embedding/GatherV2 ids"),
        ("adam/AssignAddVariableOp", "AssignAddVariableOp", 3.0, "adam/UnsortedSegmentSum"),
        ("adam/Mul/ReadVariableOp", "ReadVariableOp", 0.001, "adam/AssignAddVariableOp"),
        ("adam/Mul", "Mul", 4.0, "adam/Mul/ReadVariableOp"),
        ("m", "MatMul", 10.0, "x"),
    )
    assert sentences(nodes)["dense_update"]["numbers"]["dense_ns"] == 10 * MS


def test_on_a_busy_machine_the_headline_says_what_computes_and_that_it_was_busy() -> None:
    answer = verdict(make_trace(in_a_row(*matmuls(10, 1))), used(cpu_s=0.010, run_queue_s=0.025), [])
    assert [s["code"] for s in answer["sentences"]] == ["balanced", "busy_machine"]
    assert "100% compute" in headline(answer) and headline(answer).endswith("The machine was busy.")


def test_a_busy_machine_is_no_reason_to_wait_for_input() -> None:
    nodes = [
        N("in", "IteratorGetNext", 0, 6 * MS, kind=NodeKind.INPUT),
        *[N(f"m{i}", "MatMul", (6 + i) * MS, (7 + i) * MS) for i in range(4)],
    ]
    found = sentences(nodes, used(cpu_s=0.010, run_queue_s=0.025))
    assert list(found) == ["input_bound", "busy_machine"]
    assert found["busy_machine"]["share"] == pytest.approx(0.4 * 25 / 35)


def test_a_busy_machine_is_named_behind_what_takes_the_time() -> None:
    found = sentences(
        in_a_row(*matmuls(5, 1), *[(f"t{i}", "Transpose", 1.0) for i in range(5)]), used(cpu_s=0.005, run_queue_s=0.035)
    )
    assert list(found) == ["layout", "busy_machine"]
    assert found["busy_machine"]["share"] > found["layout"]["share"]


@pytest.mark.parametrize(
    "changes",
    [
        {},  # it used nearly all CPUs
        {"run_queue_s": 0.500},  # its own threads wait for each other: there are no other CPUs
        {"cpu_s": 0.020, "run_queue_s": 0.006},  # it had to wait for less than a third of what it needed
        {"cpu_s": 0.001, "busiest_thread_s": 0.001, "run_queue_s": 0.002},  # the step waits for something else
        {"wall_s": 0.008, "cpu_s": 0.008, "run_queue_s": 0.020},  # too short to tell
        {"cpu_s": 0.010, "run_queue_s": 0.025, "job_cpu_s": 0.037},  # it is the tracer, or a process of the script's
    ],
)
def test_a_machine_that_is_not_busy_with_other_work(changes: dict[str, float]) -> None:
    assert sentences(in_a_row(*matmuls(10, 1)), used(**changes)).keys() == {"balanced"}


ONE = {"cpu_s": 0.0105, "busiest_thread_s": 0.0095}


def test_one_core_of_many() -> None:
    found = sentences(in_a_row(*matmuls(10, 1)), used(**ONE))["one_core"]
    assert "One thread used 90% of the CPU time of this step: the process may use 4 CPUs" in found["text"]
    assert "intra_op_parallelism_threads" in found["advice"] and found["share"] == pytest.approx(0.75)


def test_threads_that_work_in_turns_are_no_more_than_one() -> None:
    """A MonitoredTrainingSession with one thread for ops: two threads take turns."""
    found = sentences(in_a_row(*matmuls(10, 1)), used(cpu_s=0.010, busiest_thread_s=0.0052, run_queue_s=0.0002))["one_core"]
    assert "On average 1.0 threads of the process ran, or were ready to, in this step: the process may use 4" in found["text"]


@pytest.mark.parametrize(
    ("nodes", "changes"),
    [
        (in_a_row(*matmuls(10, 1)), {"cpu_s": 0.014, "busiest_thread_s": 0.008}),  # two threads worked
        (in_a_row(*matmuls(10, 1)), {"run_queue_s": 0.015}),  # others were ready, too: a busy machine
        (in_a_row(*matmuls(10, 1)), {"cpus": 1.0}),
        (in_a_row(*matmuls(10, 1)), {"cpu_s": 0.003, "busiest_thread_s": 0.003}),  # the step waits for something else
        (in_a_row(*matmuls(100, 0.1)), {}),  # no op has work for several threads
        (in_a_row(*matmuls(3, 1)), {}),  # TensorFlow collected the trace for most of the time
        (in_a_row(("m", "MatMul", 10), device=GPU) + in_a_row(("m", "MatMul", 10), device=STREAM), {}),
        ([N("in", "IteratorGetNext", 0, 6 * MS, kind=NodeKind.INPUT), N("m", "MatMul", 6 * MS, 10 * MS)], {}),
    ],
)
def test_one_thread_is_enough_for_some_steps(nodes: list[N], changes: dict[str, float]) -> None:
    assert "one_core" not in sentences(nodes, used(**{**ONE, **changes}))


def test_nothing_is_said_of_cpus_that_were_not_recorded() -> None:
    for context in (TraceContext(), TraceContext(cpu_use=CpuUse(wall_s=0.01, cpu_s=0.001, cpus=64.0))):
        assert sentences(in_a_row(*matmuls(10, 1)), context).keys() == {"balanced"}


def test_a_device_stays_idle_for_another_reason_than_what_its_ops_do() -> None:
    nodes = [
        *in_a_row(*matmuls(4, 0.1), ("t0", "Transpose", 0.2), ("t1", "Transpose", 0.2)),
        N("end", "MatMul", 10 * MS, 11 * MS),
    ]
    nodes += [N(f"u{i}", "Transpose", (11 + i) * MS, (12 + i) * MS) for i in range(2)]
    assert list(sentences(nodes)) == ["idle_device", "layout"]


def test_an_op_that_takes_most_of_usual_steps_too_is_not_said_to_be_held_up_alone() -> None:
    usual = [("svd", "Svd", 10.0), ("a", "AddV2", 1.0)]
    found = codes_over([[("svd", "Svd", 60.0), ("a", "AddV2", 1.0)], *[usual] * 3], {"svd": 1e6, "a": 1e6})
    text = found["one_op"]["text"]
    assert (
        "(in most traced steps of the run it takes about 10 ms): 98% of the step." in text
        and "held_up_ns" not in found["one_op"]["numbers"]
    )


def test_the_longest_op_without_delays_is_none_that_is_far_above_its_sisters() -> None:
    """A judge read "Without what was held up, the longest op, Abs_32/mul (Mul), runs for 8.12 ms"; its 363 sisters took 32 µs."""
    sisters = [(f"mul{i}", "Mul", 0.03) for i in range(20)]
    usual = [*sisters, ("c", "Conv2D", 0.5), ("s", "Svd", 0.4), ("t", "Cumsum", 0.3), ("a", "ReluGrad", 0.3), ("d", "Tile", 0.3)]
    delayed = [(name, op, 1.6 if op in ("Svd", "Cumsum", "ReluGrad", "Tile") else ms) for name, op, ms in usual]
    flops = {name: 1e6 for name, _, _ in usual}
    held_up = [("mul9", "Mul", 0.9) if name == "mul9" else (name, op, ms) for name, op, ms in delayed]
    held_up_there = [("mul9", "Mul", 0.9) if name == "mul9" else (name, op, ms) for name, op, ms in usual]
    text = codes_over([held_up, held_up_there, usual], flops, TraceContext())["balanced"]["text"]
    assert "the longest op" not in text and "and 1 more type, which were held up," in text
