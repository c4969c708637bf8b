"""Groups of slow steps: what costs most leads, what tells nothing comes last."""

from __future__ import annotations

from typing import Any

from made_stalls import LOAD, a_period, a_save, a_stall

from tftracer.run_handle import RunHandle
from tftracer.slow.answer.answers import stalls_of
from tftracer.slow.answer.groups import groups, headline
from tftracer.slow.answer.messages import period_message, stall_message
from tftracer.slow.answer.texts import step_text
from tftracer.slow.record.kept_slow_steps import SlowLog, StallState
from tftracer.slow.record.sums_by_kind import Places
from tftracer.slow.watch_results import Cause
from tftracer.storage.spool import NOWHERE

UNKNOWN, MACHINE = Cause("unknown", "", None, None), Cause("machine", "", None, 0.9)


def log_of(*stalls: Any, periods: Any = ()) -> SlowLog:
    log = SlowLog()
    for number, stall in enumerate(stalls, 1):
        log.add(StallState(stall_message(number, stall, 0.0), number, False, NOWHERE))
    for period in periods:
        log.put_period(period_message(period))
    return log


def test_a_period_of_unknown_cause_is_a_group_of_its_own() -> None:
    run = RunHandle("train", (), (), "")
    noise = [a_stall(run, step, cause=UNKNOWN, end_ns=step * 2_000_000 + 40_000_000) for step in (5, 120, 333)]
    regular = [a_stall(run, step, cause=UNKNOWN) for step in range(97, 486, 97)]
    period = a_period(run, cause=UNKNOWN, occurrences=5, last_step=485, next_step=582, first_step=97)
    log = log_of(*noise, *regular, a_save(run, 250), periods=[period])
    first, save, rest = groups(log, run.run_id, 500)
    assert headline(log, run.run_id, 500, {}) == (first["text"], None) == ("Every 97th step: the cause is not known", None)
    assert (first["times"], sorted(first["stalls"])) == (5, [4, 5, 6, 7, 8])
    assert (save["cause"], rest["cause"], rest["times"], sorted(rest["stalls"])) == ("hook", "unknown", 3, [1, 2, 3])


def test_a_period_whose_slow_steps_are_mostly_of_other_groups_is_none_of_unknown_cause() -> None:
    """Of none that is left it would divide by zero; of one that is left it would say "once"."""
    run = RunHandle("train", (), (), "")
    regular = [a_stall(run, step, cause=UNKNOWN) for step in range(61, 306, 61)]
    one = a_period(run, cause=UNKNOWN, steps=61, occurrences=5, last_step=305, last_call=305, next_step=366, first_step=61)
    other = a_period(run, cause=UNKNOWN, occurrences=5, last_step=485, next_step=582, first_step=97)
    for left in (0, 1):
        more = [a_stall(run, step, cause=UNKNOWN) for step in (97,)[:left]]
        every = groups(log_of(*regular, *more, periods=[one, other]), run.run_id, 500)
        texts = ["Every 61st step: the cause is not known", "The cause is not known"]
        assert [(group["text"], group["times"]) for group in every] == list(zip(texts, [5, left]))[: 1 + left]


def test_a_period_whose_slow_steps_have_several_known_causes_takes_none_of_those_of_unknown_cause() -> None:
    """A shuffle's refill each 600th step, in three ways; many slow steps of unknown cause have made way."""
    run = RunHandle("train", (), (), "")
    kinds = [Cause(kind, "", LOAD._replace(function=kind), 0.9) for kind in ("input", "python", "wait")]
    regular = [a_stall(run, 60 * number, cause=kinds[number % 3]) for number in range(1, 10)]
    noise = [a_stall(run, 5 + 7 * number, cause=UNKNOWN) for number in range(300)]
    period = a_period(run, cause=UNKNOWN, steps=60, occurrences=9, last_step=540, last_call=540, next_step=600, first_step=60)
    told = groups(log_of(*noise, *regular, periods=[period]), run.run_id, 2200)
    assert not any(group["text"].startswith("Every") and group["cause"] == "unknown" for group in told)
    assert [group["times"] for group in told if group["cause"] == "unknown"] == [300]


