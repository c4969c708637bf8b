"""Which stage limits recorded pipelines, each with one planted bottleneck (tests/data/input_pipelines)."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tftracer.contract.input_pipelines import InputPipeline
from tftracer.errors import FormatError
from tftracer.input_pipelines import model_proto
from tftracer.input_pipelines.answer import RECENT_S, input_pipelines, what_limits
from tftracer.input_pipelines.dataset_code import Transformation
from tftracer.input_pipelines.saved_pipelines import MAX_LOOKS, PipelineFacts, Reading, read, record
from tftracer.session.summary_of_session import pipelines_text

DATA = Path(__file__).parents[1] / "data/input_pipelines"
#: What was planted, the stage that limits, and what the advice names.
PLANTED = [
    ("slow_map", "MapAndBatch", "num_parallel_calls"),
    ("slow_map_serial", "Map", "num_parallel_calls"),
    ("generator", "Generator", "one Python function"),
    ("small_reads", "TFRecord", "larger buffer"),
    ("small_reads_without_a_core", "TFRecord", "larger buffer"),
    ("slow_files", "ParallelInterleaveV4", "cycle_length"),
    ("slow_files_in_turn", "Interleave", "cycle_length"),
    ("slow_branch", "ParallelMapV2", "num_parallel_calls"),
    ("decode", "ParallelMapV2", "num_parallel_calls=tf.data.AUTOTUNE"),
    ("large_batch", "BatchV2", "batch(..., num_parallel_calls"),
    ("no_prefetch", "Map", "prefetch"),
    ("parallelism_1", "MapAndBatch", "num_parallel_calls"),
    ("py_func", "MapAndBatch", "Python"),
    ("cache_miss", "ParallelMapV2", "num_parallel_calls"),
    ("refilled_shuffle", "ParallelMapV2", "num_parallel_calls"),
    ("filter_most", "Filter", "filter batches"),
    ("flat", "FlatMap", "batch() first"),
    ("compressed_records", "TFRecord", "interleave"),
]


def facts_of(name: str) -> PipelineFacts:
    meta: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    for pipeline in meta["pipelines"]:
        pipeline["looks"] = [[*look[:-1], base64.b64decode(look[-1])] for look in pipeline["looks"]]
    return read(meta)


def pipeline(name: str) -> InputPipeline:
    return input_pipelines(facts_of(name), 0.0)["pipelines"][0]


def limiting(answer: InputPipeline) -> list[str]:
    return [stage["name"] for stage in answer["stages"] if stage["is_limiting"]]


@pytest.mark.parametrize(("planted", "stage", "advice"), PLANTED)
def test_the_planted_stage_limits(planted: str, stage: str, advice: str) -> None:
    answer = pipeline(planted)
    assert answer["side"] == "input" and limiting(answer) == [stage], answer["text"]
    assert advice in answer["advice"]
    predicted, rate = answer["predicted_rate"], answer["rate"]
    assert rate and (predicted is None or predicted > rate)


def test_a_python_generator_is_named_by_its_function() -> None:
    known = facts_of("generator")
    steps = (Transformation("Prefetch"), Transformation("from_generator", "load_batch", "train.py:7", python=True))
    (answer,) = input_pipelines(replace(known, pipelines=(replace(known.pipelines[0], steps=steps),)), 0.0)["pipelines"]
    assert ": from_generator(load_batch) at train.py:7 limits it to " in answer["text"]
    assert [stage["name"] for stage in answer["stages"] if stage["function"] == "load_batch"] == ["FlatMap", "Generator"]


@pytest.mark.parametrize("planted", ["slow_step", "cached_step"])
def test_no_stage_limits_a_training_that_is_the_slower_side(planted: str) -> None:
    answer = pipeline(planted)
    assert answer["side"] == "training" and not limiting(answer) and not answer["advice"]
    assert "The loop is the slower side then." in answer["text"]


def test_a_function_that_computes_in_python_may_hold_a_training_up_that_does_not_wait() -> None:
    """It did: its steps took 11 ms in place of 2, for Python ran the function meanwhile."""
    answer = pipeline("python_beside")
    assert answer["side"] == "unknown" and answer["wait"] is not None and answer["wait"] < 0.05
    assert "map(<lambda>) at p10_py_function.py:6 runs in Python beside it" in answer["text"], answer["text"]


def test_no_stage_is_named_behind_a_distribution_strategy() -> None:
    for answer in input_pipelines(facts_of("rebatch"), 0.0)["pipelines"]:
        assert not limiting(answer) and answer["predicted_rate"] is None


def test_a_training_behind_a_distribution_strategy_waits_as_long_as_its_calls_do() -> None:
    """TensorFlow's own times between two calls say 1%; the training waited 86% of the time."""
    facts = facts_of("distributed")
    (answer,) = input_pipelines(facts, 0.0)["pipelines"]
    assert answer["side"] == "unknown" and "not known how long" in answer["text"]
    (only,) = facts.pipelines
    looks = tuple(replace(look, waits=at, waited_s=0.86 * (look.at - only.looks[0].at)) for at, look in enumerate(only.looks))
    (answer,) = input_pipelines(replace(facts, pipelines=(replace(only, looks=looks),)), 0.0)["pipelines"]
    assert answer["side"] == "input" and re.search(
        r"86% of the time \(in the pipeline's last \d+ s\)\. A distribution", answer["text"]
    )


