"""The ledger in words, and its record in a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from fake_source import a_run
from hypothesis import given
from hypothesis import strategies as st

from tftracer.contract.ledger import Ledger, LedgerKind
from tftracer.contract.stalls import GapProfile, StallCause
from tftracer.ledger.activity import BUILDING, CHECKPOINTS, EVALUATION, INPUT, STEPS, STOPPED, SUSPENDED
from tftracer.ledger.add_up_activities import SlowEntry
from tftracer.ledger.parts_of_wall_time import ledger, long_duration, permilles
from tftracer.ledger.saved_ledger import Entry, LedgerFacts, StepWait, read
from tftracer.session.summary_of_session import ledger_text
from tftracer.slow.answer.messages import no_gaps
from tftracer.slow.record.sums_by_kind import SlowKinds


def facts(*entries: Entry, **others: Any) -> LedgerFacts:
    given: dict[str, Any] = {"start_s": 4.0, "between_s": 3.0, "end_s": 1.0, "asleep_s": 0.0, "recorded_s": 2.0, "slow": ()}
    return LedgerFacts(started_at=1000.0, until=2000.0, entries=entries, **{**given, **others})


def run(number: int, title: str, fetches: list[str] | None = None, definition: str = "") -> Any:
    return {**a_run(number, []), "title": title, "fetches": fetches or [title], "definition": definition}


def no_lines(run_id: int) -> GapProfile | None:
    return None


def seconds(answer: Ledger) -> dict[LedgerKind, float]:
    assert sum(part["permille"] for part in answer["parts"]) == (1000 if answer["parts"] else 0)
    assert sum(part["duration_s"] for part in answer["parts"]) == pytest.approx(answer["duration_s"])
    assert all(sum(item["duration_s"] for item in part["items"]) <= part["duration_s"] + 1e-9 for part in answer["parts"])
    return {part["kind"]: round(part["duration_s"], 6) for part in answer["parts"]}


def test_parts_add_up_to_the_wall_time() -> None:
    entries = (
        Entry(STEPS, 1, "", 20.0, 100, 0.2),
        Entry(INPUT, 0, "the next element of a dataset", 12.0, 100, None),
        Entry(CHECKPOINTS, 0, "Saver.save", 2.0, 4, None),
    )
    answer = ledger(facts(*entries, asleep_s=8.0), [run(1, "train")], no_lines)
    assert seconds(answer) == {
        "start": 4,
        "input": 12,
        "steps": 20,
        "python": 3,
        "checkpoints": 2,
        "suspended": 8,
        "end": 1,
    }
    assert answer["largest"] == "input" and answer["text"] == "Waiting for input: 12 s, 24% of the wall time."


def test_what_first_calls_took_beyond_the_others_is_building() -> None:
    """Three signatures of one function, one of them called once; a session's run; a function that was called once."""
    runs = [
        run(1, "step (8)", ["step"], "train.py:1"),
        run(2, "step (9)", ["step"], "train.py:1"),
        run(3, "step (7)", ["step"], "train.py:1"),
        run(4, "train_op"),
        run(5, "once", None, "train.py:9"),
    ]
    entries = [Entry(STEPS, 1, "", 3.0, 11, 2.0), Entry(STEPS, 2, "", 2.0, 11, 1.0), Entry(STEPS, 3, "", 1.5, 1, 1.5)]
    entries += [Entry(STEPS, 4, "", 6.0, 3, 4.0), Entry(STEPS, 5, "", 3.0, 1, 3.0)]
    answer = ledger(facts(*entries), runs, no_lines)
    building = {item["run_id"]: round(item["duration_s"], 6) for part in answer["parts"][1:2] for item in part["items"]}
    assert building == {1: 1.9, 2: 0.9, 3: 1.4, 4: 3.0}
    assert seconds(answer)["steps"] == pytest.approx(15.5 - sum(building.values())) and not answer["doubts"]