def test_a_slow_step_of_another_cause_is_none_of_a_period() -> None:
    run = RunHandle("train", (), (), "")
    regular = [a_save(run, step) for step in range(97, 486, 97)]
    other, unknown = a_stall(run, 194), a_stall(run, 388, cause=UNKNOWN)
    log = log_of(*regular, other, unknown, periods=[a_period(run, occurrences=5, last_step=485, next_step=582, first_step=97)])
    every = {stall["id"]: stall["every"] for stall in stalls_of(log, run.run_id, {})}
    assert [number for number, steps in every.items() if steps is None] == [6]


def test_a_period_of_unknown_cause_that_ended_is_not_told_and_its_longest_is_its_own() -> None:
    run = RunHandle("train", (), (), "")
    regular = [a_stall(run, step, cause=UNKNOWN) for step in range(97, 486, 97)]
    longer = a_stall(run, 300, cause=UNKNOWN, end_ns=10**10)
    period = a_period(run, cause=UNKNOWN, median_s=0.3, occurrences=5, last_step=485, next_step=582, first_step=97)
    first, rest = groups(log_of(*regular, longer, periods=[period]), run.run_id, 500)
    assert first["longest_s"] == 0.3 and rest["longest_s"] > 9
    (left,) = groups(log_of(*regular, longer, periods=[period._replace(next_step=None)]), run.run_id, 900)
    assert (left["times"], left["periods"]) == (6, [])


def test_a_period_of_which_some_steps_are_slow_says_how_many() -> None:
    run = RunHandle("train", (), (), "")
    period = a_period(run, steps=100, occurrences=12, last_step=2001, last_call=2001, next_step=2101, first_step=101)
    regular = [a_save(run, step) for step in range(101, 2002, 100) if step % 300 != 1][:12]
    (group,) = groups(log_of(*regular, periods=[period]), run.run_id, 2002)
    assert group["text"].startswith("Every 100th step (60% of them): the hook CheckpointSaverHook")


def test_a_period_that_went_on_a_step_off_is_told_once() -> None:
    run = RunHandle("train", (), (), "")
    saves = [a_save(run, step) for step in (*range(97, 486, 97), *range(583, 972, 97))]
    before = a_period(run, occurrences=5, last_step=485, last_call=485, next_step=None, first_step=97)
    now = a_period(run, occurrences=5, last_step=971, last_call=971, next_step=1068, first_step=583)
    (group,) = groups(log_of(*saves, periods=[before, now]), run.run_id, 1000)
    assert [period["next_step"] for period in group["periods"]] == [1068] and "until" not in group["text"]


def test_a_group_without_a_line_names_the_newest_trace_of_its_steps() -> None:
    run = RunHandle("train", (), (), "")
    regular = [a_stall(run, step, cause=UNKNOWN, inside=True) for step in range(97, 486, 97)]
    period = a_period(run, cause=UNKNOWN, occurrences=5, last_step=485, next_step=582, first_step=97, inside=True)
    log = log_of(*regular, a_stall(run, 250, inside=True), periods=[period])
    traces = {194: 3, 388: 7, 250: 8, 99: 9}
    unknown, of_a_line = groups(log, run.run_id, 500, traces)
    assert (unknown["cause"], unknown["trace_id"], of_a_line["trace_id"]) == ("unknown", 7, None)
    assert headline(log, run.run_id, 500, traces) == (unknown["text"], 7)
    assert headline(log_of(a_stall(run, 250, inside=True)), run.run_id, 500, traces)[1] is None


def test_the_headline_follows_slow_steps_traces_and_the_end_of_a_group() -> None:
    run = RunHandle("train", (), (), "")
    log = log_of(*(a_stall(run, step, cause=UNKNOWN, inside=True) for step in (100, 130, 150)))
    assert headline(log, run.run_id, 160, {}) == headline(log, run.run_id, 162, {}) == ("The cause is not known", None)
    assert headline(log, run.run_id, 163, {130: 4}) == ("The cause is not known", 4)
    log.add(StallState(stall_message(4, a_save(run, 163), 0.0), 4, False, NOWHERE))
    (saved, unknown) = groups(log, run.run_id, 164)
    assert headline(log, run.run_id, 164, {}) == (f"{saved['text']} (298 ms of that)", None)
    assert saved["text"] != unknown["text"]


