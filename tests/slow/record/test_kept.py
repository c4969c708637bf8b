"""Slow steps in a live session, in its file, and reopened."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgpack
import pytest
from made_stalls import LOAD, TRAIN, a_period, a_save, a_stall, put, record_slow_steps, run_of
from recording import RAW, recording, step

from tftracer.errors import FormatError, UnknownError, UnsupportedError
from tftracer.session.files.saved import SavedSession, open_session
from tftracer.slow.answer.messages import STARVED, SlowMark
from tftracer.slow.record.choose_kept import COSTLIEST_OF_GROUP, MAX_NEWEST, MAX_OLDER, NEWEST_OF_GROUP, KeptSteps
from tftracer.slow.record.kept_slow_steps import SlowLog
from tftracer.slow.watch_results import OF_TRACER, UNKNOWN, Cause, FoldedStack, OtherCause
from tftracer.storage.tftrace_format import RECORD_TYPES, header, record


def shown(session: Any) -> dict[str, Any]:
    """All that a session says of its slow steps."""
    stalls, runs = session.all_stalls(), {run["id"]: run["slow_steps"] for run in session.runs()}
    return {
        "all": stalls,
        "runs": {number: (session.run_stalls(number), session.gaps(number), slow) for number, slow in runs.items()},
        "stacks": {stall["id"]: without_source(session.stall(stall["id"])) for stall in stalls["stalls"]},
    }


def without_source(detail: Any) -> Any:
    """A live session adds the lines' text."""
    frames = [{**frame, "source": ""} for frame in detail["stacks"]["frames"]]
    return {**detail, "stacks": {**detail["stacks"], "frames": frames}}


def test_the_thread_that_had_python_s_lock_in_several_slow_steps_is_known_to_traces(tmp_path: Path) -> None:
    monitor = "thread monitor, in burn() (a.py:7)"
    with recording(tmp_path) as recorder:
        run, slow = run_of(recorder), recorder.store.model.slow
        for number, holder in ((50, monitor), (60, "a thread of tftracer"), (70, monitor)):
            put(recorder, a_stall(run, number, cause=Cause("lock", holder, None, 0.9)))
            assert slow.lock_holder(run.run_id) == ""
        put(recorder, a_stall(run, 80, cause=Cause("lock", monitor, None, 0.9)))
        assert slow.lock_holder(run.run_id) == monitor