def test_files_whose_reader_is_not_seen_are_not_the_fault_of_a_function() -> None:
    answer = pipeline("small_records_of_new_files")
    assert answer["side"] == "input" and "is not known" in answer["text"] and not limiting(answer)


def test_a_shuffle_that_fills_its_buffer_says_for_how_long() -> None:
    answer = pipeline("shuffle_refill")
    assert "buffer is filling" in answer["text"] and "of 100,000 elements" in answer["text"] and not limiting(answer)


def test_stages_have_the_functions_and_lines_of_the_script() -> None:
    (stage,) = [stage for stage in pipeline("py_func")["stages"] if stage["is_limiting"]]
    assert stage["function"] == "<lambda>" and stage["place"].startswith("cases.py:")
    assert stage["parallelism"] == 2 and stage["parallelism_max"] == 2 and not stage["is_tuned"]
    (prefetch,) = [stage for stage in pipeline("slow_step")["stages"] if stage["name"] == "Prefetch"]
    assert prefetch["buffered"] == prefetch["buffer_size"] == 2


def test_what_keras_takes_out_of_arrays_are_batches() -> None:
    known = facts_of("rebatch")
    assert input_pipelines(known, 0.0)["pipelines"][0]["unit"] == "elements"
    by_keras = replace(known.pipelines[0], steps=(Transformation("ParallelMap", "grab_batch", "array_data_adapter.py:202"),))
    (answer,) = input_pipelines(replace(known, pipelines=(by_keras,)), 0.0)["pipelines"]
    assert answer["unit"] == "batches"


def test_never_more_waiting_than_the_ledger_counted() -> None:
    known = facts_of("slow_map")
    (first,) = known.pipelines
    looks = [
        [*look[:4], 3.0 + 0.01 * at, at + 1, look[-1]] for at, look in enumerate(record(known).meta["pipelines"][0]["looks"])
    ]
    for look in looks:
        del look[3]
    answer = input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]
    assert len(first.looks) == len(looks) and answer["wait"] is not None and answer["wait"] < 0.05
    assert answer["side"] == "training" and not limiting(answer)


def test_a_training_that_pauses_is_not_said_to_wait() -> None:
    """Times between calls of ``next`` are known of the last 100 alone: a pause before them looks as if the training waited."""
    looks = [[*look[:3], 0.0, 0, look[-1]] for look in record(facts_of("slow_step")).meta["pipelines"][0]["looks"]]
    paused = [[2.5 * look[0], *look[1:]] for look in looks]  # the same elements in a longer time
    answer = input_pipelines(read({"pipelines": [{"looks": paused}]}), 0.0)["pipelines"][0]
    assert answer["side"] == "unknown" and answer["wait"] is None and not limiting(answer)
    assert "not known whether the training waits" in answer["text"]
    assert input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]["side"] == "training"


def test_more_calls_than_cores_need_threads_too() -> None:
    """As measured on two cores: num_parallel_calls alone doubles the throughput; with threads for them it is as predicted."""
    (known,) = facts_of("parallelism_1").pipelines
    looks = [[look.at, 0.0, look.at, look.waited_s, look.waits, look.raw] for look in known.looks]  # a core is idle
    answer = input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]
    assert answer["advice"].startswith("It waits more than it computes.")
    assert "private_threadpool_size" in answer["advice"]
    rate, predicted = answer["rate"], answer["predicted_rate"]
    assert rate and predicted and predicted > 4 * rate