def test_a_headline_says_how_much_passed_without_a_cpu_if_that_is_most() -> None:
    """ "440 slow steps took 20 s more than usual. Steps of another run (180 ms of that)": nearly all had no CPU."""
    run = RunHandle("train", (), (), "")
    machine = [a_stall(run, step, cause=Cause("machine", "", None, 0.9)) for step in range(100, 1100, 100)]
    log = log_of(*machine, a_stall(run, 1150))
    (own, _) = groups(log, run.run_id, 1200)
    assert headline(log, run.run_id, 1200, {})[0] == f"{own['text']} (298 ms of that, and 2.98 s without a CPU)"


def test_the_headline_names_no_trifle() -> None:
    run = RunHandle("train", (), (), "")
    unknown = [a_stall(run, step, cause=UNKNOWN, inside=True) for step in range(100, 400)]
    log = log_of(*unknown, a_save(run, 463))  # the save lost a three-hundredth
    assert groups(log, run.run_id, 470)[0]["cause"] == "hook"
    assert headline(log, run.run_id, 470, {})[0] == "The cause is not known"


def test_a_slow_step_of_unknown_cause_is_of_a_period_on_its_own_side_of_the_step() -> None:
    run = RunHandle("train", (), (), "")
    period = a_period(run, occurrences=5, last_step=485, next_step=582, first_step=97)
    before, inside = (a_stall(run, 388, cause=UNKNOWN, inside=inside) for inside in (False, True))
    assert [stall["every"] for stall in stalls_of(log_of(before, inside, periods=[period]), run.run_id, {})] == [97, None]


def test_what_ended_long_ago_and_what_the_machine_did_lead_nothing() -> None:
    run = RunHandle("train", (), (), "")
    early = [a_stall(run, step) for step in range(50, 100, 10)]
    late = [a_save(run, 9000)]
    machine = [a_stall(run, 8000 + step, cause=MACHINE, end_ns=10**11) for step in range(9)]
    listed = groups(log_of(*early, *late, *machine), run.run_id, 10_000)
    assert [(group["cause"], group["ended"]) for group in listed] == [("hook", False), ("python", True), ("machine", False)]
    assert [group["cause"] for group in groups(log_of(*early, *late), run.run_id, 150)] == ["python", "hook"]


def test_what_one_function_does_in_turn_is_one_group() -> None:
    run = RunHandle("train", (), (), "")
    frame = LOAD._replace(function="flush", line=25)
    causes = [Cause("disk", "", frame, 0.9)] * 6 + [Cause("python", "", frame._replace(line=21), 0.9)] * 3
    stalls = [a_stall(run, 250 * number, cause=cause) for number, cause in enumerate(causes, 1)]
    period = a_period(run, cause=causes[-1], steps=250, occurrences=9, last_step=2250, last_call=2250, first_step=250)
    (group,) = groups(log_of(*stalls, periods=[period]), run.run_id, 2300)
    assert group["text"] == "Every 250th step: waiting for a disk and Python code at flush() (train.py:25, 21)"
    assert (group["times"], len(group["stalls"])) == (9, 9)


def test_a_group_of_several_places_names_up_to_three() -> None:
    run = RunHandle("train", (), (), "")
    for number, text in (
        (1, " at f0() (train.py:88)"),
        (3, " at f0() (train.py:88) and f1() (train.py:88) and f2() (train.py:88)"),
        (4, ""),
    ):
        frames = [LOAD._replace(function=f"f{each}") for each in range(number)]
        stalls = [a_stall(run, 10 + step, cause=Cause("retrace", "", frame, 0.9)) for step, frame in enumerate(frames)]
        (group,) = groups(log_of(*stalls), run.run_id, 400)
        assert group["text"] == f"A function was traced{text}"
    lines = [a_stall(run, 10 + line, cause=Cause("wait", "", LOAD._replace(line=line), 0.9)) for line in range(1, 5)]
    (group,) = groups(log_of(*lines), run.run_id, 400)
    assert group["text"] == "Waiting at load_batch() (train.py:1, 2, 3 and others)"