def test_a_live_session_shows_them(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = record_slow_steps(recorder)
        stalls = recorder.run_stalls(run.run_id)
        assert [(stall["step"], stall["cause"], stall["every"]) for stall in stalls["stalls"]] == [
            (50, "python", None),
            (97, "hook", 97),
            (194, "hook", 97),
            (291, "hook", 97),
        ]
        assert stalls["stalls"][0]["lines"][0]["function"] == "load_batch" and stalls["count"] == 4
        assert stalls["max_s"] == stalls["p99_s"] == pytest.approx(0.001)
        assert sorted(mark["kind"] for mark in stalls["marks"]) == ["checkpoint"] * 3 + ["gc", "host"]
        slow = recorder.run(run.run_id)["slow_steps"]
        assert slow["text"] == "Every 97th step: the hook CheckpointSaverHook (basic_session_run_hooks.py:620)"
        assert slow["count"] == 4 and slow["longest_s"] == pytest.approx(0.3) and slow["gaps_at"] is not None
        assert slow["lost_s"] == pytest.approx(4 * 0.298)
        gaps = recorder.gaps(run.run_id)
        assert gaps["share"] == pytest.approx(0.3) and gaps["gc_share"] == pytest.approx(0.1)
        assert gaps["text"] == (
            "Of the usual time between the steps: load_batch() (train.py:88) 83%, "
            "CheckpointSaverHook (basic_session_run_hooks.py:620) 17%."
        )


def test_they_are_the_same_in_the_spool_of_a_killed_job_saved_and_loaded_again(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        record_slow_steps(recorder)
        live = shown(recorder)
        shutil.copyfile(recorder.session()["file"], tmp_path / "killed.tftrace")
        recorder.save(str(tmp_path / "saved.tftrace"))
        recorder.load(str(tmp_path / "killed.tftrace"))
        first, loaded = (shown(recorder)["runs"][run["id"]] for run in recorder.runs())
        assert [stall["text"] for stall in loaded[0]["stalls"]] == [stall["text"] for stall in first[0]["stalls"]]
        assert loaded[2] == first[2] and loaded[1]["lines"] == first[1]["lines"]
        recorder.save(str(tmp_path / "both.tftrace"))
        both = shown(recorder)
    assert shown(open_session(tmp_path / "killed.tftrace")) == live == shown(open_session(tmp_path / "saved.tftrace"))
    assert shown(open_session(tmp_path / "both.tftrace")) == both
    again = open_session(tmp_path / "saved.tftrace")
    again.load(str(tmp_path / "killed.tftrace"))
    assert len(again.all_stalls()["stalls"]) == 8 and len({stall["id"] for stall in again.all_stalls()["stalls"]}) == 8


def test_a_slow_step_links_its_trace(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 20)
        step(recorder, 21, raw=RAW)
        put(recorder, a_stall(run, 21, inside=True), a_stall(run, 21), a_stall(run, 5, inside=True))
        (trace,) = recorder.run(run.run_id)["traces"]
        stalls = recorder.run_stalls(run.run_id)["stalls"]
        assert [stall["trace_id"] for stall in stalls] == [trace["id"], None, None]


def test_a_period_goes_on_and_ends(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder)

        def shown_after(**changes: Any) -> list[Any]:
            put(recorder, a_period(run, **changes))
            return [(p["every"], p["times"], p["next_step"]) for p in recorder.run_stalls(run.run_id)["periods"]]

        assert shown_after(occurrences=4, last_step=388, next_step=485) == [(97, 4, 485)]
        other = {"first_step": 40, "steps": 40, "occurrences": 9}
        assert shown_after(**other, last_step=400, next_step=440) == [(40, 9, 440), (97, 4, 485)], "two in one function"
        assert shown_after(**other, cause=Cause("python", "", LOAD, 0.9)) == [(40, 9, 388), (97, 4, 485)], "another cause"
        assert shown_after(occurrences=0, last_step=388, next_step=485) == [(40, 9, 388), (97, 4, None)]
        spool = recorder.session()["file"]
        live = recorder.run_stalls(run.run_id)
    assert open_session(spool).run_stalls(1) == live


def test_groups_keep_their_sums_when_their_slow_steps_make_way(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, *(a_save(run, number) for number in range(1, 1001)), *(a_stall(run, 2000 + number) for number in range(5)))
        live, spool = recorder.run_stalls(run.run_id), recorder.session()["file"]
        saves, loads = live["groups"]
        assert (saves["cause"], saves["times"], saves["last_step"]) == ("hook", 1000, 1000)
        assert saves["lost_s"] == pytest.approx(298) and len(saves["stalls"]) < 300
        assert (loads["text"], loads["times"]) == ("Python code at load_batch() (train.py:88)", 5)
        recorder.store.rewrite()
        assert recorder.run_stalls(run.run_id)["groups"] == live["groups"]
        recorder.save(str(tmp_path / "saved.tftrace"))
        recorder.load(str(tmp_path / "saved.tftrace"))
        sums = [[(group["times"], group["lost_s"]) for group in recorder.run_stalls(number)["groups"]] for number in (1, 2)]
        assert sums[0] == sums[1] == [(1000, saves["lost_s"]), (5, loads["lost_s"])]
        put(recorder, a_save(run, 3000))
        assert recorder.run_stalls(run.run_id)["groups"][0]["times"] == 1001
    assert open_session(spool).run_stalls(1)["groups"][0]["times"] == 1001
    assert open_session(tmp_path / "saved.tftrace").run_stalls(1)["groups"][0]["times"] == 1000


def test_periodic_slow_steps_push_out_none_that_came_once(tmp_path: Path) -> None:
    """Of 1,800 slow steps of three periods all 300 that were kept were longer than a single one of 301 ms, which nobody saw."""
    dump = Cause("python", "", LOAD._replace(function="dump"), 0.9)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, a_stall(run, 5, cause=dump))
        put(recorder, *(a_stall(run, 10 + number, end_ns=10**10) for number in range(MAX_NEWEST + MAX_OLDER + 50)))
        live, spool = recorder.run_stalls(run.run_id), recorder.session()["file"]
        assert live["stalls"][0]["place"] == "dump() (train.py:88)" and len(live["stalls"]) == MAX_NEWEST + MAX_OLDER
    assert open_session(spool).run_stalls(1) == live


def test_a_period_pushes_out_no_slow_step_of_its_own_callback(tmp_path: Path) -> None:
    """A callback that sorts every 150th step copied a list once, for less time than half of the sorts: that step was dropped."""
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 100_000)
        put(recorder, a_save(run, 50, end_ns=4 * 10**8), a_period(run, next_step=97 * 1000))
        put(recorder, *(a_save(run, 97 * number, end_ns=10**12) for number in range(3, MAX_NEWEST + MAX_OLDER + 50)))
        live, spool = recorder.run_stalls(run.run_id), recorder.session()["file"]
        assert live["stalls"][0]["step"] == 50 and len(live["stalls"]) == MAX_NEWEST + MAX_OLDER
    assert open_session(spool).run_stalls(1) == live


