"""Slow steps in the summary, and their lines in the verdict."""

from __future__ import annotations

import json
from pathlib import Path

from made_stalls import a_period, a_save, a_stall, put, record_slow_steps, run_of
from recording import RAW, recording, step

from tftracer.session.files.saved import open_session
from tftracer.session.summary_of_session import render, summarize
from tftracer.slow.watch_results import Cause, OtherCause
from tftracer.trace.answers import Answers

SAID = """
Slow steps of train, loss (feeding x): 4
  Every 97th step: the hook CheckpointSaverHook
    (basic_session_run_hooks.py:620). 3 slow steps, 894 ms longer than usual in
    all, the longest 300 ms, last at step 291.
  Python code at load_batch() (train.py:88). 1 slow step, 298 ms longer than usual
    in all, the longest 300 ms, last at step 50.
  The longest of all these:
    step 50, before it: 300 ms, usually 2 ms. Python code at load_batch() (train.py:88), in sort
      (numpy/_core/fromnumeric.py)
    step 97, before it: 300 ms, usually 2 ms. The hook CheckpointSaverHook
"""


def test_the_summary_says_that_steps_with_two_causes_are_in_two_groups(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        others = (OtherCause(Cause("lock", "thread loader", None, 0.3), 0.1),)
        put(recorder, a_stall(run, 50, others=others), a_stall(run, 97))
        said = " ".join(render(summarize(recorder)).split())
    assert "train, loss (feeding x): 2 (those with two causes are in two groups) Python code at load_batch()" in said


def test_the_summary_lists_slow_steps_periods_and_lines(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        record_slow_steps(recorder)
        spool = recorder.session()["file"]
    summary = summarize(open_session(spool))
    said = " ".join(render(summary).split())
    assert " ".join(SAID.split()) in said
    assert "Between steps: 30% of the 10 s that were sampled last. Of what made no step slow, by " in said
    slow = json.loads(json.dumps(summary))["runs"][0]["slow_steps"]
    assert slow["count"] == 4 == len(slow["longest"]) and slow["periods"][0]["every"] == 97
    assert slow["between_steps"]["lines"][0]["function"] == "load_batch"


def test_an_ended_period_ends_at_its_own_last_step(tmp_path: Path) -> None:
    """A judge read "last at step 74,386. It has ended" of a period that had ended after step 62,034."""
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, *(a_save(run, step) for step in (97, 194, 291, 700)), a_period(run, first_step=97))
        put(recorder, a_period(run, first_step=97, occurrences=0))
        said = " ".join(render(summarize(recorder)).split())
    assert "last at step 700. The period ended after step 291." in said


def test_what_the_machine_did_comes_last(tmp_path: Path) -> None:
    without = Cause("machine", "", None, 0.9)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, a_stall(run, 50), *(a_stall(run, 100 + number, cause=without) for number in range(7)))
        summary = summarize(recorder)
        said = " ".join(render(summary).split())
        assert "8 Python code at load_batch() (train.py:88). 1 slow step," in said
        assert (
            "No CPU: other processes or threads had them. 7 slow steps, 2.09 s longer than usual in all, the longest 300 ms"
            in said
        )
        groups = summary["runs"][0]["slow_steps"]["groups"]
        assert [group["cause"] for group in groups] == ["python", "machine"] and groups == recorder.all_stalls()["groups"]


def test_a_run_without_them_has_no_such_part(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run_of(recorder, 5)
        assert "Slow steps" not in render(summarize(recorder)) and "Between" not in render(summarize(recorder))


def test_what_a_trace_says_first_is_its_step_s_cause_though_that_comes_later(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 20)
        step(recorder, 500, raw=RAW)  # a second after the one before it
        assert recorder.flush()
        (trace,) = recorder.run(run.run_id)["traces"]
        assert trace["headline"] and "load_batch" not in trace["headline"]
        put(recorder, a_stall(run, 21))
        (trace,) = recorder.run(run.run_id)["traces"]
        context = recorder.trace_context(trace["id"])
        (slow,) = context.slow_times
        assert slow["lines"].startswith("load_batch() (train.py:88) 83%") and context.between_lines == ""
        first = Answers(recorder.trace_bytes(trace["id"]), context).verdict()["sentences"][0]
        assert first["text"].startswith(
            "Before this step 300 ms passed, usually 2 ms. Python code at load_batch() (train.py:88), in"
        )
        assert first["text"] == trace["headline"]


def test_where_the_watch_knows_no_cause_the_step_s_trace_is_read(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 20)
        step(recorder, 21, raw=RAW)
        assert recorder.flush()
        put(recorder, a_stall(run, 21, inside=True, cause=Cause("unknown", "", None, None), doubt="It is not known."))
        (trace,) = recorder.run(run.run_id)["traces"]
        (group,) = recorder.all_stalls()["groups"]
        assert group["trace_id"] == trace["id"]
        said = " ".join(render(summarize(recorder)).split())
        assert f"Trace {trace['id']}, of step 21, says: {trace['headline'][:60]}" in said


def test_signatures_that_were_called_once_are_one_row(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run_of(recorder, 600)
        spool = recorder.session()["file"]
    summary = summarize(open_session(spool))
    (loop,) = summary["runs"]
    once = [{**loop, "title": f"train_step ({size})", "steps": 1, "max_s": size / 10} for size in range(1, 9)]
    said = render({**summary, "runs": [loop, *once]})
    assert "train_step" not in said and "8 runs of one or few steps" in said and "800 ms" in said
    assert render({**summary, "runs": [loop, *once[:2]]}).count("train_step") == 2