def test_two_lambdas_of_a_file_are_two_groups() -> None:
    run = RunHandle("train", (), (), "")
    codes = [Cause("python", "", LOAD._replace(function="<lambda>", line=line), 0.9) for line in (16, 18, 16)]
    every = groups(log_of(*(a_stall(run, step, cause=code) for step, code in enumerate(codes, 5))), run.run_id, 500)
    assert [group["text"] for group in every] == [f"Python code at <lambda> (train.py:{line})" for line in (16, 18)]


def test_a_function_that_holds_pythons_lock_is_one_group_whatever_its_thread_and_line() -> None:
    run = RunHandle("train", (), (), "")
    places = ["thread one, in spin() (train.py:12)", "thread two, in spin() (train.py:12)"]
    held = [a_stall(run, step, cause=Cause("lock", place, None, 0.9)) for step, place in enumerate((*places, places[0]), 5)]
    (group,) = groups(log_of(*held), run.run_id, 500)
    assert (group["times"], group["text"]) == (3, "Python's lock, held by other threads, in spin() (train.py:12)")
    other_line = a_stall(run, 80, cause=Cause("lock", "thread one, in spin() (train.py:14)", None, 0.9))
    (group,) = groups(log_of(held[0], other_line), run.run_id, 500)
    assert group["text"] == "Python's lock, held by thread one, in spin() (train.py)"
    elsewhere = a_stall(run, 90, cause=Cause("lock", "thread one, in load() (train.py:40)", None, 0.9))
    assert len(groups(log_of(held[0], elsewhere), run.run_id, 500)) == 2


def test_a_period_of_some_of_a_kind_is_not_told_of_all() -> None:
    run = RunHandle("train", (), (), "")
    saves = [a_save(run, step) for step in (250, 300, 500, 610, 750, 888, 1000, 1111)]
    period = a_period(run, cause=saves[0].cause, steps=250, occurrences=4, last_step=1000, last_call=1000, first_step=250)
    (group,) = groups(log_of(*saves, periods=[period]), run.run_id, 1200)
    assert group["text"].startswith("The hook ") and group["text"].endswith(", 4 of 8 times every 250th step")


def test_a_cause_of_the_whole_process_is_one_group_whether_its_line_was_seen_or_not() -> None:
    run = RunHandle("train", (), (), "")
    seen = [a_stall(run, step, cause=Cause("gc", "", LOAD, 0.9)) for step in (90, 180)]
    unseen = [a_stall(run, step, cause=Cause("gc", "", None, 0.9)) for step in (270, 360)]
    period = a_period(run, cause=unseen[-1].cause, steps=90, occurrences=4, last_step=360, last_call=360, first_step=90)
    (group,) = groups(log_of(*seen, *unseen, periods=[period]), run.run_id, 400)
    assert (group["times"], group["text"]) == (4, "Every 90th step: Python's garbage collection at load_batch() (train.py:88)")
    one, *others = [a_stall(run, step, cause=Cause("gc", "", LOAD if step == 5 else None, 0.9)) for step in (5, 33, 41)]
    (group,) = groups(log_of(one, *others), run.run_id, 400)
    assert (group["times"], group["text"]) == (3, "Python's garbage collection"), "most of them may be elsewhere"
    (group,) = groups(log_of(*seen, *others), run.run_id, 400)
    assert group["text"] == "Python's garbage collection, 2 of 4 times at load_batch() (train.py:88)"
    elsewhere = [
        a_stall(run, step, cause=Cause("gc", "", LOAD._replace(function=name), 0.9)) for step, name in ((5, "f"), (9, "g"))
    ]
    (group,) = groups(log_of(*seen, *elsewhere), run.run_id, 400)
    assert group["text"] == "Python's garbage collection"


def test_a_period_that_ended_is_not_told_beside_one_that_stands_and_one_length_is_told_once() -> None:
    run = RunHandle("train", (), (), "")
    saves = [a_save(run, step) for step in (60, 120, 180, 240, 300, 400, 500, 600, 700)]
    early = a_period(run, cause=saves[0].cause, steps=60, occurrences=0, last_step=300, last_call=300, first_step=60)
    late = a_period(run, cause=saves[0].cause, steps=100, occurrences=5, last_step=700, last_call=700, first_step=300)
    again = late._replace(first_step=400, occurrences=4)
    (group,) = groups(log_of(*saves, periods=[early._replace(next_step=None), late, again]), run.run_id, 750)
    assert group["text"].startswith("The hook ") and group["text"].endswith(", 5 of 9 times every 100th step")