def test_of_a_function_that_was_traced_for_each_call_it_is_not_known_what_a_step_takes() -> None:
    """The ledger said "Steps 27%" of 198 retraced calls of 13 ms each: without retracing they take 0.3 ms."""
    runs = [run(number, f"step ({number})", ["step"], "train.py:1") for number in (1, 2)]
    answer = ledger(facts(Entry(STEPS, 1, "", 0.020, 1, 0.020), Entry(STEPS, 2, "", 0.013, 1, 0.013)), runs, no_lines)
    (doubt,) = answer["doubts"]
    assert doubt.startswith("No signature of step was called a second time")


def test_slow_steps_take_from_what_they_were() -> None:
    entries = (Entry(STEPS, 1, "", 20.0, 100, None),)
    slow = (SlowEntry(1, "machine", "", True, 5.0, 3), SlowEntry(1, "wait", "load() (train.py:3)", False, 9.0, 2))
    answer = ledger(facts(*entries, slow=slow), [run(1, "train")], no_lines)
    assert seconds(answer) == {"start": 4, "steps": 15, "slow": 8, "end": 1}  # there were 3 s between the steps
    (part,) = (part for part in answer["parts"] if part["kind"] == "slow")
    assert [item["name"] for item in part["items"]] == ["no CPU", "wait between steps: load() (train.py:3)"]


def test_a_stop_that_only_the_watch_saw_is_a_stop() -> None:
    entries = (Entry(STEPS, 1, "", 20.0, 100, None), Entry(SUSPENDED, 0, STOPPED, 2.0, 2, None))
    slow = (SlowEntry(1, "stopped", "", True, 3.0, 3), SlowEntry(1, "stopped", "", False, 1.0, 1))
    answer = ledger(facts(*entries, slow=slow), [run(1, "train")], no_lines)
    assert seconds(answer) == {"start": 4, "steps": 17, "python": 2, "suspended": 6, "end": 1}
    (part,) = (part for part in answer["parts"] if part["kind"] == "suspended")
    assert [(item["name"], item["times"]) for item in part["items"]] == [(STOPPED, 6)]


def test_a_callback_is_one_item_whichever_of_its_lines_was_seen() -> None:
    entries = (Entry(STEPS, 1, "", 10.0, 100, None),)
    slow = (
        SlowEntry(1, "python", "main() (train.py:8)", True, 3.5, 1),
        SlowEntry(1, "callback", "Journal (train.py:35)", True, 3.0, 9),
        SlowEntry(1, "callback", "Journal (train.py:39)", True, 0.75, 5),
        SlowEntry(1, "callback", "Journal", True, 0.25, 1),
        SlowEntry(1, "python", "main() (train.py:9)", True, 0.5, 1),
        SlowEntry(1, "callback", "Saver (train.py:50)", True, 0.25, 1),
    )
    answer = ledger(facts(*entries, slow=slow), [run(1, "train")], no_lines)
    (part,) = (part for part in answer["parts"] if part["kind"] == "slow")
    assert [(item["name"], item["duration_s"], item["times"]) for item in part["items"]] == [
        ("callback: Journal (train.py:35, 39)", 4.0, 15),
        ("python: main() (train.py:8)", 3.5, 1),
        ("python: main() (train.py:9)", 0.5, 1),
        ("callback: Saver (train.py:50)", 0.25, 1),
    ]