def test_files_that_are_read_in_turn_are_read_at_once_instead() -> None:
    """What its inner datasets take is no limit of its own: with more of them at once they take it at the same time."""
    (known,) = facts_of("slow_files_in_turn").pipelines
    looks = [[look.at, 0.05 * look.at, look.at, look.waited_s, look.waits, look.raw] for look in known.looks]  # a core is idle
    answer = input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]
    assert answer["advice"].startswith("It waits more than it computes. Set interleave("), answer["advice"]
    assert answer["rate"] and answer["predicted_rate"] and answer["predicted_rate"] > 4 * answer["rate"]
    (capacity,) = [stage["capacity"] for stage in answer["stages"] if stage["is_limiting"]]
    assert capacity and capacity < 1.1 * answer["rate"]  # with what its inner datasets take


def test_nothing_is_predicted_of_a_batch_that_copies() -> None:
    """Twice as many calls at once gave the same throughput: memory set the limit."""
    (known,) = facts_of("large_batch").pipelines
    looks = [[look.at, look.cpu_s, look.at, look.waited_s, look.waits, look.raw] for look in known.looks]  # a core is idle
    answer = input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]
    assert answer["advice"].startswith("Set batch(..., num_parallel_calls=") and answer["predicted_rate"] is None


def test_no_more_is_predicted_than_the_cores_can_do() -> None:
    """A Keras fit was said to reach 340 batches/s at most; each took 7 ms of two cores."""
    (known,) = facts_of("slow_files_in_turn").pipelines
    looks = [[look.at, 0.2 * look.at, look.at, look.waited_s, look.waits, look.raw] for look in known.looks]
    answer = input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]
    assert (
        answer["rate"] and answer["predicted_rate"] and answer["predicted_rate"] <= 6 * 1.001 * answer["rate"]
    )  # 1.2 cores are there, 0.2 used


def test_a_pipeline_that_has_ended_comes_after_the_one_that_goes_on() -> None:
    (limits,), (trains,) = facts_of("slow_map").pipelines, facts_of("slow_step").pipelines
    answer = input_pipelines(PipelineFacts((replace(limits, is_open=False), trains), (), 0.0), 0.0)
    assert [each["side"] for each in answer["pipelines"]] == ["training", "input"]
    said = " ".join(pipelines_text(answer).split())
    assert said.index("The loop is the slower side") < said.index("limits it")


def test_what_limits_is_told_of_the_one_pipeline_that_holds_the_training_up_just_now() -> None:
    facts = facts_of("slow_map_serial")
    (only,) = facts.pipelines
    now, told = only.looks[-1].at + 1, pipeline("slow_map_serial")
    assert what_limits(facts, now) == (told["text"], told["advice"]) and "limits it to" in told["text"]
    closed, twice = replace(only, is_open=False), replace(only, title="another one")
    for pipelines in [(), (closed,), (only, twice)]:
        assert what_limits(replace(facts, pipelines=pipelines), now) == ("", "")
    assert what_limits(replace(facts, pipelines=(only, closed)), now)[0] == told["text"]
    assert what_limits(facts, now + RECENT_S) == what_limits(None, now) == ("", "")


def test_what_limits_is_not_told_of_the_time_in_which_the_training_began() -> None:
    """ "Generator limits it to 8.19 elements/s" of one that gave 27: beside it TensorFlow had built the function."""
    facts = facts_of("slow_map_serial")
    (only,) = facts.pipelines
    root = only.looks[0].model.root

    def begun(look: Reading) -> Reading:
        nodes = {**look.model.nodes, root: replace(look.model.nodes[root], elements=2)}
        return replace(look, model=replace(look.model, nodes=nodes))

    looks = (*map(begun, only.looks[:2]), *only.looks[2:])
    assert what_limits(replace(facts, pipelines=(replace(only, looks=looks),)), only.looks[-1].at + 1) == ("", "")


def test_a_record_comes_back_as_it_was() -> None:
    for file in DATA.glob("*.json"):
        known = facts_of(file.stem)
        assert read(record(known).meta) == known


