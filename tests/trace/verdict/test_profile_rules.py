"""What the verdict says of steps in profiles, on real ones that were made slow by one thing each."""

from __future__ import annotations

from typing import Any

import numpy as np
import plain_protobuf
import pytest
from traces import TF_DATA, N, make_trace

from tftracer.trace.analyses.over_traces import OpTotals, over_traces
from tftracer.trace.answers import Answers
from tftracer.trace.model import CpuUse, NodeKind, TraceContext
from tftracer.trace.verdict.verdict import verdict

MS = 1_000_000


def sentences(name: str, context: TraceContext | None = None) -> list[Any]:
    return list(Answers(plain_protobuf.content(name), context or TraceContext()).verdict()["sentences"])


def first(name: str, context: TraceContext | None = None) -> Any:
    return sentences(name, context)[0]


def test_the_stage_of_tf_data_that_a_step_waits_for() -> None:
    sentence = first("slow_map_tf2.21.xplane.pb.gz")
    assert sentence["code"] == "input_bound" and sentence["share"] > 0.9
    assert (
        "The stage that holds it up is Map (Root > Prefetch > Map), which runs for 50.6 ms of that, one call" in sentence["text"]
    )
    assert "A Python function of tf.data runs for 50.4 ms of that time." in sentence["text"]
    assert "TensorFlow ops" in sentence["advice"] and sentence["numbers"]["python_ns"] > 50 * MS


def test_a_stage_that_began_before_the_trace_is_only_probably_the_cause() -> None:
    sentence = first("slow_map_begun_before_tf2.15.xplane.pb.gz")
    assert sentence["code"] == "input_bound" and "is probably Map (Root > Prefetch > Map)" in sentence["text"]
    assert "what it reads took 31.5 µs" in sentence["text"] and "num_parallel_calls" in sentence["advice"]
    assert "stage_ns" not in sentence["numbers"]


def test_a_stage_that_was_at_work_before_the_trace_is_not_named_for_a_wait_that_usual_steps_do_not_have() -> None:
    """On a busy machine a step of 451 µs waited 4.6 ms for a buffer of tf.data; what fills it costs nothing, and had no CPU."""
    sentence = first("slow_map_begun_before_tf2.15.xplane.pb.gz", TraceContext(step_s=0.06, median_s=0.002))
    assert sentence["code"] == "input_bound" and "holds it up" not in sentence["text"]
    assert "for tf.data, far longer than usual steps take in all (2 ms), so usual steps hardly wait." in sentence["text"]