def test_what_comes_twice_in_a_length_is_told_so() -> None:
    run = RunHandle("train", (), (), "")
    loads = [a_stall(run, step) for first in (20, 50) for step in range(first, 451, 50)]
    one = a_period(run, cause=loads[0].cause, steps=50, occurrences=9, last_step=420, last_call=420, next_step=470, first_step=20)
    other = one._replace(last_step=450, last_call=450, next_step=500, first_step=50)
    (group,) = groups(log_of(*loads, periods=[one, other]), run.run_id, 460)
    assert group["text"] == "Twice in every 50 steps: Python code at load_batch() (train.py:88)"


def test_slow_steps_of_unknown_cause_on_time_are_of_the_group_with_the_period() -> None:
    run = RunHandle("train", (), (), "")
    saves = [a_save(run, step) for step in (121, 241, 361, 481)]
    period = a_period(run, steps=120, occurrences=4, last_step=481, last_call=481, first_step=121, next_step=601)
    log = log_of(*saves, periods=[period])
    short = a_stall(run, 721, cause=UNKNOWN, end_ns=721 * 2_000_000 + 30_000_000)
    for number, stall in enumerate([a_stall(run, 601, cause=UNKNOWN), a_stall(run, 650, cause=UNKNOWN), short], 5):
        log.add(StallState(stall_message(number, stall, 0.0), number, False, NOWHERE))
    save, rest = groups(log, run.run_id, 750)
    assert (save["times"], sorted(save["stalls"]), save["last_step"]) == (5, [1, 2, 3, 4, 5], 601)
    assert save["text"] == "Every 120th step: the hook CheckpointSaverHook (basic_session_run_hooks.py:620)"
    assert (rest["cause"], rest["times"]) == ("unknown", 2)


def test_the_other_side_of_a_turn_is_of_unknown_cause_though_a_known_period_comes_there() -> None:
    run = RunHandle("train", (), (), "")
    saves = [a_save(run, step)._replace(inside=False) for step in (121, 241, 361, 481)]
    period = a_period(run, steps=120, occurrences=4, last_step=481, last_call=481, first_step=121, next_step=601, inside=False)
    (save, rest) = groups(log_of(*saves, a_stall(run, 361, cause=UNKNOWN, inside=True), periods=[period]), run.run_id, 750)
    assert (save["cause"], save["times"], rest["cause"], rest["times"]) == ("hook", 4, "unknown", 1)


def test_what_comes_at_a_periods_steps_is_counted_among_the_slow_steps_of_its_group() -> None:
    run = RunHandle("train", (), (), "")
    loads = [a_stall(run, step) for step in (50, 77, 100, 150, 200)]
    # Another slow step at its steps has another cause: the period has one more than the group.
    period = a_period(
        run, cause=loads[0].cause, steps=50, occurrences=5, last_step=250, last_call=250, first_step=50, next_step=300
    )
    loaded, _ = groups(log_of(*loads, a_save(run, 250), periods=[period]), run.run_id, 300)
    assert loaded["text"] == "Every 50th step: Python code at load_batch() (train.py:88) (4 of 5 times)"


def test_slow_steps_that_came_before_their_period_was_known_as_it_is_count_once() -> None:
    """Those without a line came while the period's cause was other code: they are the hook's, as soon as the period is."""
    run = RunHandle("train", (), (), "")
    code = [a_stall(run, step, cause=Cause("python", "", None, 0.9)) for step in (43, 86, 129, 172)]
    early = a_period(run, cause=code[0].cause, steps=43, occurrences=4, last_step=172, last_call=172, first_step=43)
    log = log_of(*code, periods=[early])
    for number, step in enumerate((215, 258), 5):
        log.add(StallState(stall_message(number, a_save(run, step), 0.0), number, False, NOWHERE))
    late = a_period(run, steps=43, occurrences=6, last_step=258, last_call=258, first_step=43)
    log.put_period(period_message(late))
    (group,) = groups(log, run.run_id, 260)
    assert (group["cause"], group["times"], len(group["stalls"])) == ("hook", 6, 6)