def test_slow_steps_of_a_period_that_was_found_later_are_in_the_row_of_its_cause() -> None:
    """A judge read "hook 642 times" and "python 340 times", which were one hook's 980 slow steps and 2 others."""
    sums = SlowKinds()
    for cause, place, times in (("hook", "Plot (hooks.py:8)", 98), ("python", "", 2), ("tensorflow", "", 1)):
        kind: Any = {"run_id": 1, "cause": cause, "place": place, "where": "between", "times": times, "lost_s": 1.0}
        sums.replace(1, [*sums.of_run(1), kind])
    slow = (
        SlowEntry(1, "hook", "Plot (hooks.py:8)", False, 6.4, 64),
        SlowEntry(1, "python", "", False, 3.6, 36),
        SlowEntry(1, "tensorflow", "", True, 0.1, 2),
    )
    entries = Entry(STEPS, 1, "", 20.0, 100, 0.2)
    answer = ledger(facts(entries, slow=slow, between_s=30.0), [run(1, "train")], no_lines, kinds_of=lambda _: sums)
    (part,) = (part for part in answer["parts"] if part["kind"] == "slow")
    assert [(item["name"], round(item["duration_s"], 6), item["times"]) for item in part["items"]] == [
        ("hook between steps: Plot (hooks.py:8)", 9.8, 98),
        ("python between steps", 0.2, 2),
        ("tensorflow", 0.1, 2),
    ]


def test_slow_steps_without_a_line_count_with_their_period_not_as_waits_for_input() -> None:
    """A judge read "input between steps 105.20 s, 90 times": 82 were told as "every 173rd step: write_history()"."""
    sums = SlowKinds()
    for cause, place, times in (("python", "write() (a.py:8)", 201), ("input", "", 308), ("py_function", "read() (a.py:4)", 126)):
        kind: Any = {"run_id": 1, "cause": cause, "place": place, "where": "between", "times": times, "lost_s": 1.0}
        sums.replace(1, [*sums.of_run(1), kind])
    slow = (SlowEntry(1, "python", "write() (a.py:8)", False, 11.9, 119), SlowEntry(1, "python", "", False, 8.2, 82))
    periods: Any = [
        {"run_id": 1, "cause": "python", "place": "write() (a.py:9)"},
        {"run_id": 1, "cause": "py_function", "place": "read() (a.py:4)"},
    ]
    answer = ledger(
        facts(Entry(STEPS, 1, "", 20.0, 100, 0.2), slow=slow, between_s=30.0),
        [run(1, "train")],
        no_lines,
        kinds_of=lambda _: sums,
        periods_of=lambda _: periods,
    )
    (part,) = (part for part in answer["parts"] if part["kind"] == "slow")
    assert [(item["name"], round(item["duration_s"], 6), item["times"]) for item in part["items"]] == [
        ("python between steps: write() (a.py:8)", 20.1, 201)
    ]


@pytest.mark.parametrize(("cause", "said"), [("retrace", True), ("checkpoint", True), ("python", False)])
def test_what_slow_steps_spent_in_other_parts_is_said_to_count_there(cause: StallCause, said: bool) -> None:
    """Three testers read two sums of the slow steps' time, and nothing on their difference."""
    sums = SlowKinds()
    kind: Any = {"run_id": 1, "cause": cause, "place": "", "where": "between", "times": 3, "lost_s": 1.0}
    sums.replace(1, [kind])
    answer = ledger(facts(Entry(STEPS, 1, "", 20.0, 100, None)), [run(1, "train")], no_lines, kinds_of=lambda _: sums)
    assert any("in slow steps count in their own parts" in doubt for doubt in answer["doubts"]) == said


@pytest.mark.parametrize(("length", "said"), [(14.0, True), (0.9, False), (None, False)])
def test_that_the_training_had_no_cpu_is_said(length: float | None, said: bool) -> None:
    answer = ledger(facts(Entry(STEPS, 1, "", 20.0, 100, None), no_cpu_s=length), [run(1, "train")], no_lines)
    assert any("14 s (50%)" in doubt and "no CPU" in doubt for doubt in answer["doubts"]) == said
    assert said == ("no CPU" in ledger_text(answer))


