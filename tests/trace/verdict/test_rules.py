"""The verdict's rules on steps written down for them: each names its cause, just above its threshold and not below."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_steps import recorded
from traces import CPU, GPU, H2D, PS, STREAM, WORKER, N, make_trace, received

from tftracer.trace.analyses.budget import activities
from tftracer.trace.analyses.ops import op_statistics, work_of
from tftracer.trace.analyses.over_traces import OpTotals, over_traces
from tftracer.trace.answers import Answers
from tftracer.trace.decode.profile_function_calls import FunctionCall
from tftracer.trace.model import FedCopy, FedValue, NodeKind, SlowTime, TraceContext
from tftracer.trace.verdict import verdict as verdict_
from tftracer.trace.verdict.rules.feeds_and_fetches import around_ops
from tftracer.trace.verdict.time_around_ops import around
from tftracer.trace.verdict.verdict import headline, step_of, verdict

MS = 1_000_000


def sentences(nodes: list[N], context: TraceContext | None = None) -> list[Any]:
    answer = verdict(make_trace(nodes), context or TraceContext(), [])
    shares = [
        s["share"] for s in answer["sentences"] if s["code"] not in ("tracing_cost", "slow_step", "between_steps", "short_step")
    ]
    assert shares == sorted(shares, reverse=True) and all(0 <= s <= 1 for s in shares)
    for sentence in answer["sentences"]:
        assert sentence["text"] and sentence["advice"] and len(sentence["evidence"]["nodes"]) <= 50
    return list(answer["sentences"])


def codes(nodes: list[N], context: TraceContext | None = None) -> list[str]:
    return [s["code"] for s in sentences(nodes, context)]


def matmuls(start: int, end: int, device: str = CPU, count: int = 10) -> list[N]:
    """Equal ops one after the other, none of which stands out."""
    size = (end - start) // count
    return [N(f"m{i}", "MatMul", start + i * size, start + (i + 1) * size, device) for i in range(count)]


def test_nothing_stands_out() -> None:
    (only,) = sentences(matmuls(0, 10 * MS))
    assert only["code"] == "balanced"
    assert only["numbers"]["compute_ns"] == 10 * MS
    assert "m0 (MatMul), runs for 10% of the step" in only["text"]
    assert "MatMul, with 100% of the total op time" in only["text"]


def test_the_headline_says_what_shares_are_of_if_that_is_less_than_the_listed_time_of_the_step() -> None:
    def end(nodes: list[N], step_s: float) -> str:
        return headline(verdict(make_trace(nodes), TraceContext(step_s=step_s), []))

    assert end(matmuls(0, 10 * MS), 0.012).endswith(" Shares of the step are of the 10 ms from its first op to its last.")
    assert "Shares" not in end(matmuls(0, 10 * MS), 0.0104)
    assert end([N("m", "MatMul", 0, 10 * MS)], 0.012).endswith("100% of the time from the step's first op to its last.")


def test_the_largest_op_type_has_the_share_that_the_table_of_ops_shows() -> None:
    """Ops of one type that run at once: 75% of the op time, though no single op runs for more than a third of the step."""
    nodes = [*matmuls(0, 9 * MS), *matmuls(0, 9 * MS), *[N(f"c{i}", "Conv2D", i * 3 * MS, (i + 1) * 3 * MS) for i in range(2)]]
    trace = make_trace(nodes)
    (only,) = verdict(trace, TraceContext(), [])["sentences"]
    row = op_statistics(trace, "type", [])["rows"][0]
    assert f"{row['key']}, with {row['share']:.0%} of the total op time" in only["text"]


@pytest.mark.parametrize(("waits", "expected"), [(2 * MS, ["balanced"]), (4 * MS, ["input_bound"])])
def test_input_in_the_step(waits: int, expected: list[str]) -> None:
    nodes = [N("next", "IteratorGetNext", 0, waits, kind=NodeKind.INPUT), *matmuls(waits, waits + 10 * MS)]
    stated = sentences(nodes)
    assert [s["code"] for s in stated] == expected
    if expected == ["input_bound"]:
        assert "IteratorGetNext" in stated[0]["text"] and stated[0]["evidence"]["nodes"] == [0]
        assert stated[0]["share"] == pytest.approx(4 / 14)


@pytest.mark.parametrize(("between", "expected"), [(0.002, ["balanced"]), (0.005, ["between_steps"]), (None, ["balanced"])])
def test_time_outside_session_run(between: float | None, expected: list[str]) -> None:
    context = TraceContext(median_s=0.010, between_steps_s=between)
    assert codes(matmuls(0, 10 * MS), context) == expected


@pytest.mark.parametrize(("feeds", "words"), [(0, "it feeds nothing"), (3, "what it feeds"), (None, "what it feeds")])
def test_of_time_outside_session_run_no_cause_is_claimed(feeds: int | None, words: str) -> None:
    context = TraceContext(median_s=0.010, between_steps_s=0.005, before_step_s=0.350, feeds=feeds)
    (only,) = sentences(matmuls(0, 10 * MS), context)
    assert "The trace does not show what the script does: maybe" in only["text"] and words in only["text"]
    assert "5 ms (median)" in only["text"] and "before this step it was 350 ms" in only["text"]
    assert only["evidence"] == {"nodes": []}  # there is nothing on the timeline to be shown


def test_sentences_about_a_compiled_step_do_not_speak_of_session_run() -> None:
    trace = make_trace(matmuls(0, 10 * MS))
    trace.source = "xspace"
    context = TraceContext(step_s=0.510, median_s=0.010, between_steps_s=0.005, feeds=0)
    said = " ".join(s["text"] + s["advice"] for s in verdict(trace, context, [])["sentences"])
    assert "Between two steps 5 ms (median) pass, 33%" in said and "preparing the next batch" in said
    assert "session.run" not in said and "feeds" not in said


def test_in_a_long_step_the_usual_pause_between_steps_is_no_headline() -> None:
    """A step of 700 ms in a run whose steps take 2 ms, with 10 ms between them."""
    context = TraceContext(step_s=0.7, median_s=0.002, between_steps_s=0.010, before_step_s=0.010)
    assert codes(matmuls(0, 700 * MS), context)[0] == "balanced"
    assert codes(matmuls(0, 2 * MS), context)[0] == "between_steps"


def test_sentences_are_ranked_by_what_would_go_away_of_this_step() -> None:
    context = TraceContext(median_s=0.010, between_steps_s=0.007, before_step_s=0.007)
    one_op = [N("m", "MatMul", 0, 9 * MS), N("n", "MatMul", 9 * MS, 10 * MS)]
    assert codes(one_op, context) == ["one_op", "between_steps"]


def test_a_headline_does_not_deny_itself() -> None:
    """Most of the step is spent otherwise than computing, and no rule knows why."""
    text = sentences([N("a", "MatMul", 0, MS), N("b", "MatMul", 9 * MS, 10 * MS, "/job:worker/replica:0/task:0/device:GPU:0")])[
        0
    ]["text"]
    assert "Nothing stands out" not in text


@pytest.mark.parametrize(("cast_ms", "stands_out"), [(7, True), (4, False)])
def test_a_type_of_ops_that_takes_a_third_of_the_op_time_stands_out(cast_ms: int, stands_out: bool) -> None:
    """Keras's cast of uint8 images took 43% of the op time, of which it was said that nothing stands out."""
    nodes = [N("cast", "Cast", 0, cast_ms * MS)]
    for op in ("Conv2D", "MaxPool", "ResizeBilinear", "MatMul"):
        nodes.append(N(op, op, nodes[-1].end, nodes[-1].end + 3 * MS))
    (only,) = sentences(nodes)
    assert only["code"] == "balanced" and "The largest op types are Cast (with" in only["text"]
    assert ("Nothing stands out" not in only["text"]) == stands_out