def test_waits_for_several_datasets_are_several_groups() -> None:
    run = RunHandle("train", (), (), "")
    frames = [LOAD, LOAD._replace(line=99), None]
    waits = [a_stall(run, 10 + number, cause=Cause("input", "", frame, 0.9)) for number, frame in enumerate(frames)]
    assert {group["place"] for group in groups(log_of(*waits), run.run_id, 400)} == {
        "load_batch() (train.py:88)", "load_batch() (train.py:99)", ""
    }  # fmt: skip


def test_a_period_of_unknown_cause_that_follows_a_known_one_is_not_told_as_another() -> None:
    run = RunHandle("train", (), (), "")
    saves = [a_save(run, step) for step in range(190, 1000, 190)]
    after = [a_stall(run, step + 1, cause=UNKNOWN) for step in range(190, 1000, 190)]
    known = a_period(run, steps=190, occurrences=5, last_step=950, last_call=950, first_step=190)
    unknown = known._replace(cause=UNKNOWN, last_step=951, last_call=951, first_step=191)
    listed = groups(log_of(*saves, *after, periods=[known, unknown]), run.run_id, 1000)
    assert [(group["cause"], len(group["periods"])) for group in listed] == [("hook", 1), ("unknown", 0)]


def test_code_that_makes_garbage_is_one_group_with_the_collections_in_it() -> None:
    run = RunHandle("train", (), (), "")
    causes = [Cause("python", "", LOAD, 0.9), Cause("gc", "", LOAD, 0.9)] * 3
    stalls = [a_stall(run, 160 * number, cause=cause) for number, cause in enumerate(causes, 1)]
    elsewhere = a_stall(run, 999, cause=Cause("gc", "", None, 0.9))
    period = a_period(run, cause=causes[0], steps=160, occurrences=6, last_step=960, last_call=960, first_step=160)
    code, collection = groups(log_of(*stalls, elsewhere, periods=[period]), run.run_id, 1000)
    assert code["text"] == "Every 160th step: Python code and Python's garbage collection at load_batch() (train.py:88)"
    assert (code["times"], collection["times"], collection["cause"]) == (6, 1, "gc")


def test_the_longest_of_a_period_is_no_shorter_than_its_median_where_its_steps_have_made_way() -> None:
    run = RunHandle("train", (), (), "")
    noise = [a_stall(run, step, cause=UNKNOWN, end_ns=step * 2_000_000 + 40_000_000) for step in (5, 120, 333)]
    period = a_period(run, cause=UNKNOWN, occurrences=3, last_step=485, next_step=582, first_step=97)
    log = log_of(*noise, periods=[period])
    for number in range(3):
        log.kinds.add(stall_message(9, noise[number], 0.0))
    log.add(
        StallState(stall_message(10, a_stall(run, 400, cause=UNKNOWN), 0.0), 7, False, NOWHERE)
    )  # the seventh: three are gone
    first, *_ = groups(log, run.run_id, 500)
    assert first["longest_s"] == period.median_s
    assert first["lost_s"] <= first["times"] * first["longest_s"]


def test_slow_steps_at_no_known_line_that_are_due_are_the_periods_also_those_before_it_was_proven() -> None:
    run = RunHandle("train", (), (), "")
    nowhere = Cause("python", "", None, 0.9)
    causes = [nowhere, UNKNOWN, None, None, None, nowhere]
    saves = [a_save(run, 97 * number) for number in range(1, 7)]
    stalls = [stall._replace(cause=cause or stall.cause) for stall, cause in zip(saves, causes)]
    period = period_message(a_period(run, occurrences=5, last_step=485, last_call=485, next_step=582, first_step=97))
    log = log_of(*stalls[:5])
    log.put_period(period)
    log.count_into(period)
    log.add(StallState(stall_message(6, stalls[5], 0.0), 6, False, NOWHERE))
    (group,) = groups(log, run.run_id, 600)
    assert (group["cause"], group["times"], len(group["stalls"])) == ("hook", 6, 6)