@pytest.mark.parametrize(("median_s", "is_named"), [(0.0035, True), (0.0029, False)])
def test_a_wait_beside_which_a_step_is_as_long_as_usual_ones_is_laid_to_no_stage(median_s: float, is_named: bool) -> None:
    """1 of 4 ms. Usual steps that take no more than the other 3 hardly wait; here the thread that prefetches had no CPU."""
    stages = [
        N(name, name.rpartition(":")[2], MS // 10, MS, TF_DATA, NodeKind.INPUT)
        for name in ("Iterator::Root", "Iterator::Root::Prefetch")
    ]
    below = N("Iterator::Root::Prefetch::Repeat", "Repeat", MS, MS + 5_000, TF_DATA, NodeKind.INPUT)
    waits = N("next", "IteratorGetNext", 0, MS, kind=NodeKind.INPUT)
    trace = make_trace([waits, *stages, below, *[N(f"m{i}", "MatMul", (2 + i) * MS // 2, (3 + i) * MS // 2) for i in range(6)]])
    trace.known_edges = (np.array([1], np.int32), np.array([0], np.int32))
    found = next(s for s in verdict(trace, TraceContext(median_s=median_s), [])["sentences"] if s["code"] == "input_bound")
    assert ("has nothing ready" in found["text"]) == is_named
    assert is_named or "usual steps hardly wait" in found["text"]


def without_a_cpu(waits_ns: int) -> list[Any]:
    """The first sentences about a step of 10 ms: the thread that asks for the batch had no CPU for so long, then it computes."""
    root = N("Iterator::Root", "Root", waits_ns - MS // 10, waits_ns, TF_DATA, NodeKind.INPUT)
    waits = N("next", "IteratorGetNext", 0, waits_ns, kind=NodeKind.INPUT)
    each = (10 * MS - waits_ns) // 10
    trace = make_trace([waits, root, *[N(f"m{i}", "MatMul", waits_ns + i * each, waits_ns + (i + 1) * each) for i in range(10)]])
    trace.known_edges = (np.array([1], np.int32), np.array([0], np.int32))
    busy = CpuUse(wall_s=0.011, cpu_s=0.004, job_cpu_s=0.004, run_queue_s=0.030, cpus=2.0)
    return verdict(trace, TraceContext(cpu_use=busy), [])["sentences"]


def test_a_program_of_xla_does_not_count_beside_its_ops() -> None:
    program = N("XlaRun", "XlaRun", 0, 10 * MS)
    trace = make_trace([program, *[N(f"m{i}", "MatMul", i * MS, (i + 1) * MS) for i in range(4)]])
    (computes, *_) = verdict(trace, TraceContext(), [])["sentences"]
    assert computes["text"].startswith("Most op time goes into 4 ops of type MatMul, with 100% of the total op time.")


def test_a_wait_for_input_on_a_busy_machine_in_which_tf_data_does_not_run() -> None:
    found, then = without_a_cpu(55 * MS // 10)[:2]
    assert "the thread that asks tf.data for the batch does not run" in found["text"] and then["code"] == "busy_machine"


def test_what_a_step_computes_comes_before_a_shorter_wait_for_a_cpu() -> None:
    computes, waits = without_a_cpu(3 * MS)[:2]
    assert computes["text"].startswith("Most op time goes into 10 ops of type MatMul")
    assert "The step is 70% compute, 30% input." in computes["text"]
    assert "does not run" in waits["text"]


def test_of_a_distribution_strategy_the_datasets_own_stage_is_named() -> None:
    sentence = next(s for s in sentences("slow_map_mirrored_tf2.21.xplane.pb.gz") if s["code"] == "input_bound")
    assert "is Map (Root > Prefetch > Rebatch > Map)" in sentence["text"]


def test_what_tf_data_does_ahead_of_the_step_is_no_wait() -> None:
    step = [N(f"m{i}", "MatMul", i * 2 * MS, (i + 1) * 2 * MS) for i in range(3)]
    ahead = [
        N(name, op, 6 * MS, 9 * MS, TF_DATA, NodeKind.INPUT)
        for name, op in (("f", "PyFunc"), ("Iterator::Root::Prefetch::Map", "Map"))
    ]
    answer = verdict(make_trace([*step, N("last", "Add", 9 * MS, 10 * MS), *ahead]), TraceContext(), [])
    assert "input_bound" not in [s["code"] for s in answer["sentences"]]
    assert "python_function" not in [s["code"] for s in answer["sentences"]]


@pytest.mark.parametrize(("op", "advice"), [("MatMul", "Make these functions cheaper"), ("PyFunc", "Write the Python function")])
def test_functions_of_tf_data_that_run_all_the_time_are_what_a_step_waits_for(op: str, advice: str) -> None:
    """Two threads of map have both CPUs: the thread that asks for the batch gets one at the end of the wait."""
    root = N("Iterator::Root", "Root", 39 * MS // 10, 4 * MS, TF_DATA, NodeKind.INPUT)
    ops = [N(f"m{i}", op, i * MS, (i + 1) * MS, TF_DATA, NodeKind.INPUT) for i in range(4)]
    waits = N("next", "IteratorGetNext", 0, 4 * MS, kind=NodeKind.INPUT)
    trace = make_trace([waits, root, *ops, N("a", "Add", 4 * MS, 5 * MS)])
    trace.known_edges = (np.array([1], np.int32), np.array([0], np.int32))
    found = verdict(trace, TraceContext(), [])["sentences"][0]
    assert found["code"] == "input_bound" and "The trace does not show why" not in found["text"]
    assert f"For 4 ms of that functions of tf.data run in other threads (the longest op is m0 ({op}))" in found["text"]
    assert found["text"].endswith("the thread that asks for the batch runs for 100 µs.") and found["advice"].startswith(advice)


@pytest.mark.parametrize(("count", "is_named"), [(2_000, True), (20, False)])
def test_very_many_small_elements_hold_up_the_stage_that_gets_them(count: int, is_named: bool) -> None:
    """Repeat hands 2,000 elements on, each in a microsecond: not it holds the step up, and a cache behind it would never end."""
    each = 4 * MS // count
    batch = "Iterator::Root::BatchV2"
    repeats = [
        N(f"{batch}::ForeverRepeat", "ForeverRepeat", i * each, (i + 1) * each - 1, TF_DATA, NodeKind.INPUT) for i in range(count)
    ]
    stages = [N(name, name.split("::")[-1], 0, 4 * MS, TF_DATA, NodeKind.INPUT) for name in ("Iterator::Root", batch)]
    waits = N("next", "IteratorGetNext", 0, 4 * MS, kind=NodeKind.INPUT)
    trace = make_trace([waits, *stages, *repeats, N("a", "Add", 4 * MS, 5 * MS)])
    trace.known_edges = (np.array([1], np.int32), np.array([0], np.int32))
    found = verdict(trace, TraceContext(), [])["sentences"][0]
    assert found["code"] == "input_bound"
    assert ("is BatchV2 (Root > BatchV2)" in found["text"] and "It gets 2,000 elements one by one" in found["text"]) == is_named
    assert ("batch right behind the source" in found["advice"]) == is_named


def of_many_elements(source: str, functions_ns: int = 0, advice: str = "") -> Any:
    """The sentence on a step that waits 4 ms while 2,000 elements go from a source to their batch. ``functions_ns``: of each
    element's 2 µs a MatMul runs so long in a function of tf.data. ``advice``: what the running pipeline told."""
    batch, each = "Iterator::Root::BatchV2", 2_000
    elements = [
        N(f"{batch}::{source}", source, i * each, (i + 1) * each - 1, TF_DATA, NodeKind.INPUT) for i in range(4 * MS // each)
    ]
    ops = [N(f"f{i}", "MatMul", i * each, i * each + functions_ns, TF_DATA, NodeKind.INPUT) for i in range(4 * MS // each)]
    stages = [N(name, name.split("::")[-1], 0, 4 * MS, TF_DATA, NodeKind.INPUT) for name in ("Iterator::Root", batch)]
    waits = N("next", "IteratorGetNext", 0, 4 * MS, kind=NodeKind.INPUT)
    trace = make_trace([waits, *stages, *elements, *ops * (functions_ns > 0), N("a", "Add", 4 * MS, 5 * MS)])
    trace.known_edges = (np.array([1], np.int32), np.array([0], np.int32))
    context = TraceContext(input_text="The training waits: it is slow." if advice else "", input_advice=advice)
    return verdict(trace, context, [])["sentences"][0]


def test_a_source_that_gives_very_many_small_elements() -> None:
    """Slices of an array, batched by 20,000: the advice was to let map work ahead, of which there is none."""
    found = of_many_elements("TensorSlice")
    assert (
        "is TensorSlice (Root > BatchV2 > TensorSlice)" in found["text"] and "It gives 2,000 elements one by one" in found["text"]
    )
    assert "batch right behind the source" in found["advice"]


def test_batching_first_is_no_advice_where_functions_take_the_time_or_the_running_pipeline_told_another() -> None:
    assert "batch right behind the source" in of_many_elements("ForeverRepeat", functions_ns=200)["advice"]
    assert "batch right behind the source" not in of_many_elements("ForeverRepeat", functions_ns=1_800)["advice"]
    told = "It uses the cores that there are: make it cheaper, cache() its result, or use the tf.data service."
    assert of_many_elements("ForeverRepeat", advice=told)["advice"] == told


@pytest.mark.parametrize("name", ["convnet_tf2.15.xplane.pb", "convnet_tf2.21.xplane.pb"])
def test_nothing_stands_out_in_a_small_network(name: str) -> None:
    assert [s["code"] for s in sentences(name)] == ["balanced"]


def test_a_call_that_traced_its_function() -> None:
    sentence = first("retraced_tf2.21.xplane.pb.gz")
    assert sentence["code"] == "retraced" and sentence["share"] > 0.9
    assert (
        "train_step was traced anew in this call: 171 ms of its 180 ms (95%) passed before the function ran." in sentence["text"]
    )
    assert "It has been traced 5 times so far. Which argument changed is not known." in sentence["text"]
    assert "input_signature" in sentence["advice"]
    changed = "argument 1 changed from x: float32[35,64] to x: float32[36,64]"
    sentence = first("retraced_tf2.21.xplane.pb.gz", TraceContext(retraced=changed))
    assert sentence["text"].endswith(f" Compared with its most similar earlier tracing, {changed}.")


def test_calls_that_trace_nothing_are_not_blamed() -> None:
    for name in ("slow_map_tf2.21.xplane.pb.gz", "convnet_tf2.15.xplane.pb", "recompiled_tf2.15.xplane.pb.gz"):
        assert "retraced" not in [s["code"] for s in sentences(name)]


def test_a_step_in_which_xla_compiles() -> None:
    sentence = first("recompiled_tf2.21.xplane.pb.gz", TraceContext(step=7))
    assert sentence["code"] == "compiling" and sentence["share"] == pytest.approx(0.79, abs=0.01)
    assert (
        sentence["text"].endswith("It had compiled 7 programs of train_step when this profile ended; this is step 7.")
        and "shape" in sentence["advice"]
    )
    assert "one_op" not in [s["code"] for s in sentences("recompiled_tf2.21.xplane.pb.gz")]


def test_a_profile_that_does_not_show_when_xla_compiles() -> None:
    """TensorFlow 2.15 lists the programs that it has compiled, and nothing of the compiling."""
    sentence = first("recompiled_tf2.15.xplane.pb.gz", TraceContext(step=9))
    assert (
        sentence["code"] == "compiling" and "9 programs of train_step when this profile ended; this is step 9" in sentence["text"]
    )
    assert "does not show how long" in sentence["text"] and sentence["numbers"]["compile_ns"] == 0
    for step in (None, 100):  # a program for one step in ten says nothing of this one
        (only,) = sentences("recompiled_tf2.15.xplane.pb.gz", TraceContext(step=step))
        assert only["code"] == "one_op" and "shows nothing of what runs in it" in only["text"]


def test_a_compiled_function_that_does_not_compile_in_this_step() -> None:
    assert "compiling" not in [s["code"] for s in sentences("xla_cpu_tf2.21.xplane.pb.gz", TraceContext(step=5))]


def test_tiny_ops_that_the_profile_leaves_out() -> None:
    """Of 400 turns of a loop over scalars it names one op: the executor's turns tell of the others."""
    sentence = first("tiny_ops_tf2.21.xplane.pb.gz")
    assert sentence["code"] == "tiny_ops" and sentence["share"] > 0.9 and sentence["numbers"]["turns"] == 3_716
    assert "that the profile does not name, in 3,716 turns" in sentence["text"] and "jit_compile=True" in sentence["advice"]


@pytest.mark.parametrize(("op", "names_xla"), [("Sin", True), ("ReadVariableOp", False)])
def test_xla_is_named_where_it_would_fuse_most_of_the_tiny_ops(op: str, names_xla: bool) -> None:
    nodes = [N(f"a{i}", op, i * 5_000, i * 5_000 + 3_000) for i in range(1_200)]
    sentence = verdict(make_trace(nodes), TraceContext(), [])["sentences"][0]
    assert sentence["code"] == "tiny_ops" and ("1,200 are elementwise: XLA" in sentence["text"]) == names_xla


@pytest.mark.parametrize("ahead_ms", [6, 3])
def test_functions_of_tf_data_that_run_beside_idle_time_are_named_as_a_possible_reason(ahead_ms: int) -> None:
    root = N("Iterator::Root", "Root", 0, 1, TF_DATA, NodeKind.INPUT)
    hue = N("hue", "AdjustHue", 2 * MS, (2 + ahead_ms) * MS, TF_DATA, NodeKind.INPUT)
    trace = make_trace([N("a", "Add", 0, MS), root, hue, N("b", "Add", 9 * MS, 10 * MS)])
    idle = verdict(trace, TraceContext(), [])["sentences"][0]
    beside = f"Functions of tf.data run in other threads for {ahead_ms} ms of the step (the longest op is hue (AdjustHue))"
    assert (beside in idle["text"]) == (ahead_ms > 5) != ("The trace does not show why" in idle["text"])
    assert idle["advice"].startswith("Make these functions cheaper") == (ahead_ms > 5)


@pytest.mark.parametrize(("worked_ms", "waits"), [(0.05, False), (9.0, True)])
def test_usual_steps_do_not_wait_for_stages_that_hardly_work(worked_ms: float, waits: bool) -> None:
    """On a busy machine usual steps took longer than this one, whose dataset repeats one tensor."""
    stage = N("Iterator::Root::Prefetch", "Prefetch", 0, int(worked_ms * MS), TF_DATA, NodeKind.INPUT)
    nodes = [N("next", "IteratorGetNext", 0, MS // 100, kind=NodeKind.INPUT), N("m", "MatMul", MS, 5 * MS), stage]
    context = TraceContext(step=60, step_s=0.0055, median_s=0.030, trace_level="profile")
    found = verdict(make_trace(nodes), context, [])["sentences"]
    assert any("usual steps probably wait" in each["text"] for each in found) == waits
    of_few = [nodes[0], *[N(f"m{i}", "MatMul", (1 + i) * MS, (2 + i) * MS) for i in range(4)], stage]
    first = verdict(make_trace(of_few), context, [])["sentences"][0]["text"]
    assert ("They may wait for input (next (IteratorGetNext))" in first) != waits
    waited = OpTotals(3e7, 3e7, 0, ["next", "m"], ["IteratorGetNext", "MatMul"], [25.0 * MS, 4.0 * MS], [1, 1], [0, 1])
    own = OpTotals(**Answers(None, context, trace=make_trace(nodes)).op_totals("name"))
    found = verdict(make_trace(nodes), context, [], times=over_traces([own, waited]))["sentences"]
    assert "usual steps probably wait" in found[0]["text"], "another trace of the run waited"