def test_what_steps_wait_for_elements_is_input() -> None:
    entries = [Entry(STEPS, 1, "", 20.0, 100, None), Entry(STEPS, 2, "", 3.0, 100, None)]
    runs = [run(1, "fit"), run(2, "other")]
    answer = ledger(facts(*entries, step_waits=(StepWait("files", 15.0), StepWait("more", 6.0))), runs, no_lines)
    assert seconds(answer) == {"start": 4, "input": 21, "steps": 2, "python": 3, "end": 1}
    assert "pipeline tells: files 15 s" in ledger_text(answer)
    assert any("in the last second of each epoch" in doubt for doubt in answer["doubts"])
    assert not ledger(facts(*entries, step_waits=(StepWait("files", 0.1),)), runs, no_lines)["doubts"]
    all_of_it = ledger(facts(*entries, step_waits=(StepWait("files", 99.0),)), runs, no_lines)
    assert seconds(all_of_it) == {"start": 4, "input": 23, "python": 3, "end": 1}


def test_a_function_that_is_traced_anew_at_each_call_builds() -> None:
    runs = [run(number, f"step ({number})", ["step"], "train.py:1") for number in (1, 2, 3)]
    entries = [Entry(STEPS, number, "", length, 1, length) for number, length in ((1, 4.0), (2, 3.0), (3, 0.5))]
    answer = ledger(facts(*entries), runs, no_lines)
    assert seconds(answer) == {"start": 4, "building": 6, "steps": 1.5, "python": 3, "end": 1}
    assert answer["largest"] == "building" and "input_signature" in answer["advice"]


@pytest.mark.parametrize(("times", "advice"), [(1, "traced once"), (2, "input_signature")])
def test_a_function_that_was_traced_once_is_not_advised_to_keep_its_shapes(times: int, advice: str) -> None:
    entries = [Entry(BUILDING, 0, "tracing step", 6.0, times, None), Entry(STEPS, 1, "", 3.0, 100, 0.03)]
    answer = ledger(facts(*entries), [run(1, "step")], no_lines)
    assert answer["largest"] == "building" and advice in answer["advice"]


def test_lines_between_the_steps_are_those_that_were_sampled() -> None:
    line: Any = {"file": "a/train.py", "line": 7, "function": "load", "owner": "", "share": 0.75, "kind": "script"}
    waiting: Any = {**line, "line": 3, "share": 0.9}
    nearby: Any = {**line, "line": 8, "share": 0.02}
    profile: GapProfile = {**no_gaps(1, "ready", ""), "lines": [waiting, line], "python_lines": [line, nearby], "samples": 99}
    profile["duration_s"] = 10.0
    answer = ledger(facts(Entry(STEPS, 1, "", 20.0, 100, None)), [run(1, "train")], {1: profile}.get)
    (part,) = (part for part in answer["parts"] if part["kind"] == "python")
    assert part["items"] == [{"name": "load (train.py:7)", "duration_s": 2.25, "times": None, "run_id": 1}]
    assert part["text"].startswith("Estimated:") and "for 10 s" in part["text"]
    profile["whole_turns"] = True  # lines of an eager loop's steps are not those between its steps
    answer = ledger(facts(Entry(STEPS, 1, "", 20.0, 100, None)), [run(1, "train")], {1: profile}.get)
    (part,) = (part for part in answer["parts"] if part["kind"] == "python")
    assert part["items"] == [] and part["text"] == "Its lines were not sampled."


def test_what_is_not_known_is_said() -> None:
    assert ledger(None, [], no_lines)["parts"] == [] and "older version" in ledger(None, [], no_lines)["text"]
    nothing = ledger(facts(Entry(BUILDING, 0, "tracing f", 1.0, 1, None), between_s=0.0, end_s=0.0), [], no_lines)
    assert seconds(nothing) == {"building": 1, "unknown": 4}
    input_alone = ledger(facts(Entry(INPUT, 0, "the next element", 1.0, 1, None)), [], no_lines)
    assert seconds(input_alone) == {"input": 1, "unknown": 8}
    lost = ledger(facts(Entry(EVALUATION, 9, "", 1.0, 1, None), recorded_s=None), [], no_lines, steps_lost=7)
    assert len(lost["doubts"]) == 2 and "7 steps" in lost["doubts"][1]


def test_steps_that_take_nearly_all_are_what_there_is_to_win() -> None:
    answer = ledger(facts(Entry(STEPS, 1, "", 1000.0, 9, None)), [run(1, "train")], no_lines)
    assert answer["largest"] == "steps" and "A traced step" in answer["advice"]