def test_nearly_half_of_a_step_outside_its_ops_stands_out() -> None:
    text = sentences(matmuls(0, 27 * MS), TraceContext(step_s=0.05, median_s=0.05))[0]["text"]
    assert text.startswith("The step is 54% compute, 46% outside the recorded ops: before the first and after the last.")


@pytest.mark.parametrize(("title", "waits"), [("fit: net", True), ("train_step", False)])
def test_time_outside_of_ops_may_be_the_wait_of_a_keras_step_for_its_batch(title: str, waits: bool) -> None:
    trace = make_trace(matmuls(0, 5 * MS))
    (first, *_) = verdict(trace, TraceContext(step_s=0.05, median_s=0.05, title=title), [])["sentences"]
    assert "is outside the recorded ops" in first["text"]
    assert ("the step waits for its batch" in first["text"]) == ("prefetch" in first["advice"]) == waits


def test_an_empty_trace_is_asked_every_rule() -> None:
    context = TraceContext(step_s=0.001, median_s=0.001, between_steps_s=0.050, before_step_s=0.050)
    (only,) = verdict(make_trace([]), context, [])["sentences"]
    assert only["code"] == "between_steps"
    assert verdict(make_trace([]), TraceContext(), [])["sentences"][0]["text"] == "The trace holds no ops."


def fed(name: str, dtype: str, shape: list[int], size: int | None, tensor_dtype: str = "", copied: FedCopy = "") -> FedValue:
    return {"name": name, "dtype": dtype, "shape": shape, "bytes": size, "tensor_dtype": tensor_dtype, "copied": copied}