def test_what_is_moved_to_a_period_leaves_the_others_of_its_kind() -> None:
    run = RunHandle("train", (), (), "")
    long, off = a_stall(run, 97, cause=UNKNOWN, end_ns=10**9), a_stall(run, 120, cause=UNKNOWN)
    log = log_of(long, off, *(a_save(run, 97 * number) for number in (2, 3, 4, 5)))
    period = period_message(a_period(run, occurrences=5, last_step=485, last_call=485, next_step=582, first_step=97))
    log.put_period(period)
    log.count_into(period)
    save, rest = groups(log, run.run_id, 600)
    assert (save["times"], rest["times"], rest["last_step"]) == (5, 1, 120)
    assert save["longest_s"] > 0.7 > rest["longest_s"]


def test_the_last_of_a_function_of_many_signatures_is_told_by_its_call() -> None:
    run = RunHandle("train", (), (), "")
    stalls = [a_stall(run, 26, call=call) for call in (111, 286, 2211)]
    (group,) = groups(log_of(*stalls), run.run_id, 2300)
    assert (group["last_step"], group["last_text"]) == (26, "step 26 (call 2,211 of all signatures)")
    assert step_text(26, 26) == step_text(26, None) == "step 26"
    assert step_text(None, 0) == "a step"


def test_where_a_period_goes_on_is_told_by_its_call_in_a_function_of_many_signatures() -> None:
    """Its distances are those of calls: the step of one signature 50 later is another call."""
    run = RunHandle("train", (), (), "")
    stalls = [a_stall(run, step, call=call) for step, call in ((20, 2161), (26, 2211))]
    period = a_period(
        run, cause=stalls[0].cause, steps=50, occurrences=9, first_step=4, last_step=26, last_call=2211, next_step=76
    )
    (group,) = groups(log_of(*stalls, periods=[period]), run.run_id, 30)
    (told,) = group["periods"]
    assert (told["last_text"], told["next_text"]) == (group["last_text"], "call 2,261 of all signatures")


def test_a_callback_that_was_seen_at_several_lines_names_them() -> None:
    """ "Every 64th step: the Keras callback Journal", without a line, because one of 15 pauses was seen at another one."""
    run, line = RunHandle("train", (), (), ""), LOAD._replace(owner="Journal")
    causes = {
        step: Cause("callback", "Journal", line._replace(line=number), 0.9) for step, number in ((64, 35), (128, 39), (192, 35))
    }
    log = log_of(*(a_stall(run, step, cause=cause) for step, cause in causes.items()))
    assert [group["text"] for group in groups(log, run.run_id, 200)] == ["The Keras callback Journal (train.py:35, 39)"]


def test_a_period_of_a_callback_that_was_seen_at_many_lines_names_its_own() -> None:
    """ "Every 150th step: the Keras callback HardExamples (script.py)": other slow steps of it were at three other lines."""
    run = RunHandle("train", (), (), "")

    def at(line: int, step: int) -> Any:
        return a_stall(run, step, cause=Cause("callback", "HardExamples", LOAD._replace(line=line), 0.9))

    regular = [at(103, step) for step in range(150, 1351, 150)]
    regular.append(a_stall(run, 1500, cause=Cause("callback", "HardExamples", None, 0.9)))  # its line is not known
    period = a_period(run, cause=regular[0].cause, steps=150, occurrences=10, last_step=1500, next_step=1650, first_step=150)
    (group,) = groups(log_of(*regular, *(at(line, 40 + line) for line in (32, 159, 169)), periods=[period]), run.run_id, 1600)
    assert group["text"].startswith("Every 150th step: the Keras callback HardExamples (train.py:103)")
    assert group["place"] == "HardExamples (train.py:103)"
    few = groups(log_of(*regular, periods=[period]), run.run_id, 1600)
    assert [each["place"] for each in few] == ["HardExamples (train.py:103)"]


def test_a_callback_whose_code_is_in_several_files_names_the_lines_in_each() -> None:
    """ "The Keras callback Reports (helpers.py:190). 17 slow steps": one of them was at this line."""
    run, line = RunHandle("train", (), (), ""), LOAD._replace(owner="Reports")
    lines = [line, line._replace(file="/src/helpers.py", line=190), line, line._replace(file="/src/helpers.py", line=94)]
    log = log_of(*(a_stall(run, 10 * n, cause=Cause("callback", "Reports", each, 0.9)) for n, each in enumerate(lines, 1)))
    assert [group["text"] for group in groups(log, run.run_id, 200)] == [
        "The Keras callback Reports (train.py:88; helpers.py:190, 94)"
    ]