def test_steps_without_a_cpu_push_out_no_others(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 5)
        without, kept = Cause("machine", "", None, 0.9), MAX_NEWEST + MAX_OLDER
        put(recorder, *(a_stall(run, number) for number in range(1, 6)))
        put(
            recorder,
            *(a_stall(run, 10 + number, cause=without, stacks=(), end_ns=10**10) for number in range(kept)),
        )
        put(recorder, *(a_stall(run, 1000 + number, cause=without, stacks=(), end_ns=10**11) for number in range(50)))
        live, spool = recorder.run_stalls(run.run_id), recorder.session()["file"]
        assert [stall["step"] for stall in live["stalls"]][:5] == [1, 2, 3, 4, 5]
        assert len(live["stalls"]) == 5 + kept and live["count"] == 55 + kept
        assert (
            recorder.run(run.run_id)["slow_steps"]["text"]
            == "Python code at load_batch() (train.py:88) (1.49 s of that, and 7,801 s without a CPU)"
        )
    assert open_session(spool).run_stalls(1) == live


def test_a_trace_keeps_what_made_its_step_slow_while_dearer_slow_steps_come(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 20)
        step(recorder, 500, raw=RAW)
        assert recorder.flush()
        put(recorder, a_stall(run, 21, is_traced=True))
        put(recorder, *(a_stall(run, 1000 + number, end_ns=9 * 10**9) for number in range(MAX_NEWEST + MAX_OLDER + 50)))
        (trace,) = recorder.run(run.run_id)["traces"]
        (slow,) = recorder.trace_context(trace["id"]).slow_times
        live, spool = recorder.run_stalls(run.run_id), recorder.session()["file"]
        recorder.store.rewrite()
        assert len(live["stalls"]) == MAX_NEWEST + MAX_OLDER + 1 and recorder.run_stalls(run.run_id) == live
    reopened = open_session(spool)
    assert reopened.run_stalls(1) == live and reopened.trace_context(trace["id"]).slow_times == [slow]


def test_ten_thousand_take_bounded_memory_and_disk_and_are_all_counted(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 5)
        long = a_stall(run, 1, end_ns=9_000_000_000)
        put(recorder, long)
        for first in range(0, 10_000, 1000):
            put(recorder, *(a_save(run, first + number) for number in range(1000)))
        stalls = recorder.run_stalls(run.run_id)
        assert stalls["count"] == 10_001 and len(stalls["stalls"]) == MAX_NEWEST + MAX_OLDER
        assert stalls["stalls"][0]["duration_s"] == pytest.approx(8.998) and stalls["stalls"][-1]["step"] == 9999
        assert recorder.store.spool.superfluous_records >= 9000 and recorder.stall(stalls["stalls"][0]["id"])["stacks"]["frames"]
        recorder.store.rewrite()
        assert recorder.stall(stalls["stalls"][0]["id"])["stacks"]["frames"] and recorder.store.spool.size < 1 << 20
        spool = recorder.session()["file"]
    assert open_session(spool).run_stalls(1)["count"] == 10_001