def test_a_session_whose_time_goes_into_its_feeds() -> None:
    values = [fed("x:0", "float32", [50_000_000], 200_000_000)]
    context = TraceContext(step_s=0.0236, median_s=0.0236, feeds=1, fed=values, began_at=0.0)
    (only,) = sentences(matmuls(0, MS // 5), context)
    assert only["code"] == "around_ops" and only["share"] == pytest.approx(23.4 / 23.6)
    assert "session.run takes 23.6 ms, and its ops 200 µs of that" in only["text"]
    assert "fed 200 MB in 1 value; the largest is x:0: float32 [50000000]" in only["text"] and "tf.data" in only["advice"]


def of_feeds(*values: FedValue) -> Any:
    context = TraceContext(step_s=0.0236, median_s=0.0236, feeds=len(values), fed=list(values), began_at=0.0)
    (only,) = sentences(matmuls(0, MS // 5), context)
    assert only["code"] == "around_ops"
    return only


def test_arrays_of_another_type_than_their_tensors() -> None:
    first = fed("x:0", "float64", [6250, 1000], 50_000_000, "float32")
    alone = of_feeds(first)
    assert "First, x:0 is converted from float64 to float32." in alone["text"]
    assert alone["advice"].startswith("Make the array float32 from the start, or convert it once before the loop (astype).")
    both = of_feeds(first, fed("y:0", "int64", [1000], 8_000, "int32"))
    assert "First, x:0 is converted from float64 to float32, and 1 other like it." in both["text"]


@pytest.mark.parametrize(
    "value",
    [
        fed("x:0", "float32", [6250, 1000], 25_000_000, "float32"),  # of the same type
        fed("x:0", "float64", [6250, 1000], 50_000_000),  # its tensor's type is not known, as in older files
        fed("words:0", "string", [30_000], None, "string"),
    ],
)
def test_what_is_not_known_to_be_converted(value: FedValue) -> None:
    found = of_feeds(value)
    assert "converted" not in found["text"] and "astype" not in found["advice"]


def test_few_bytes_of_another_type_are_not_what_takes_the_time() -> None:
    large = fed("x:0", "float32", [6250, 1000], 25_000_000, "float32")
    assert "converted" not in of_feeds(large, fed("n:0", "int64", [10], 80, "int32"))["text"]


def test_arrays_that_are_copied_since_they_are_in_another_order_or_in_a_list() -> None:
    order = of_feeds(fed("x:0", "float32", [6250, 1000], 25_000_000, "float32", "order"))
    assert "First, x:0 is brought into C order." in order["text"] and "np.ascontiguousarray" in order["advice"]
    listed = of_feeds(fed("x:0", "float32", [32, 200, 1000], 25_600_000, "float32", "list"))
    assert "First, x:0 is put together from a list of 32 arrays." in listed["text"] and "np.stack" in listed["advice"]


def test_values_of_pythons_that_become_a_tensor_of_numbers() -> None:
    for kind in ("list", "object"):
        found = of_feeds(fed("x:0", kind, [625, 1000], None, "float32"))
        assert "It is fed 625,000 Python values" in found["text"]
        assert "Feed NumPy arrays of the tensor's type (float32)" in found["advice"]


def test_a_session_that_is_fed_strings() -> None:
    context = TraceContext(step_s=0.0019, median_s=0.0019, feeds=1, fed=[fed("words:0", "string", [30_000], None)])
    (only,) = sentences([N("size", "Size", 0, 15_000), N("cast", "Cast", 16_000, 26_000)], context)
    assert only["code"] == "around_ops" and "30,000 strings" in only["text"]
    assert "converted one by one" in only["advice"]


def test_what_passes_before_the_first_op_is_told_where_beginning_the_trace_is_no_large_part_of_it() -> None:
    """A step of 620 µs that fetches 50,000 strings. Traced, it began its first op after 419 µs once and after 122 µs the next
    time: the rest is the trace's."""
    trace = make_trace([N("read", "ReadVariableOp", 0, 60_000), N("copy", "Identity", 60_000, 75_000)])
    trace.origin_ns = 419_000 + 10**18

    def text(took: float) -> str:
        context = TraceContext(step_s=took, median_s=0.00062, feeds=0, fed=[], began_at=1e9)
        return str(verdict(trace, context, [])["sentences"][0]["text"])

    assert "545 µs (88%) pass before the first op and after the last, where" in text(0.0012)
    assert "545 µs (88%) pass before the first op and after the last (419 µs before the first op), where" in text(0.00064)


def slow_step_that_began_late(fed: list[FedValue]) -> list[Any]:
    """70 ms pass before the first op of a step of 102 ms. Usual steps take 20 ms."""
    trace = make_trace(matmuls(0, 31 * MS))
    trace.origin_ns = 70 * MS + 10**18
    context = TraceContext(step_s=0.102, median_s=0.020, feeds=len(fed), fed=fed, began_at=1e9, fastest_traced_s=0.021)
    return verdict(trace, context, [])["sentences"]


def test_a_slow_step_whose_time_passes_before_its_first_op() -> None:
    """What it took more than usual is not tracing's: beginning a trace takes 5 ms at most."""
    found = slow_step_that_began_late([fed("x:0", "float64", [60_000, 200], 96_000_000)])[0]
    assert found["code"] == "around_ops" and "fed 96 MB" in found["text"]
    assert "session.run takes at least 96 ms, usually 20 ms, and its ops 31 ms of that: 65 ms (68%)" in found["text"]
    first = slow_step_that_began_late([])[0]
    assert first["code"] == "balanced" and first["text"].startswith("Most of the step, 68% of 96 ms, is outside the recorded ops")
    assert "hooks run, or the thread waits for a CPU or for Python's lock; the trace does not show which." in first["text"]
    assert first["text"].endswith("untraced steps take 20 ms in all: most of the time outside the ops is not in them.")


@pytest.mark.parametrize(("took", "usual", "first"), [(7.5, 3.2, "layout"), (7.5, 7.4, "balanced"), (95.0, 3.2, "balanced")])
def test_time_before_the_first_op_comes_first_where_it_is_usual_or_made_the_step_slow(
    took: float, usual: float, first: str
) -> None:
    """A step that took twice as long as usual by it is bound by what usual steps are bound by."""
    nodes = [N(f"t{i}", "Transpose", i * MS // 10, (i + 1) * MS // 10) for i in range(20)]
    trace = make_trace(nodes)
    trace.origin_ns = int((took - 2) * MS) + 10**18
    context = TraceContext(step_s=took / 1e3, median_s=usual / 1e3, began_at=1e9, fastest_traced_s=0.004)
    assert verdict(trace, context, [])["sentences"][0]["code"] == first


def test_threads_that_lacked_cpus_are_no_reason_for_what_passes_before_the_first_op() -> None:
    """TensorFlow's threads have nothing to do then. The step's own thread may have lacked one."""
    trace = make_trace(matmuls(0, 16 * MS))
    trace.origin_ns = 75 * MS + 10**18
    for whose, code in (("any", "balanced"), ("", "balanced"), ("own", "slow_step")):  # "": a file of an older version
        context = TraceContext(step_s=0.092, median_s=0.016, feeds=0, fed=[], began_at=1e9, fastest_traced_s=0.016)
        context.slow_times = [slow_time(True, "machine", "No CPU: others had them", 0.092, without_cpu=whose)]
        assert verdict(trace, context, [])["sentences"][0]["code"] == code


def test_less_than_half_is_not_called_most_of_a_step() -> None:
    trace = make_trace([N("a", "MatMul", 0, 3 * MS), N("b", "MatMul", 5 * MS, 6 * MS)])
    first = verdict(trace, TraceContext(step_s=0.0115, median_s=0.0115), [])["sentences"][0]
    assert first["text"].startswith("The largest part of the step, 48% of 11.5 ms, is outside the recorded ops")


def test_a_session_that_usually_takes_less_than_this_step() -> None:
    context = TraceContext(step_s=0.129, median_s=0.076, feeds=1, fed=[fed("x:0", "float32", [60_000_000], 240_000_000)])
    assert (
        "session.run usually takes 76 ms; in this traced step its ops take 200 µs: at least 75.8 ms"
        in sentences(matmuls(0, MS // 5), context)[0]["text"]
    )


def test_a_session_that_is_fed_very_many_tensors() -> None:
    trace = make_trace(matmuls(0, 8 * MS))
    trace.origin_ns = 16 * MS + 10**18
    values = [fed(f"x{i}:0", "float32", [], 4) for i in range(300)]
    context = TraceContext(step_s=0.042, median_s=0.024, feeds=300, fed=values, began_at=1e9)
    found = verdict(trace, context, [])["sentences"][0]
    assert found["code"] == "around_ops" and "It is fed 1.2 kB in 300 values" in found["text"]
    assert "stack them into few" in found["advice"]
    kept = TraceContext(step_s=0.042, median_s=0.024, feeds=2_000, fed=values[:200], began_at=1e9)  # the largest alone
    assert "It is fed at least 800 B in 2,000 values" in verdict(trace, kept, [])["sentences"][0]["text"]
    few = verdict(trace, TraceContext(step_s=0.042, median_s=0.024, feeds=2, fed=values[:2], began_at=1e9), [])["sentences"][0]
    assert few["code"] != "around_ops"


def test_the_cost_of_a_call_that_is_fed_nothing() -> None:
    context = TraceContext(step_s=0.002, median_s=0.002, feeds=0, fed=[], turn_lines="Saver (a.py:5) 81%")
    (only,) = sentences(matmuls(0, MS // 5), context)
    assert "Nothing is fed." in only["text"] and "make_callable" in only["advice"]
    assert ", and hooks run. " in only["text"] and only["text"].endswith("the time between them included: Saver (a.py:5) 81%.")


def test_lines_of_hooks_are_told_where_most_of_a_session_s_step_passes_around_its_ops() -> None:
    context = TraceContext(step_s=0.02, median_s=0.02, turn_lines="Json (a.py:5) 81%")
    (only,) = sentences(matmuls(0, MS), context)
    assert "hooks run, or the thread waits" in only["text"] and ": Json (a.py:5) 81%. From the first op" in only["text"]
    (only,) = sentences(matmuls(0, MS), replace(context, turn_lines="", lock_holder="thread monitor, in burn() (b.py:7)"))
    assert "Python's lock was held by thread monitor, in burn() (b.py:7): this step may have waited for it, too." in only["text"]


def test_time_after_the_last_op_of_a_slow_step_counts_where_another_traced_step_was_fast() -> None:
    """A judge: of a step of 67.8 ms 58.8 ms passed after its last op, and the headline was about its ops of 8.6 ms."""
    context = TraceContext(step_s=0.068, median_s=0.0033, fastest_traced_s=0.0028)
    first = sentences(matmuls(0, 8 * MS), context)[0]
    assert first["text"].startswith("Most of the step") and "is outside the recorded ops" in first["text"]
    all_slow = replace(context, fastest_traced_s=0.066)
    assert "outside the recorded ops" not in sentences(matmuls(0, 8 * MS), all_slow)[0]["text"]


def test_where_another_thread_often_has_pythons_lock_the_longest_median_is_the_usual_time() -> None:
    context = TraceContext(step_s=0.026, median_s=0.0037, run_median_s=0.021, fastest_traced_s=0.025)
    text = sentences(matmuls(0, 2 * MS), replace(context, lock_holder="thread publisher"))[0]["text"]
    assert text.startswith("Most of a usual step, 90% of 21 ms, is outside the recorded ops")
    assert "is outside the recorded ops" not in sentences(matmuls(0, 3 * MS), context)[0]["text"]


def test_a_step_far_shorter_than_usual_ones_says_so_first() -> None:
    context = TraceContext(step_s=0.0034, median_s=0.003, run_median_s=0.0256, lock_holder="thread publisher")
    first = sentences(matmuls(0, 2 * MS), context)[0]
    assert first["code"] == "short_step"
    assert (
        first["text"].startswith("This step took 3.4 ms, a usual step of the run 25.6 ms") and "thread publisher" in first["text"]
    )
    assert codes(matmuls(0, 2 * MS), replace(context, lock_holder=""))[-1] == "short_step"  # a busy machine may be the reason
    assert "short_step" not in codes(matmuls(0, 2 * MS), replace(context, run_median_s=0.0075))


def test_a_pause_that_starting_the_trace_may_have_caused_on_a_busy_machine_does_not_come_first() -> None:
    pause = TraceContext(step_s=0.028, median_s=0.027, between_steps_s=0.0001, before_step_s=0.088)
    assert codes(matmuls(0, 27 * MS), pause)[0] == "between_steps"
    assert codes(matmuls(0, 27 * MS), replace(pause, lock_holder="thread publisher"))[0] == "balanced"


def test_a_delay_before_a_step_comes_after_a_longer_one_of_an_op() -> None:
    nodes = [N("m", "MatMul", 0, 200 * MS)]
    usual = OpTotals(2e7, 2e7, 0, ["m"], ["MatMul"], [20.0 * MS], [1], [0])
    own = OpTotals(**Answers(None, TraceContext(), trace=make_trace(nodes)).op_totals("name"))
    for before_s, first in ((0.08, "one_op"), (0.8, "slow_before")):
        slow = slow_time(False, "wait", "Waited, at an unknown line", before_s)
        context = TraceContext(step_s=0.2, median_s=0.04, between_steps_s=0.014, before_step_s=before_s, slow_times=[slow])
        found = verdict(make_trace(nodes), context, [], times=over_traces([own, usual]))["sentences"]
        assert found[0]["code"] == first


def test_more_arguments_than_are_described_are_at_least_so_many() -> None:
    call = FunctionCall("train", -30 * MS, 2 * MS, False, 1, -MS // 10, MS)
    for number, words in ((200, "at least 13.1 MB in at least 200 arrays"), (150, "9.83 MB in 150 arrays")):
        values = [fed(f"argument {i}", "float32", [64, 256], 65_536) for i in range(number)]
        context = TraceContext(step_s=0.032, median_s=0.032, fed=values, trace_level="profile")
        trace = make_trace(matmuls(0, MS))
        trace.source = "xspace"
        step = step_of(trace, context, activities(trace), work_of(trace))
        vars(step)["calls"] = [call]
        found = around_ops(step)
        assert found is not None and f"It is fed {words} that" in found["text"]


def test_what_collecting_the_trace_takes_is_no_part_of_a_step() -> None:
    assert codes(matmuls(0, MS), TraceContext(step_s=0.5, median_s=0.0011, feeds=0))[0] == "balanced"


def test_a_pause_before_this_step_alone() -> None:
    context = TraceContext(median_s=0.010, between_steps_s=0.0001, before_step_s=0.350, step_s=0.010)
    (only,) = sentences(matmuls(0, 10 * MS), context)
    assert only["code"] == "between_steps" and "Before this step 350 ms passed" in only["text"]
    assert only["share"] == pytest.approx(350 / 360)
    assert "Beginning to trace this step may be a part of it." in only["text"]


def test_a_short_pause_before_this_step_alone_does_not_come_before_what_it_computes() -> None:
    context = TraceContext(median_s=0.010, between_steps_s=0.0001, before_step_s=0.003, step_s=0.010)
    assert codes(matmuls(0, 10 * MS), context) == ["balanced", "between_steps"]


def test_a_pause_that_beginning_to_trace_explains_does_not_come_first() -> None:
    """ "Before this step 13.6 ms passed, 52%": nothing that usual steps have."""
    context = TraceContext(median_s=0.010, between_steps_s=0.0001, before_step_s=0.0136, step_s=0.010)
    assert codes(matmuls(0, 10 * MS), context) == ["balanced", "between_steps"]


def test_a_pause_is_a_share_of_the_whole_call_that_was_slow_after_its_last_op() -> None:
    context = TraceContext(median_s=0.005, between_steps_s=0.0001, before_step_s=0.03)
    assert codes(matmuls(0, 5 * MS), context)[0] == "between_steps"
    context.slow_times = [slow_time(True, "unknown", "Not known", 1.2)]
    assert "between_steps" not in codes(matmuls(0, 5 * MS), context)


def test_a_pause_before_this_step_alone_comes_after_what_the_step_itself_shows() -> None:
    once = TraceContext(median_s=0.010, between_steps_s=0.0001, before_step_s=0.350, step_s=0.010)
    always = TraceContext(median_s=0.010, between_steps_s=0.350, before_step_s=0.350, step_s=0.010)
    one_op = [N("m", "MatMul", 0, 8 * MS), N("n", "MatMul", 8 * MS, 10 * MS)]
    for context, expected in ((once, ["one_op", "between_steps"]), (always, ["between_steps", "one_op"])):
        answer = verdict(make_trace(one_op), context, [])
        assert [sentence["code"] for sentence in answer["sentences"]][:2] == expected


def test_a_pause_that_made_the_turn_slow_comes_first_whatever_its_cause() -> None:
    context = TraceContext(median_s=0.010, between_steps_s=0.0001, before_step_s=0.350, step_s=0.010)
    context.slow_times = [slow_time(False, "unknown", "Not known", 0.35)]
    one_op = [N("m", "MatMul", 0, 8 * MS), N("n", "MatMul", 8 * MS, 10 * MS)]
    assert codes(one_op, context)[:2] == ["between_steps", "one_op"]


def slow_time(inside: bool, cause: str, text: str, duration_s: float, lines: str = "", without_cpu: str = "") -> SlowTime:
    return {
        "inside": inside,
        "duration_s": duration_s,
        "usual_s": 0.003,
        "cause": cause,
        "without_cpu": without_cpu,
        "text": text,
        "lines": lines,
    }


def test_what_the_watch_found_of_a_slow_step_comes_first_and_tracing_is_not_suspected() -> None:
    hook = "The hook CheckpointSaverHook (basic_session_run_hooks.py:615)"
    context = TraceContext(step_s=1.23, median_s=0.003, before_step_s=0.4, between_steps_s=0.0001)
    context.slow_times = [slow_time(True, "hook", hook, 1.23), slow_time(False, "wait", "Waited at load() (x.py:3)", 0.4)]
    inside, before, *rest = verdict(make_trace(matmuls(0, 2 * MS)), context, [])["sentences"]
    assert inside["text"] == f"This step took 1.23 s, usually 3 ms. {hook}." and inside["code"] == "slow_step"
    assert before["text"] == "Before this step 400 ms passed, usually 3 ms. Waited at load() (x.py:3)."
    assert not {sentence["code"] for sentence in rest} & {"slow_step", "tracing_cost", "between_steps"}


@pytest.mark.parametrize("cause", ["unknown", "tensorflow"])
def test_what_the_watch_does_not_know_is_left_to_the_trace(cause: str) -> None:
    context = TraceContext(step_s=0.090, median_s=0.003, slow_times=[slow_time(True, cause, "Not known", 0.090)])
    first, *_, last = verdict(make_trace(matmuls(0, 85 * MS, count=1)), context, [])["sentences"]
    assert first["code"] == "one_op" and last["code"] == "slow_step" and "Not known" not in last["text"]


@pytest.mark.parametrize(
    ("usual_s", "between", "before", "said"),
    [
        (0.005, "load() (train.py:31) 62%", "", "Sampled between steps: load() (train.py:31) 62%."),
        (0.005, "load() (train.py:31) 62%", "save() (x.py:2) 90%", "Sampled between steps: load() (train.py:31) 62%."),
        (0.0001, "load() (train.py:31) 62%", "save() (x.py:2) 90%", "Sampled before this step: save() (x.py:2) 90%."),
        (0.005, "", "", "Which lines run then was not sampled."),
        (0.0001, "wait() (x.py:21) 99%", "", "was not sampled. Sampled between other steps: wait() (x.py:21) 99%. Beginning"),
    ],
)
def test_time_outside_names_its_lines_or_says_that_it_has_none(usual_s: float, between: str, before: str, said: str) -> None:
    slow = slow_time(False, "unknown", "Not known", 0.350, before)
    context = TraceContext(
        step_s=0.010, median_s=0.010, between_steps_s=usual_s, before_step_s=0.350, between_lines=between, slow_times=[slow]
    )
    (only,) = sentences(matmuls(0, 10 * MS), context)
    assert said in only["text"] and ("does not show" in only["text"]) == (not between)


@pytest.mark.parametrize(("share", "named", "decides"), [(0.92, True, True), (0.3, True, False), (0.1, False, False)])
def test_garbage_collections_between_the_steps_are_named(share: float, named: bool, decides: bool) -> None:
    """Samples show only the line that collects."""
    lines = "clean() (x.py:156) 100%"
    context = TraceContext(step_s=0.010, median_s=0.010, between_steps_s=0.010, between_lines=lines, sampled_gc=share)
    (only,) = sentences(matmuls(0, 10 * MS), context)
    assert (f"Python's garbage collections took {share:.0%} of them. Sampled" in only["text"]) == named
    assert ("gc.freeze()" in only["advice"]) == decides


@pytest.mark.parametrize(
    ("input_s", "waits", "asks_what_the_script_does"),
    [(0.0098, True, False), (0.006, True, True), (0.0005, False, True), (None, False, True)],
)
def test_time_between_steps_says_how_long_the_loop_waits_for_its_dataset(
    input_s: float | None, waits: bool, asks_what_the_script_does: bool
) -> None:
    context = TraceContext(step_s=0.010, median_s=0.010, between_steps_s=0.010, between_input_s=input_s)
    (only,) = sentences(matmuls(0, 10 * MS), context)
    assert ("the loop waits for the next element of a tf.data dataset" in only["text"]) == waits
    assert ("does not show what the script does" in only["text"]) == asks_what_the_script_does
    assert ("prefetch(tf.data.AUTOTUNE)" in only["advice"]) == waits


def test_time_between_steps_says_which_stage_of_the_pipeline_holds_it_up() -> None:
    seen = "The training waits for input 90% of the time: map(decode) at train.py:12 limits it to 31 elements/s."
    context = TraceContext(
        step_s=0.001, median_s=0.001, between_steps_s=0.009, between_input_s=0.009, input_text=seen, input_advice="Decode once."
    )
    (only,) = sentences(matmuls(0, MS), context)
    assert only["text"].endswith(f" In the seconds before, without a trace, t{seen[1:]}") and only["advice"] == "Decode once."


def test_a_step_just_after_a_traced_one_is_told_the_usual_time_between_steps() -> None:
    """While a trace is collected, the input pipeline works ahead: nothing passed before this step, and 9 ms before others."""
    context = TraceContext(
        step_s=0.001, median_s=0.001, between_steps_s=0.009, before_step_s=0.00001, between_input_s=0.009, follows_traced=True
    )
    first = sentences(matmuls(0, MS), context)[0]
    assert first["code"] == "between_steps" and first["share"] == pytest.approx(0.9) and "before this step" not in first["text"]


@pytest.mark.parametrize(("input_s", "code"), [(0.0020, "between_steps"), (0.0002, "balanced")])
def test_a_wait_that_the_trace_itself_made_short_is_told_as_usual(input_s: float, code: str) -> None:
    """The pipeline worked ahead while TensorFlow began the trace: 0.3 ms passed before the step, and 2.1 ms before others."""
    context = TraceContext(
        step_s=0.002,
        median_s=0.0004,
        between_steps_s=0.0021,
        before_step_s=0.0003,
        between_input_s=input_s,
        before_input_s=0.0002,
    )
    first = sentences(matmuls(0, 2 * MS), context)[0]
    assert first["code"] == code and ("before this step" in first["text"]) is False


@pytest.mark.parametrize(("feeds", "code"), [(0, "input_bound"), (1, "around_ops")])
def test_a_wait_for_input_that_the_trace_itself_made_short_is_not_the_cost_of_the_call(feeds: int, code: str) -> None:
    """The pipeline prepared the element while TensorFlow began the trace: the ops take 0.3 ms of a usual step's 3.6."""
    trace = make_trace([N("next", "IteratorGetNext", 0, MS // 10, kind=NodeKind.INPUT), *matmuls(MS // 10, 3 * MS // 10)])
    trace.origin_ns = int(3.3 * MS) + 10**18
    values = [fed("x:0", "float32", [1_000_000], 4_000_000)] if feeds else []
    context = TraceContext(step=40, step_s=0.004, median_s=0.0036, feeds=feeds, fed=values, began_at=1e9)
    first = verdict(trace, context, [])["sentences"][0]
    assert first["code"] == code
    if not feeds:
        assert "The ops of this step take 300 µs, a usual step of the run 3.6 ms" in first["text"]
        assert "IteratorGetNext" in first["text"] and first["share"] == pytest.approx(11 / 12)


@pytest.mark.parametrize(
    ("others_s", "was_traced", "whole_ms"),
    [(0.005, False, 0.45), (None, False, 0.45), (0.0004, False, 5.0), (0.005, True, 5.0)],
)
def test_what_being_traced_adds_around_the_ops_of_a_function_is_no_part_of_its_step(
    others_s: float | None, was_traced: bool, whole_ms: float
) -> None:
    """A step of 0.45 ms takes 5 when it is traced. One that alone is slow keeps its time, and so does a call that traces."""
    trace = make_trace(matmuls(0, MS // 10))
    call = FunctionCall("train", -4 * MS, 1 * MS, was_traced, 1, -MS, MS)
    context = TraceContext(step_s=0.005, median_s=0.00045, fastest_traced_s=others_s, trace_level="profile")
    found = around(trace, context, [call], trace.duration_ns)
    assert found.before_ns + found.after_ns + trace.duration_ns == pytest.approx(whole_ms * MS, abs=2)
    assert found.python_ns <= found.before_ns + found.after_ns + 2


@pytest.mark.parametrize(("step_ms", "whole_ms"), [(6.5, 4.9), (8.0, 6.5)])
def test_what_passes_around_the_ops_of_a_step_that_is_not_slow_is_limited_by_usual_steps(step_ms: float, whole_ms: float) -> None:
    """An op of 4.9 ms was 74% of a traced step of 6.5 ms; untraced steps take 4.85 ms, so the rest is the cost of tracing."""
    call = FunctionCall("train", -MS, 55 * MS // 10, False, 1, -MS // 10, 5 * MS)
    context = TraceContext(step_s=step_ms / 1e3, median_s=0.00485, fastest_traced_s=0.0064, trace_level="profile")
    trace = make_trace(matmuls(0, 49 * MS // 10))
    found = around(trace, context, [call], trace.duration_ns)
    assert found.before_ns + found.after_ns + trace.duration_ns == pytest.approx(whole_ms * MS, abs=2)


def test_what_untraced_steps_take_beyond_the_record_of_a_call_is_part_of_the_step() -> None:
    """Python's lock was waited for outside of TensorFlow's record of the call: 4 of 11.7 ms."""
    call = FunctionCall("train", -MS // 10, 39 * MS // 10, False, 1, 0, 29 * MS // 10)
    context = TraceContext(step_s=0.0117, median_s=0.0123, trace_level="profile")
    trace = make_trace(matmuls(0, 29 * MS // 10))
    found = around(trace, context, [call], trace.duration_ns)
    assert found.before_ns + found.after_ns + trace.duration_ns == pytest.approx(11.7 * MS)
    assert around(trace, replace(context, median_s=0.0039), [call], trace.duration_ns).after_ns <= MS


def test_a_call_that_takes_longer_than_tracing_can_make_it_keeps_its_time() -> None:
    """A busy machine: 45 ms, where the run's other traced step took twice as long as untraced ones."""
    call = FunctionCall("train", -4 * MS, 41 * MS, False, 1, -MS, MS)
    trace, context = make_trace(matmuls(0, MS // 10)), TraceContext(step_s=0.045, median_s=0.00055, trace_level="profile")
    assert around(trace, replace(context, fastest_traced_s=0.0011), [call], trace.duration_ns).before_ns == 4 * MS
    all_as_long = around(trace, replace(context, fastest_traced_s=0.044), [call], trace.duration_ns)
    assert all_as_long.before_ns < MS, "beginning a trace may cost more than is known"


def test_an_op_that_makes_a_tensor_of_an_argument_hides_no_time_in_python() -> None:
    """60,000 strings of 2.21: the first op, _EagerConst, runs before the function does, and 0.6 ms of Python follow it."""
    trace = make_trace([N("_EagerConst", "_EagerConst", 0, MS // 10), *matmuls(73 * MS // 100, 78 * MS // 100)])
    call = FunctionCall("train", -11 * MS // 10, 9 * MS // 10, False, 1, 67 * MS // 100, 17 * MS // 100)
    context = TraceContext(step_s=0.0021, median_s=0.00096, fastest_traced_s=0.0015, trace_level="profile")
    assert around(trace, context, [call], trace.duration_ns).python_ns == 79 * MS // 100


def test_a_short_pause_between_short_steps_is_pythons_own() -> None:
    assert codes(matmuls(0, MS), TraceContext(median_s=0.0005, between_steps_s=0.0008)) == ["balanced"]


def test_a_slow_link() -> None:
    nodes = [
        received("edge_1_w", 0, 6 * MS, 600_000),
        N("r", "ReadVariableOp", 0, MS // 10, PS),
        *matmuls(6 * MS, 10 * MS, WORKER),
    ]
    (only,) = sentences(nodes)
    assert only["code"] == "communication_bound"
    assert "the CPU of ps/0" in only["text"] and "600 kB at 100 MB/s" in only["text"]
    assert only["numbers"]["waited_ns"] == 6 * MS and only["share"] == pytest.approx(0.6)
    assert only["evidence"]["tab"] == "communication" and only["evidence"]["nodes"] == [0]


def test_a_parameter_server_that_computes_itself() -> None:
    nodes = [
        received("edge_1_w", 0, 6 * MS, 600_000),
        N("heavy", "Svd", 0, 5 * MS, PS),
        *matmuls(6 * MS, 10 * MS, WORKER),
    ]
    (only,) = sentences(nodes)
    assert only["code"] == "communication_bound"
    assert "heavy (Svd)" in only["text"] and only["numbers"]["source_computing_ns"] == 5 * MS


def test_a_parameter_server_whose_op_the_worker_waits_for() -> None:
    """As TensorFlow records it: the RecvTensor begins when the tensor is sent."""
    heavy = N("heavy", "Svd", 0, 5 * MS, PS)
    nodes = [heavy, received("edge_1_heavy", 5 * MS, 6 * MS, 600_000), *matmuls(6 * MS, 10 * MS, WORKER)]
    (only,) = sentences(nodes)
    assert only["code"] == "communication_bound" and only["share"] == pytest.approx(0.5)
    assert "ps/0 works on the step; what takes longest there is heavy (Svd)" in only["text"] and "worker/0" in only["text"]
    assert only["numbers"] == {"waited_ns": 5 * MS, "source_computing_ns": 5 * MS} and only["evidence"]["nodes"][0] == 0
    ready = N("late", "MatMul", 6 * MS, 7 * MS, WORKER, scheduled=0)  # waits for a thread, not for the server
    assert "communication_bound" not in codes([*nodes, ready])


def test_a_step_whose_end_is_spent_on_sending_to_the_server() -> None:
    """Two transfers of 9 ms, in a step of 14: told, though nothing is received by the worker meanwhile."""
    trace = recorded("ps_transfers_missing_tf2.15_cpu.pb")
    first = verdict(trace, TraceContext(), [])["sentences"][0]
    assert first["code"] == "communication_bound" and first["share"] == pytest.approx(0.63, abs=0.01)
    assert "there is the transfer of edge_90_gradients/MatMul_2_grad/tuple/control_dependency_1" in first["text"]


def test_a_parameter_server_that_waits_for_its_worker_is_no_cause() -> None:
    nodes = [received("edge_1_g", 0, 9 * MS, 600_000, source=WORKER, to=PS), *matmuls(0, 10 * MS, WORKER)]
    assert codes(nodes) == ["balanced"]


def test_collectives() -> None:
    nodes = [
        *matmuls(0, 5 * MS),
        N("h", "HorovodAllreduce", 4 * MS, 10 * MS, kind=NodeKind.COMMUNICATION),
    ]
    (only,) = sentences(nodes)
    assert only["code"] == "communication_bound" and "HorovodAllreduce" in only["text"]
    assert only["numbers"] == {"exposed_ns": 5 * MS, "hidden_ns": MS}


def test_hidden_communication_holds_nothing_back() -> None:
    assert codes([*matmuls(0, 10 * MS), N("h", "HorovodAllreduce", 0, 9 * MS, kind=NodeKind.COMMUNICATION)]) == ["balanced"]


def test_a_gpu_that_waits_for_launches() -> None:
    nodes: list[N] = []
    for i in range(100):
        at = i * 100_000
        nodes += [N(f"k{i}", "Relu", at, at + 90_000, GPU, NodeKind.LAUNCH), N(f"k{i}", "Relu", at + 80_000, at + 95_000, STREAM)]
    stated = sentences(nodes)
    assert stated[0]["code"] == "launch_bound" and "100 kernels ran, 15 µs each" in stated[0]["text"]
    assert stated[0]["evidence"]["lane"] == GPU


def test_a_gpu_that_waits_for_an_op_that_launches_nothing() -> None:
    """What runs on the host for the GPU is a launch to the budget, whatever its op."""
    nodes = [N("get_next", "IteratorGetNext", 0, 8 * MS, GPU, NodeKind.INPUT), N("k", "MatMul", 8 * MS, 10 * MS, STREAM)]
    launch_bound = next(s for s in sentences(nodes) if s["code"] == "launch_bound")
    assert "get_next (IteratorGetNext)" in launch_bound["text"] and launch_bound["evidence"]["nodes"] == [0]


def test_copies_are_no_kernels() -> None:
    nodes: list[N] = []
    for i in range(19):
        at = i * 100_000
        nodes += [N(f"k{i}", "Relu", at, at + 90_000, GPU, NodeKind.LAUNCH), N(f"k{i}", "Relu", at + 80_000, at + 95_000, STREAM)]
    nodes += [N(f"edge_{i}", "MEMCPYHtoD", i * 100_000, i * 100_000 + 1_000, STREAM, NodeKind.COPY) for i in range(6)]
    first = sentences(nodes)[0]
    assert "19 kernels ran, 15 µs each" in first["text"] and first["numbers"]["kernels"] == 19


def test_of_a_launch_without_a_kernel_it_is_not_said_that_it_loads_a_library() -> None:
    launch = N("first", "MatMul", 0, 8 * MS, GPU, NodeKind.LAUNCH)
    rest = matmuls(9 * MS, 10 * MS, STREAM)
    without = sentences([launch, *rest])[0]
    assert "launches nothing on the GPU" in without["text"] and "library" not in without["advice"]
    assert "library" in sentences([launch, N("first", "MatMul", 8 * MS, 9 * MS, STREAM), *rest])[0]["advice"]


def test_a_gpu_that_waits_for_one_launch() -> None:
    nodes = [N("first", "MatMul", 0, 8 * MS, GPU, NodeKind.LAUNCH), N("first", "MatMul", 8 * MS, 9 * MS, STREAM)]
    stated = sentences([*nodes, *matmuls(9 * MS, 10 * MS, STREAM)])
    assert stated[0]["code"] == "launch_bound" and "first (MatMul) takes 8 ms" in stated[0]["text"]


@pytest.mark.parametrize(("size", "expected"), [(6 * MS, ["balanced"]), (8 * MS, ["one_op"])])
def test_one_huge_op(size: int, expected: list[str]) -> None:
    stated = sentences([*matmuls(0, 10 * MS), N("huge", "MatMul", 10 * MS, 10 * MS + size)])
    assert [s["code"] for s in stated] == expected
    if expected == ["one_op"]:
        assert "huge (MatMul) on the CPU," in stated[0]["text"] and stated[0]["evidence"]["op"] == "MatMul"


def test_an_op_beside_others_is_said_to_be_so() -> None:
    nodes = [N("m", "MatMul", 0, 9 * MS), N("n", "Conv2D", MS, 8 * MS), N("o", "Sort", 9 * MS, 10 * MS)]
    (first, *_) = sentences(nodes)
    assert first["text"].startswith("One op, m (MatMul) on the CPU, runs for 9 ms: 90% of the step. For 7 ms of that other ops")
    assert "in parallel" not in first["advice"]
    assert "other ops" not in sentences([nodes[0], nodes[2]])[0]["text"]


def test_ops_of_an_eager_loop_are_no_one_op() -> None:
    nodes = [N("MatMul", "MatMul", number * 2 * MS, (number * 2 + 1) * MS) for number in range(5)]
    (first, *_) = sentences(nodes)
    assert first["text"].startswith("Ops of type MatMul on the CPU run for 5 ms in 5 executions: ")


def test_an_op_that_saves_a_checkpoint_is_advised_to_save_less() -> None:
    (first, *_) = sentences([N("save/SaveV2", "SaveV2", 0, 9 * MS), N("m", "MatMul", 9 * MS, 10 * MS)])
    assert first["code"] == "one_op" and first["advice"].startswith("Save less often")


@pytest.mark.parametrize(
    ("median_ms", "of_run_ms", "device", "told"),
    [
        (1.42, 1.2, CPU, True),
        (4.0, 4.0, CPU, False),
        (None, None, CPU, False),
        (1.42, 1.42, STREAM, False),
        (1.42, 4.8, CPU, False),
    ],
)
def test_one_op_that_takes_longer_than_usual_steps_do_in_all(
    median_ms: float | None, of_run_ms: float | None, device: str, told: bool
) -> None:
    """A product of 614 µs took 5 ms on a busy machine. A call may return before a GPU has run it; early steps may be short."""
    median_s, run_median_s = (None if each is None else each / 1e3 for each in (median_ms, of_run_ms))
    context = TraceContext(step_s=0.0062, median_s=median_s, run_median_s=run_median_s)
    nodes = [N("m", "MatMul", 0, 5 * MS, device), N("n", "MatMul", 5 * MS, 5_800_000, device)]
    found = verdict(make_trace(nodes), context, [])["sentences"]
    text = next(each["text"] for each in found if each["code"] == "one_op")
    assert text.startswith("One op, m (MatMul) on ") and "runs for 5 ms: 8" in text
    held_up = " The run's untraced steps take 1.42 ms in all: here something held it up, or it had more to do."
    assert text.endswith(held_up) == told == ("untraced" in text)


@pytest.mark.parametrize(("step_ms", "whole"), [(10.0, "the step"), (17.3, "the time from the step's first op to its last")])
def test_a_share_of_the_time_from_the_first_op_to_the_last_is_none_of_the_step(step_ms: float, whole: str) -> None:
    """On a busy machine a traced step took 17.3 ms: "Most of a usual step, 94% of 10 ms", but usual steps took 6.7."""
    nodes = [N("a", "MatMul", 0, MS), N("b", "MatMul", 9 * MS, 10 * MS)]
    (found, *_) = verdict(make_trace(nodes), TraceContext(step_s=step_ms / 1e3, median_s=0.0067), [])["sentences"]
    assert found["text"].startswith(f"Nothing is recorded on the CPU for 8 ms (80%) of {whole}. ")


@pytest.mark.parametrize(("count", "expected"), [(900, ["balanced"]), (1_100, ["tiny_ops"])])
def test_many_tiny_ops(count: int, expected: list[str]) -> None:
    nodes = [N(f"a{i}", "AddV2", i * 5_000, i * 5_000 + 3_000, scheduled=max(0, i * 5_000 - 2_000)) for i in range(count)]
    assert codes(nodes) == expected


def test_the_evidence_for_tiny_ops_is_of_the_type_that_the_sentence_names() -> None:
    nodes = [N(f"a{i}", "AddV2", i * 5_000, i * 5_000 + 3_000) for i in range(1_100)]
    (sentence,) = sentences([*nodes, *(N(f"m{i}", "Mul", 5_500_000 + i * 20_000, 5_519_000 + i * 20_000) for i in range(9))])
    assert sentence["code"] == "tiny_ops" and "the most frequent is AddV2 (1,100 times)" in sentence["text"]
    assert sentence["evidence"]["op"] == "AddV2" and all(node < 1_100 for node in sentence["evidence"]["nodes"])
    assert sentence["evidence"]["nodes"]


@pytest.mark.parametrize(("op", "is_told"), [("NextIteration", True), ("Identity", False)])
def test_tiny_ops_that_run_in_a_loop_of_the_graph_are_told_as_that(op: str, is_told: bool) -> None:
    ops = ("AddV2", "Mul", op, "Tanh")
    nodes = [N(f"while/{ops[i % 4]}", ops[i % 4], i * 5_000, i * 5_000 + 3_000) for i in range(1_200)]
    (sentence, *_) = verdict(make_trace(nodes), TraceContext(), [])["sentences"]
    assert sentence["code"] == "tiny_ops" and ("in loops of the graph" in sentence["text"]) == is_told
    assert ("of about 300 turns" in sentence["text"]) == is_told


def test_tiny_ops_of_many_fetches_are_called_fetches() -> None:
    ops = ("ReadVariableOp", "_Retval", "Identity")
    nodes = [N(f"n{i}", ops[i % 3], i * 5_000, (i + 1) * 5_000) for i in range(1_200)]
    (first, *_) = verdict(make_trace(nodes), TraceContext(), [])["sentences"]
    assert first["code"] == "tiny_ops" and first["advice"].startswith("Feed and fetch fewer tensors")
    assert "400 fetched tensors have ops of their own." in first["text"]


@pytest.mark.parametrize(("pause", "first"), [(10 * MS, "tiny_ops"), (40 * MS, "idle_device")])
def test_a_long_gap_is_not_the_tiny_ops_doing(pause: int, first: str) -> None:
    nodes = [N(f"a{i}", "AddV2", i * 5_000 + (i >= 600) * pause, i * 5_000 + 3_000 + (i >= 600) * pause) for i in range(1_200)]
    assert codes(nodes)[0] == first


@pytest.mark.parametrize(("median_ms", "named"), [(6, True), (100, False)])
def test_tiny_ops_that_take_the_usual_step_are_named_in_one_that_was_held_up(median_ms: int, named: bool) -> None:
    nodes = [N(f"a{i}", "AddV2", at := i * 5_000 + (i >= 600) * 90 * MS, at + 3_000) for i in range(1_200)]
    assert (codes(nodes, TraceContext(median_s=median_ms / 1e3))[0] == "tiny_ops") == named


def test_an_op_that_takes_longer_than_usual_steps_hides_no_tiny_ops() -> None:
    """ "One op, RandomUniform, 61% of the step": usual steps took a quarter of its time, and 4,900 other ops."""
    tiny = [N(f"m{i}", "Mul", 32 * MS + i * 2_000, 32 * MS + i * 2_000 + 1_500) for i in range(2_000)]
    nodes = [N("random", "RandomUniform", 0, 32 * MS), *tiny]
    first = {
        usual_s: verdict(make_trace(nodes), TraceContext(median_s=usual_s), [])["sentences"][0] for usual_s in (0.0077, 0.036)
    }
    assert [sentence["code"] for sentence in first.values()] == ["tiny_ops", "one_op"]


def test_a_step_without_what_was_held_up_is_not_described_by_it() -> None:
    """ "Without what held up single ops, most op time goes into 1 op of type RandomUniform", which was the op held up."""
    nodes = [N("random", "RandomUniform", 0, 32 * MS), *(N(f"m{i}", "Mul", (32 + i) * MS, (33 + i) * MS) for i in range(4))]
    texts = [sentence["text"] for sentence in sentences(nodes, TraceContext(median_s=0.0077, step_s=0.036))]
    assert "something held it up" in texts[0] and not any("RandomUniform" in text for text in texts[1:])


def test_tiny_ops_beside_an_interruption_have_the_share_of_the_step_that_the_card_shows() -> None:
    """A traced Adam step of 21 ms said "70% of the step (not counting 3.5 ms)" beside 56%."""
    nodes = [N(f"a{i}", "AddV2", i * 5_000, i * 5_000 + 4_000) for i in range(1_200)]  # 6 ms
    nodes.append(N("a1200", "AddV2", 6 * MS, 10 * MS))
    found = sentences(nodes)[0]
    assert found["code"] == "tiny_ops" and "take 100% of the step without a few ops" in found["text"]
    assert "which take 4 ms: 6 ms, 60% of the whole step;" in found["text"]
    assert found["share"] == pytest.approx(0.6) and "of unusual length, which take 4 ms" in found["text"]


@pytest.mark.parametrize(("strays", "expected"), [(5, True), (6, False)])
def test_a_few_interrupted_executions_are_left_out(strays: int, expected: bool) -> None:
    nodes, at = [], 0
    for i in range(1_000 + strays):
        size = 2 * MS if i % 200 == 100 else 3_000
        nodes.append(N(f"a{i}", "AddV2", at, at + size))
        at += size + 2_000
    interrupted = sum(n.end - n.start > MS for n in nodes)
    nodes += [N(f"b{i}", "AddV2", at + i * 2 * MS, at + (i + 1) * 2 * MS) for i in range(strays - interrupted)]
    assert ("tiny_ops" in codes(nodes)) == expected


@pytest.mark.parametrize(("op", "kind", "first"), [("Enter", NodeKind.CONTROL, "tiny_ops"), ("Sort", NodeKind.COMPUTE, "one_op")])
def test_an_op_without_work_of_its_own_was_interrupted_where_it_is_long(op: str, kind: NodeKind, first: str) -> None:
    """One of the two ``Enter`` of a loop took 121 ms of a step of 189 ms on a busy machine."""
    nodes = [N("while/enter", op, 0, 12 * MS, kind=kind)]
    nodes += [N(f"a{i}", "AddV2", 12 * MS + i * 5_000, 12 * MS + i * 5_000 + 3_000) for i in range(1_200)]
    found = sentences(nodes)
    assert found[0]["code"] == first
    assert ("a few ops and gaps of unusual length, which take 12 ms" in found[0]["text"]) == (first == "tiny_ops")


def test_tiny_ops_beside_large_ones_hold_nothing_back() -> None:
    tiny = [N(f"a{i}", "AddV2", i * 5_000, i * 5_000 + 3_000) for i in range(2_000)]
    assert codes([*tiny, *matmuls(0, 12 * MS)]) == ["balanced"]


@pytest.mark.parametrize(("size", "expected"), [(MS, ["balanced"]), (3 * MS, ["copies"])])
def test_copies(size: int, expected: list[str]) -> None:
    nodes = [N("x", "MEMCPYHtoD", 0, size, H2D, NodeKind.COPY, bytes_moved=9_000_000), *matmuls(size, size + 10 * MS, STREAM)]
    stated = sentences(nodes)
    assert [s["code"] for s in stated] == expected
    if expected == ["copies"]:
        assert "9 MB" in stated[0]["text"] and stated[0]["numbers"]["bytes"] == 9_000_000


def test_the_line_of_a_python_function_that_made_the_step_slow_comes_first() -> None:
    """Both sentences tell of the same 301 ms; the trace does not know the line."""
    context = TraceContext(step_s=0.3015, median_s=0.0005)
    context.slow_times = [slow_time(True, "py_function", "A Python function that TensorFlow calls: f() (x.py:7)", 0.3015)]
    nodes = [N("f", "PyFunc", 0, 301 * MS, kind=NodeKind.INPUT)]
    assert [each["code"] for each in verdict(make_trace(nodes), context, [])["sentences"]] == ["slow_step", "python_function"]


def test_a_python_function_is_named_and_what_it_does_is_not_guessed() -> None:
    nodes = [*matmuls(0, 5 * MS), N("f", "EagerPyFunc", 5 * MS, 9 * MS, kind=NodeKind.INPUT)]
    (only,) = sentences(nodes)
    assert only["code"] == "python_function" and "f (EagerPyFunc)" in only["text"]
    assert "does not show what happens in it" in only["text"] and "cop" not in only["text"]
    (two,) = sentences([*nodes, N("g", "PyFunc", 9 * MS, 10 * MS, kind=NodeKind.INPUT)])
    assert "2 calls of Python functions" in two["text"]


def test_swapped_tensors() -> None:
    stated = sentences([*matmuls(0, 8 * MS), N("gradients/swap_in_a_0", "Identity", 8 * MS, 10 * MS)])
    assert [s["code"] for s in stated] == ["memory"]


def test_an_idle_device_without_a_reason() -> None:
    nodes = [N("a", "MatMul", 0, MS), N("b", "MatMul", 9 * MS, 10 * MS), N("c", "MatMul", 4 * MS, 5 * MS)]
    assert codes(nodes) == ["idle_device"]


def test_ops_that_are_ready_while_nothing_runs() -> None:
    """As on a machine that is busy with something else: the process has no core for most of the step."""
    nodes = [N("a", "MatMul", 0, 3 * MS), N("b", "MatMul", 9 * MS, 10 * MS, scheduled=2 * MS)]
    (only,) = sentences(nodes)
    assert only["code"] == "scheduling_delay" and only["share"] == pytest.approx(0.6)
    assert "6 ms of that lie in 1 gap longer than 100 µs" in only["text"] and "does not show" in only["text"]
    assert (only["evidence"]["start_ns"], only["evidence"]["end_ns"]) == (3 * MS, 9 * MS)
    assert codes([nodes[0], N("b", "MatMul", 5 * MS, 10 * MS, scheduled=2 * MS)]) != ["scheduling_delay"]


def test_what_a_balanced_step_consists_of() -> None:
    (only,) = sentences([*matmuls(0, 6 * MS), *matmuls(9 * MS, 10 * MS)])
    assert "The step is 70% compute, 30% idle or waiting to be scheduled." in only["text"]
    (only,) = sentences([*matmuls(0, 6 * MS), *matmuls(9 * MS, 10 * MS), N("x", "Add", 0, 1, scheduled=0)])
    assert "The step is 70% compute, 30% idle." in only["text"]


def test_an_empty_trace_has_a_sentence_too() -> None:
    assert codes([]) == ["balanced"]


def test_every_rule_and_its_threshold_is_described_in_the_docs() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "analyses.rst").read_text(encoding="utf-8").split())
    folder = Path(verdict_.__file__).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in [*folder.glob("*.py"), *folder.glob("rules/*.py")])
    for code in re.findall(r'sentence\(\s*"([a-z_]+)"', sources):
        assert f"``{code}``" in page, code
    for name, value in re.findall(r"^([A-Z_]+_SHARE) = ([0-9.]+)", sources, re.MULTILINE):
        share = float(value)
        assert f"{share:.3g}" in page or f"{100 * share:.3g}%" in page or (share == 0.5 and "half" in page), name
    for words in ("1,000 ops are shorter than 20 µs", "each up to 100 µs", "at least 1 ms", "1.5 times the median"):
        assert words in page


def test_a_function_whose_ops_are_recorded_is_not_called_compiled_by_xla() -> None:
    """An LSTM's PartitionedCall lasts as long as the tiny ops of its loop; between these nothing else runs."""
    inner = [N(f"while/op{i % 30}", "Mul", 5_000 + i * 5_000, 7_000 + i * 5_000) for i in range(3_000)]
    found = verdict(make_trace([N("lstm/PartitionedCall", "PartitionedCall", 0, 15_010_000), *inner]), TraceContext(), [])
    assert found["sentences"][0]["code"] == "tiny_ops" and "3,000 ops" in found["sentences"][0]["text"]
    assert not any("XLA compiled" in sentence["text"] for sentence in found["sentences"])
    stretched = [N(node.name, node.op, node.start * 40, node.start * 40 + 2_000) for node in inner]
    busy = verdict(make_trace([N("lstm/PartitionedCall", "PartitionedCall", 0, 600_400_000), *stretched]), TraceContext(), [])
    assert "PartitionedCall" not in busy["sentences"][0]["text"], "a busy machine stretches the time between the ops"
    hidden = verdict(make_trace([N("lstm/PartitionedCall", "PartitionedCall", 0, 30_010_000)]), TraceContext(), [])
    assert "A function that XLA compiled" in hidden["sentences"][0]["text"]


@pytest.mark.parametrize("context", [TraceContext(step_s=0.040, median_s=0.040, fed=[]), TraceContext()])
def test_a_step_in_which_little_runs_is_not_told_to_make_its_ops_cheaper(context: TraceContext) -> None:
    nodes = [N("a", "MatMul", 0, 1 * MS), N("b", "MatMul", 9 * MS, 10 * MS)]
    (first, *_) = verdict(make_trace(nodes), context, [])["sentences"]
    assert first["code"] in ("balanced", "idle_device") and "cheaper" not in first["advice"] and "longest op" not in first["text"]