def test_a_hook_in_more_files_than_are_named_says_so_and_its_place_can_be_read_back() -> None:
    places = Places()
    for number, file in enumerate("abcd"):
        places.add(f"Sync ({file}.py:{number})", 4.0 - number)
    assert places.text == "Sync (a.py:0; b.py:1; c.py:2 and others)"
    kind: Any = {"place": places.text, "duration_s": 9.0}
    assert Places(kind).text == places.text


def test_one_step_of_many_in_another_file_leaves_the_line_of_a_hook() -> None:
    run, line = RunHandle("train", (), (), ""), LOAD._replace(owner="Reports")
    lines = [line._replace(file="/src/helpers.py", line=190), *[line] * 19]
    log = log_of(*(a_stall(run, 10 * n, cause=Cause("hook", "Reports", each, 0.9)) for n, each in enumerate(lines, 1)))
    (group,) = groups(log, run.run_id, 200)
    assert group["text"] == "The hook Reports (train.py:88)" and group["times"] == 20


def test_only_steps_that_a_period_made_slow_are_marked_with_it() -> None:
    """Of 342 rows marked "every 149", 122 had no CPU, or no known cause, up to 3 steps beside the period's slow step."""
    run = RunHandle("train", (), (), "")
    made = Cause("py_function", "", LOAD, 0.9)
    regular = [a_stall(run, step, cause=made, inside=True) for step in (149, 298, 596, 894)]
    short = a_stall(run, 445, cause=MACHINE, inside=True, end_ns=445 * 2_000_000 + 60_000_000)
    beside = [a_stall(run, 150, cause=MACHINE, inside=True), a_stall(run, 299, cause=UNKNOWN, inside=True), short]
    due = [a_stall(run, 447, cause=UNKNOWN, inside=True), a_stall(run, 745, cause=MACHINE, inside=True)]
    early = a_stall(run, 742, cause=UNKNOWN, inside=True)
    period = a_period(
        run, inside=True, cause=made, steps=149, tolerance=3, median_s=0.3, last_step=894, last_call=894, first_step=149
    )
    stalls = sorted([*regular, *beside, *due, early], key=lambda stall: stall.step)
    log = log_of(*stalls, periods=[period])
    rows = stalls_of(log, run.run_id, {})
    assert [row["step"] for row in rows if row["every"]] == [149, 298, 447, 596, 745, 894]
    assert [row["step"] for row in rows if "it came with" in row["text"]] == [447]
    assert {group["cause"]: group["times"] for group in groups(log, run.run_id, 1000)}["py_function"] == 5


def test_a_step_of_unknown_cause_between_two_steps_of_a_period_that_moved_is_one_of_it() -> None:
    """A period by the clock: its steps drift, and the one of unknown cause came between where both neighbours put it."""
    run = RunHandle("train", (), (), "")
    save = {"tolerance": 4, "steps": 200, "median_s": 0.3, "last_step": 604, "last_call": 604, "first_step": 200}
    stalls = [a_save(run, 200), a_stall(run, 402, cause=UNKNOWN), a_save(run, 604)]
    rows = stalls_of(log_of(*stalls, periods=[a_period(run, **save)]), run.run_id, {})
    assert [row["every"] for row in rows] == [200, 200, 200]


def test_the_longest_of_a_periodic_group_is_one_of_its_periods_steps() -> None:
    """ "Every 311th step: read_shard(), the longest 4.55 s" was one that came once, at another line of that function."""
    run = RunHandle("train", (), (), "")
    once = a_stall(run, 250, end_ns=250 * 2_000_000 + 4_550_000_000)
    regular = [a_stall(run, step) for step in range(97, 98 + 97 * 9, 97)]
    period = a_period(
        run, cause=Cause("python", "", LOAD, 0.9), first_step=97, last_step=970, last_call=970, next_step=1067, occurrences=10
    )
    (group,) = groups(log_of(*regular, once, periods=[period]), run.run_id, 1000)
    assert group["text"].startswith("Every 97th step: ") and group["times"] == 11 and round(group["longest_s"], 3) == 0.3
    (group,) = groups(log_of(*regular, once), run.run_id, 1000)
    assert round(group["longest_s"], 3) == 4.55