def test_only_what_runs_can_be_sampled_again(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        assert recorder.gaps(run.run_id)["state"] == "none" and "not sampled" in recorder.gaps(run.run_id)["text"]
        with pytest.raises(UnsupportedError, match="trace_slow=False"):
            recorder.sample_gaps(run.run_id)
        recorder.store.set_facts(slow_watch="on")
        recorder.sample_gaps(run.run_id)
        assert recorder.queue.slow.profile_requested.is_set() and recorder.gaps(run.run_id)["state"] == "sampling"
        with pytest.raises(UnknownError):
            recorder.sample_gaps(7)
        with pytest.raises(UnknownError):
            recorder.stall(1)
        recorder.save(str(tmp_path / "saved.tftrace"))
        recorder.load(str(tmp_path / "saved.tftrace"))
        with pytest.raises(UnsupportedError, match="loaded from a file"):
            recorder.sample_gaps(2)
    with pytest.raises(UnsupportedError, match="no training"):
        open_session(tmp_path / "saved.tftrace").sample_gaps(1)


def test_source_lines_are_for_the_owner_of_a_live_session(tmp_path: Path) -> None:
    """Never of a file that changed since, nor of a path that a loaded session names; and never in the session's file."""
    script, secret = tmp_path / "script.py", tmp_path / "secret.py"
    script.write_text("import time\n    time.sleep(1)\n")
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        frame = a_stall(run, 1).stacks[0].frames[0]._replace(file=str(script), line=2)
        later = frame._replace(file=str(secret), line=1)
        stack = a_stall(run, 1).stacks[0]._replace(frames=(frame, later))
        put(recorder, a_stall(run, 1, stacks=(stack,), other_stacks=()))
        secret.write_text("password = 1\n")
        texts = [each["source"] for each in recorder.stall(1)["stacks"]["frames"]]
        assert texts == ["", "time.sleep(1)", ""]
        recorder.save(str(tmp_path / "saved.tftrace"))
        recorder.load(str(tmp_path / "saved.tftrace"))
        assert all(not each["source"] for each in recorder.stall(2)["stacks"]["frames"])
    assert all(not each["source"] for each in open_session(tmp_path / "saved.tftrace").stall(1)["stacks"]["frames"])


# ------------------------------------------------------------------------------------------------------------- strangers

STACKS: dict[str, Any] = {
    "frames": [{"file": "/etc/passwd", "line": 1, "function": "f", "source": "secret", "kind": "evil"}],
    "parent": [-1, 0],
    "frame": [0, 0],
    "seconds": [1.0, float("nan")],
    "samples": [1, -5],
    "samples_left_out": "many",
}


def session_with(tmp_path: Path, *records: bytes) -> SavedSession:
    path = tmp_path / "hostile.tftrace"
    path.write_bytes(header() + record("run", {"id": 1, "title": "t"}) + b"".join(records))
    return open_session(path)


VALUES = [None, -1, (1 << 64) - 1, float("nan"), float("inf"), "x" * 100_000, [[]], {"a": 1}, True, b"\xff"]


@pytest.mark.parametrize("value", VALUES)
def test_no_value_in_a_file_breaks_the_contract(tmp_path: Path, value: Any) -> None:
    names = [
        *(
            "step",
            "where",
            "started_at",
            "duration_s",
            "expected_s",
            "cause",
            "without_cpu",
            "text",
            "evidence",
            "lines",
            "samples",
            "number",
        ),
        *("every", "times", "last_step", "next_step", "share", "gc_share", "sampled_at", "steps", "late", "state"),
    ]
    given = {"run_id": 1, **dict.fromkeys(names, value)}
    marks = {"marks": [{"kind": kind, "at": value, "duration_s": value, "text": value} for kind in ("gc", value)]}
    packed = [record(kind, given) for kind in ("period", "gaps")]
    stall = record("stall", {**given, "id": 3}, bytes(msgpack.packb(STACKS)))
    session = session_with(tmp_path, stall, *packed, record("marks", marks))
    stalls = session.run_stalls(1)
    assert [stall["id"] for stall in stalls["stalls"]] == [3] and isinstance(stalls["stalls"][0]["duration_s"], float)
    assert stalls["stalls"][0]["where"] in ("inside", "between") and len(stalls["stalls"][0]["text"]) <= 1000
    assert session.gaps(1)["state"] == "ready" and session.run(1)["slow_steps"]["count"] >= 1
    assert session.all_stalls()["count"] >= 1
    session.save(str(tmp_path / "again.tftrace"))
    assert shown(open_session(tmp_path / "again.tftrace")) == shown(session)


def test_stacks_of_a_stranger(tmp_path: Path) -> None:
    def stacks(**changes: Any) -> Any:
        packed = bytes(msgpack.packb({**STACKS, **changes}))
        return session_with(tmp_path, record("stall", {"id": 1, "run_id": 1}, packed)).stall(1)["stacks"]

    tree = stacks()
    assert tree["parent"] == [-1, 0] and tree["seconds"] == [1.0, 0.0] and tree["samples"] == [1, 0]
    assert tree["frames"][0]["source"] == "" and tree["frames"][0]["kind"] == "script" and tree["samples_left_out"] == 0
    assert stacks(parent=[-1, 5])["parent"] == [-1], "what refers to nothing ends the tree"
    assert stacks(frame=[0, 9])["frame"] == [0] and stacks(frame="no")["parent"] == []
    assert stacks(parent=[-1, True])["parent"] == [-1]
    with pytest.raises(FormatError):
        session_with(tmp_path, record("stall", {"id": 1, "run_id": 1}, b"no msgpack \xc1")).stall(1)
    with pytest.raises(FormatError, match="larger"):
        session_with(tmp_path, record("stall", {"id": 1, "run_id": 1}, bytes(9 << 20))).stall(1)


def test_a_million_claims_are_bounded(tmp_path: Path) -> None:
    records = [record("stall", {"id": number, "run_id": 1 + number % 50}) for number in range(1, 20_000)]
    session = session_with(tmp_path, *records)
    assert len(session.all_stalls()["stalls"]) <= 3000 and session.all_stalls()["count"] == 19_999


def test_an_older_reader_skips_them_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path) as recorder:
        record_slow_steps(recorder)
        spool = recorder.session()["file"]
    older = RECORD_TYPES - {"stall", "period", "slow_kinds", "gaps", "marks"}
    monkeypatch.setattr("tftracer.storage.tftrace_format.RECORD_TYPES", older)
    damage = open_session(spool).session()["damage"]
    assert "types that this version does not know (gaps, marks, period, slow_kinds, stall)" in damage and "Upgrade" in damage


