"""Slow steps in the summary, and their lines in the verdict."""

from __future__ import annotations

import json
from pathlib import Path

from made_stalls import a_busy_second, a_stall, put, record_slow_steps, run_of
from recording import RAW, recording, step

from tftracer.session.saved import open_session
from tftracer.session.summary import render, summarize
from tftracer.slow.recorded import Cause
from tftracer.trace.answers import Answers

SAID = """
Slow steps of train, loss (feeding x): 4
  Every 97th step: 310 ms before the step, CheckpointSaverHook
    (basic_session_run_hooks.py:620). Caught 3 times.
    step 50, before it: 300 ms, usually 2 ms. Python code at load_batch()
      (train.py:88)
"""


def test_the_summary_lists_slow_steps_periods_and_lines(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        record_slow_steps(recorder)
        spool = recorder.session()["file"]
    summary = summarize(open_session(spool))
    said = " ".join(render(summary).split())
    assert " ".join(SAID.split()) in said
    assert "Between steps: 30% of the time. load_batch() (train.py:88) 83%, CheckpointSaverHook" in said
    slow = json.loads(json.dumps(summary))["runs"][0]["slow_steps"]
    assert slow["count"] == 4 == len(slow["longest"]) and slow["periods"][0]["every"] == 97
    assert slow["between_steps"]["lines"][0]["function"] == "load_batch"


def test_steps_without_a_cpu_are_one_line_where_they_are_many(tmp_path: Path) -> None:
    without = Cause("machine", "", None, 0.9)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, a_stall(run, 50), *(a_stall(run, 100 + number, cause=without) for number in range(7)))
        summary = summarize(recorder)
        said = " ".join(render(summary).split())
        assert "Slow steps of train, loss (feeding x): 8 No CPU: 7 times, 2.1 s in all, the longest 300 ms." in said
        assert "step 50, before it" in said and "step 100" not in said
        slow = summary["runs"][0]["slow_steps"]
        assert slow["no_cpu"]["times"] == 7 and len(slow["longest"]) == 8
        assert recorder.run_stalls(run.run_id)["no_cpu"] == slow["no_cpu"]


def test_short_ones_of_unknown_cause_in_a_second_without_a_cpu_are_in_that_line(tmp_path: Path) -> None:
    unknown = Cause("unknown", "", None, None)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, *(a_stall(run, 600 + number, cause=unknown, stacks=(), host=None) for number in range(6)), a_busy_second())
        said = " ".join(render(summarize(recorder)).split())
        assert "No CPU: 6 times, 1.8 s in all, the longest 300 ms. 6 of them were too short to be sure" in said
        assert "step 600" not in said


def test_a_few_steps_without_a_cpu_are_listed_like_others(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, *(a_stall(run, 100 + number, cause=Cause("machine", "", None, 0.9)) for number in range(4)))
        assert recorder.run_stalls(run.run_id)["no_cpu"] is None
        assert "step 100, before it" in render(summarize(recorder))


def test_a_run_without_them_has_no_such_part(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run_of(recorder, 5)
        assert "Slow steps" not in render(summarize(recorder)) and "Between" not in render(summarize(recorder))


def test_a_trace_s_verdict_names_the_lines_before_its_step(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 20)
        step(recorder, 500, raw=RAW)  # a second after the one before it
        put(recorder, a_stall(run, 21))
        (trace,) = recorder.run(run.run_id)["traces"]
        context = recorder.trace_context(trace["id"])
        assert context.before_lines.startswith("load_batch() (train.py:88) 83%") and context.between_lines == ""
        sentences = Answers(recorder.trace_bytes(trace["id"]), context).verdict()["sentences"]
        (outside,) = (sentence for sentence in sentences if sentence["code"] == "between_steps")
        assert "Sampled before this step: load_batch() (train.py:88) 83%" in outside["text"]