def test_a_file_is_believed_as_far_as_types_go() -> None:
    raw = facts_of("slow_map").pipelines[0].looks[0].raw
    looks = [[1.0, 2.0, None, 0.0, 0, each] for each in (raw[:-1], b"", "text", None, *[raw] * 99)]
    known = read({"pipelines": [{"title": 5, "looks": looks, "steps": [None], "history": [[1]]}, None], "unseen": [1, "old"]})
    assert len(known.pipelines[0].looks) <= MAX_LOOKS and known.pipelines[0].title == "" and known.unseen == ("old",)
    assert input_pipelines(known, 0.0)["pipelines"][0]["stages"] == []


def test_a_model_that_is_cut_is_refused_and_a_circle_in_it_ends() -> None:
    raw = facts_of("slow_map").pipelines[0].looks[0].raw
    for end in range(0, len(raw), 7):
        try:
            model_proto.read(raw[:end])
        except FormatError:
            continue
    circle = bytes([10, 10, 8, 1, 18, 6, 8, 1, 18, 0, 112, 1, 16, 1])
    assert model_proto.read(circle).nodes[1].inputs == (1,)
    looks = [[float(at), 0.0, None, 0.0, 0, circle] for at in range(3)]
    assert len(input_pipelines(read({"pipelines": [{"looks": looks}]}), 0.0)["pipelines"][0]["stages"]) == 1


def test_what_cannot_be_looked_into_is_said_with_what_the_ledger_knows() -> None:
    answer = input_pipelines(read({"unseen": ["old"]}), 12.0)
    assert "2.17" in answer["text"] and "waited 12 s" in answer["text"] and not answer["pipelines"]
    assert "A traced step" in input_pipelines(read({"unseen": ["session"]}), 0.0)["text"]
    nothing = input_pipelines(None, 12.0)
    assert not nothing["pipelines"] and not nothing["text"]


def test_the_summary_has_a_line_a_pipeline() -> None:
    text = pipelines_text(input_pipelines(facts_of("no_prefetch"), 0.0))
    assert text.startswith("Input Range → batch → map(f)") and "batches/s then." in text
    assert pipelines_text({"pipelines": [], "text": ""}) == ""


def with_counted_inputs(name: str, elements: int | None) -> InputPipeline:
    """The answer for a pipeline on a machine with an idle core. ``elements``: in the input of each interleave and shuffle."""
    known = facts_of(name)
    (only,) = known.pipelines
    counted = [replace(step, input_elements=elements) if step.kind in ("interleave", "shuffle") else step for step in only.steps]
    looks = tuple(replace(look, idle_s=look.at - only.looks[0].at) for look in only.looks)
    (answer,) = input_pipelines(replace(known, pipelines=(replace(only, steps=tuple(counted), looks=looks),)), 0.0)["pipelines"]
    return answer


def test_no_more_files_are_advised_at_once_than_there_are() -> None:
    usual, few = (with_counted_inputs("slow_files_in_turn", elements) for elements in (None, 3))
    assert "cycle_length=3," not in usual["advice"] and "cycle_length=3," in few["advice"], (usual["advice"], few["advice"])
    assert usual["predicted_rate"] and few["predicted_rate"] and few["predicted_rate"] < usual["predicted_rate"]


def test_a_stage_and_the_training_take_turns_where_a_shuffle_fills_its_buffer_in_each_epoch() -> None:
    usual, refilled, endless = (with_counted_inputs("refilled_shuffle", elements) for elements in (None, 1, 10**9))
    assert usual["predicted_rate"] and refilled["rate"] and refilled["predicted_rate"]
    assert refilled["rate"] < refilled["predicted_rate"] < usual["predicted_rate"]
    assert endless["predicted_rate"] == pytest.approx(usual["predicted_rate"], rel=1e-3)


def test_a_training_whose_calls_for_elements_take_long_is_not_called_the_slower_side() -> None:
    """TensorFlow's times said 3%, the ledger 22%: a function in Python held the training up."""
    (only,) = facts_of("slow_step").pipelines
    looks = tuple(replace(look, waits=at, waited_s=0.22 * (look.at - only.looks[0].at)) for at, look in enumerate(only.looks))
    (answer,) = input_pipelines(PipelineFacts((replace(only, looks=looks),), (), 0.0), 0.0)["pipelines"]
    assert answer["side"] == "unknown" and "22%" in answer["text"] and "not known whether" in answer["text"], answer["text"]