def test_a_mark_of_several_seconds_tells_its_share_of_all_of_them() -> None:
    log = SlowLog()
    for at, share in ((10.0, 0.94), (11.0, 0.32), (12.0, 0.21), (15.0, 0.5)):
        log.add_mark(SlowMark("host", at, 1.0, STARVED, share))
    joined, alone = log.all_marks()
    assert (joined.duration_s, joined.sentence) == (3.0, f"{STARVED} for 49% of the time")
    assert alone.sentence == f"{STARVED} for 50% of the time"


def test_a_slow_step_of_a_period_with_most_of_its_time_below_the_period_s_function_is_one_of_it(tmp_path: Path) -> None:
    """Half of a sort was seen in its key function: "Every 97th step: rank()", and by_score() as another cause."""
    rank, key = LOAD._replace(function="rank"), LOAD._replace(function="by_score", line=90)
    ranked, in_key = Cause("python", "", rank, 0.8), Cause("python", "", key, 0.6)
    stacks = (FoldedStack("MainThread", (TRAIN, rank), 4, 0.1), FoldedStack("MainThread", (TRAIN, rank, key), 6, 0.2))
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, *(a_stall(run, step, cause=ranked, stacks=stacks) for step in (97, 194)))
        put(recorder, a_stall(run, 291, cause=in_key, stacks=stacks), a_stall(run, 250, cause=in_key, stacks=stacks))
        put(recorder, a_period(run, cause=ranked))
        groups = [(group["times"], group["text"]) for group in recorder.all_stalls()["groups"]]
        assert groups == [
            (3, "Every 97th step: Python code at rank() (train.py:88)"),
            (1, "Python code at by_score() (train.py:90)"),
        ]