def test_a_start_of_a_tenth_is_not_what_there_is_to_win_beside_steps_of_the_rest() -> None:
    started = facts(Entry(STEPS, 1, "", 87.0, 9, None), start_s=8.0, between_s=3.0, end_s=0.0)
    assert ledger(started, [run(1, "train")], no_lines)["largest"] == "steps"
    longer = facts(Entry(STEPS, 1, "", 6.0, 9, None), start_s=8.0, between_s=3.0, end_s=0.0)
    assert ledger(longer, [run(1, "train")], no_lines)["largest"] == "start"
    waits = facts(Entry(STEPS, 1, "", 60.0, 9, None), Entry(INPUT, 0, "the next element", 20.0, 9, None), start_s=19.0)
    assert ledger(waits, [run(1, "train")], no_lines)["largest"] == "input"


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12))
def test_shares_are_rounded_so_that_they_add_up(lengths: list[float]) -> None:
    rounded = permilles(lengths)
    assert sum(rounded) == 1000
    assert all(abs(share - 1000 * length / sum(lengths)) < 1 for share, length in zip(rounded, lengths))


@pytest.mark.parametrize(
    ("length", "text"), [(39780, "11 h 3 min"), (252, "4 min 12 s"), (3599.8, "1 h 0 min"), (59.7, "1 min 0 s"), (3.2, "3.2 s")]
)
def test_long_times_are_told_in_hours_and_minutes(length: float, text: str) -> None:
    assert long_duration(length) == text


def test_a_record_is_read_as_it_was_written_and_nonsense_as_far_as_it_makes_sense() -> None:
    written = facts(
        Entry(STEPS, 1, "", 20.0, 100, 0.5), slow=(SlowEntry(1, "gc", "", True, 5.0, 3),), step_waits=(StepWait("files", 1.0),)
    )
    assert read(asdict(written)) == written
    odd = read({"entries": [{"rank": 99, "own_s": -1}, 5, None], "slow": "x", "start_s": float("nan"), "until": "now"})
    assert odd.wall_s == 0 and ledger(odd, [], no_lines)["parts"] == []


def test_the_summary_has_a_line_a_part() -> None:
    text = ledger_text(ledger(facts(Entry(STEPS, 1, "", 20.0, 100, None)), [run(1, "train")], no_lines))
    assert [line.split("  ")[0] for line in text.splitlines()[:5]] == [
        "Wall time",
        "Start, until the first step",
        "Steps",
        "Between steps",
        "After the last step",
    ]
    assert "71.4%" in text and ledger_text(ledger(None, [], no_lines)) == ""


def test_slow_steps_that_waited_for_their_dataset_are_not_counted_as_waiting_for_it_as_well() -> None:
    slow = (SlowEntry(1, "py_function", "refill() (train.py:9)", True, 5.0, 10),)
    waits = (StepWait("files", 7.0),)
    answer = ledger(facts(Entry(STEPS, 1, "", 20.0, 100, 0.2), slow=slow, step_waits=waits), [run(1, "train")], no_lines)
    seconds = {part["kind"]: part["duration_s"] for part in answer["parts"]}
    assert (seconds["input"], seconds["slow"], seconds["steps"]) == pytest.approx((2.0, 5.0, 13.0))


@pytest.mark.parametrize(("used_s", "is_told"), [(0.9, False), (1.5, True), (None, False)])
def test_the_cpu_time_of_the_tracers_threads_is_told_beside_what_the_training_waited_for(used_s: float, is_told: bool) -> None:
    answer = ledger(facts(Entry(STEPS, 1, "", 20.0, 100, None), own_cpu_s=used_s), [run(1, "train")], no_lines)
    assert (
        any("threads and processes of tftracer used 1.5 s of CPU time (5.4% of one core)" in doubt for doubt in answer["doubts"])
        == is_told
    )