@pytest.mark.parametrize(("request_s", "has_period"), [(0.32, False), (0.12, True)])
def test_a_step_in_which_two_periods_fall_together_is_one_of_its_cause_s_period(
    tmp_path: Path, request_s: float, has_period: bool
) -> None:
    """The longest step of "Every 97th step: compress()" was the sum of compress() and of a request of another period."""
    compress, request = LOAD._replace(function="compress"), LOAD._replace(function="request", line=90)
    of_compress, of_request = Cause("python", "", compress, 0.9), Cause("wait", "", request, 0.7)
    both = (FoldedStack("MainThread", (TRAIN, compress), 2, 0.1), FoldedStack("MainThread", (TRAIN, request), 3, 0.11))

    def stall(step: int, cause: Cause, seconds: float, stacks: tuple[FoldedStack, ...]) -> Any:
        return a_stall(run, step, cause=cause, end_ns=step * 2_000_000 + round(seconds * 1e9), stacks=stacks)

    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, *(stall(step, of_compress, 0.11, both[:1]) for step in (97, 194, 291)))
        put(recorder, *(stall(step, of_request, request_s, both[1:]) for step in (88, 188, 288)))
        put(recorder, a_period(run, cause=of_compress, median_s=0.11))
        if has_period:
            put(recorder, a_period(run, cause=of_request, steps=100, median_s=0.12, last_step=288, last_call=288, next_step=388))
        put(recorder, stall(388, of_request, request_s + 0.1, both))
        longest: dict[str, Any] = {
            group["place"]: (group["times"], group["longest_s"]) for group in recorder.all_stalls()["groups"]
        }
        assert longest == {
            "compress() (train.py:88)": (3, pytest.approx(0.11)),
            "request() (train.py:90)": (4, pytest.approx(request_s + 0.1)),
        }


def test_a_group_has_the_seconds_of_its_own_cause_in_a_step_that_had_two(tmp_path: Path) -> None:
    """ "Python's lock ... 3.34 s longer, the longest 1.37 s" held 0.32 s of a request in the same step."""
    lock, request = Cause("lock", "thread loader, in load() (data.py:7)", None, 0.7), Cause("wait", "", LOAD, 0.3)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, a_stall(run, 50, cause=request), a_stall(run, 97, cause=lock, others=(OtherCause(request, 0.1),)))
        live = recorder.run_stalls(run.run_id)
        recorder.save(str(tmp_path / "saved.tftrace"))
    groups: dict[str, Any] = {group["cause"]: group for group in live["groups"]}
    sums = {cause: (group["times"], group["stalls"]) for cause, group in groups.items()}
    assert sums == {"wait": (2, [1, 2]), "lock": (1, [2])}
    assert groups["wait"]["lost_s"] == pytest.approx(0.298 + 0.1) and groups["wait"]["longest_s"] == pytest.approx(0.3)
    assert groups["lock"]["lost_s"] == pytest.approx(0.198) and groups["lock"]["longest_s"] == pytest.approx(0.2)
    assert live["stalls"][1]["text"].endswith("; besides, about 100 ms at load_batch() (train.py:88)")
    assert open_session(tmp_path / "saved.tftrace").run_stalls(run.run_id) == live


def test_a_step_of_unknown_cause_counts_once_in_the_group_of_its_second_cause(tmp_path: Path) -> None:
    """A judge read "269 slow steps" of a period with 267: rows "Not known for most of it; about ... in rebuild()" at its steps
    counted twice."""
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 400)
        save = OtherCause(a_save(run, 97).cause, 0.1)
        saves = [a_save(run, step) for step in (97, 194, 291)]
        put(recorder, *saves, a_period(run, first_step=97), a_stall(run, 388, cause=UNKNOWN, others=(save,)))
        groups = {group["cause"]: group["times"] for group in recorder.run_stalls(run.run_id)["groups"]}
    assert groups == {"hook": 4, "unknown": 1}


def test_locks_of_the_tracers_threads_are_a_group_of_their_own(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        for step, holder in ((50, "thread loader"), (97, OF_TRACER), (150, "another thread")):
            put(recorder, a_stall(run, step, cause=Cause("lock", holder, None, 0.9)))
        texts = {group["text"]: group["times"] for group in recorder.run_stalls(run.run_id)["groups"]}
    assert texts == {"Python's lock, held by other threads": 2, "Python's lock, held by a thread of tftracer": 1}


def test_a_slow_step_without_a_line_says_where_the_others_of_its_period_are(tmp_path: Path) -> None:
    known, unknown = Cause("python", "", LOAD, 0.8), Cause("python", "", None, None)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        put(recorder, a_stall(run, 97, cause=known), a_stall(run, 194, cause=unknown), a_stall(run, 250, cause=unknown))
        put(recorder, a_stall(run, 291, cause=known), a_period(run, cause=known))
        rows = {stall["step"]: (stall["every"], stall["text"]) for stall in recorder.all_stalls()["stalls"]}
        at_period, alone = rows[194], rows[250]
        assert at_period[0] == 97 and at_period[1].endswith("; it came with every 97th step: load_batch() (train.py:88)")
        assert alone[0] is None and "it came with" not in alone[1]


def test_slow_steps_of_one_python_function_are_one_group_and_those_in_which_it_was_not_seen_are_of_its_period(
    tmp_path: Path,
) -> None:
    """ "TensorFlow took longer inside the step", at the steps of a function that few samples had missed."""
    at_line = [Cause("py_function", "", LOAD._replace(line=line), 0.9) for line in (13, 15)]
    missed = Cause("tensorflow", "", None, 0.9)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        period = a_period(run, inside=True, cause=at_line[1], steps=97)
        stalls = [(97, at_line[0]), (194, at_line[1]), (250, missed), (291, at_line[1]), (388, missed)]
        put(recorder, period, *(a_stall(run, number, cause=cause, inside=True) for number, cause in stalls))
        live = recorder.run_stalls(run.run_id)
    assert [stall["every"] for stall in live["stalls"]] == [97, 97, None, 97, 97]
    assert live["stalls"][-1]["text"].endswith("; it came with every 97th step: load_batch() (train.py:15)")
    assert {(group["cause"], group["place"]): group["times"] for group in live["groups"]} == {
        ("py_function", "load_batch() (train.py:15, 13)"): 4,
        ("tensorflow", ""): 1,
    }


def test_a_wait_for_an_element_at_a_step_of_its_functions_period_is_one_of_the_period(tmp_path: Path) -> None:
    """A judge read "Waiting for the next element at run()", 133 times, of which 100 were steps of a generator's period."""
    made, waited = Cause("py_function", "", LOAD, 0.9), Cause("input", "", LOAD._replace(line=76, function="run"), 0.9)
    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        period = a_period(run, cause=made, steps=97)
        put(recorder, period, *(a_stall(run, step, cause=made) for step in (97, 194)))
        put(recorder, *(a_stall(run, step, cause=waited) for step in (250, 291)))
        live = recorder.run_stalls(run.run_id)
    assert [stall["every"] for stall in live["stalls"]] == [97, 97, None, 97]
    assert live["stalls"][-1]["text"].endswith("; it came with every 97th step: load_batch() (train.py:88)")
    assert {group["cause"]: group["times"] for group in live["groups"]} == {"py_function": 3, "input": 1}


def test_short_steps_of_unknown_cause_push_out_no_long_ones_nor_a_second_cause_that_came_once() -> None:
    """Of 219 slow steps of a callback 181 were gone, up to 3.06 s, beside unknown ones of 22 ms; so were two single causes, told
    as "besides", of 2.45 and 2.63 s."""
    kept, dropped = KeptSteps(), []
    causes, lost = {1: ["audit", "dump"]}, {1: 0.5}
    for number in range(2, 2000):
        causes[number] = ["unknown"] if number % 4 else ["audit"]
        lost[number] = 0.02 + number / 1e6 + (0 if number % 4 else 1)
    for number, keys in causes.items():
        gone = kept.add_older(number, lost[number], keys)
        dropped += [] if gone is None else [gone]
    ids = set(kept.ids())
    assert len(ids) == MAX_OLDER and ids.isdisjoint(dropped) and 1 in ids
    unknown = sorted(number for number in ids if causes[number] == ["unknown"])
    assert len(unknown) == COSTLIEST_OF_GROUP + NEWEST_OF_GROUP and unknown[-1] == 1999
    assert min(lost[number] for number in ids if number % 4 == 0) > max(
        lost[number] for number in dropped if number % 4 == 0 and number < 1900
    )


def test_of_many_groups_the_largest_give_way() -> None:
    kept = KeptSteps()
    for number in range(3 * MAX_OLDER):
        kept.add_older(number, float(number), [number] if number < 200 else [number % 10])
    assert len(set(kept.ids())) == MAX_OLDER and set(range(10, 200)) <= set(kept.ids())


def test_groups_without_end_are_bounded() -> None:
    kept = KeptSteps()
    for number in range(3 * MAX_OLDER):
        kept.add_older(number, 1.0, [number])
    assert len(set(kept.ids())) == MAX_OLDER
