"""The live session, fed by hand with what a hook records."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest
from recording import LOSS, RAW, TRAIN, X, recording, step, steps

from tftracer.capture.recorded_steps import Missed
from tftracer.capture.steps import queue as step_queue
from tftracer.capture.traces import backlog as trace_backlog
from tftracer.contract.live import LiveMessage
from tftracer.contract.session import Bookmark
from tftracer.errors import StorageError, UnknownError, UnsupportedError
from tftracer.session.files import records
from tftracer.session.files.saved import open_session
from tftracer.session.live import Recorder
from tftracer.session.traces import traces_to_drop
from tftracer.session.writer import writer_thread as step_writer


def comparable(session: Any) -> tuple[Any, ...]:
    """All that a page shows of a session, but whether it is live and when it ended."""
    facts = {name: value for name, value in session.session().items() if name not in ("live", "file", "ended_at")}
    runs = session.runs()
    traces = [trace for run in runs for trace in run["traces"]]
    return (
        facts,
        [{**run, "pending_traces": 0} for run in runs],
        [session.step_times(run["id"]) for run in runs],
        [session.trace_bytes(trace["id"]) for trace in traces],
        [session.trace_context(trace["id"]) for trace in traces],
    )


def test_a_runs_numbers(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 100)
        (run,) = recorder.runs()
    assert (run["id"], run["title"], run["steps"]) == (1, "train, loss (feeding x)", 100)
    for name in ("mean_s", "min_s", "max_s", "last_s", "between_steps_s"):
        assert run[name] == pytest.approx(0.001, rel=0.01), name
    assert run["p50_s"] == pytest.approx(0.001, rel=0.02)
    assert run["last_run_at"] - run["first_run_at"] == pytest.approx(0.198, abs=0.15)  # two clocks are read
    assert len(run["recent_s"]) == 60


def test_a_traces_context_knows_the_fastest_traced_steps_and_the_time_before_it(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 1, {1: RAW})
        alone = recorder.trace_context(1)
        step(recorder, 11, raw=RAW)  # 20 ms after the first
        recorder.flush()
        first, second = recorder.trace_context(1), recorder.trace_context(2)
        path = recorder.session()["file"]
    assert (alone.before_step_s, alone.other_traced, alone.fastest_traced_s, alone.feeds) == (None, 0, None, 1)
    assert first.before_step_s is None and first.other_traced == second.other_traced == 1
    assert first.fastest_traced_s == pytest.approx(0.001) and second.before_step_s == pytest.approx(0.019)
    assert open_session(path).trace_context(2) == second


BOOKMARKS: list[Bookmark] = [
    {"name": "warm-up", "start_ns": 0.0, "end_ns": 5e6},
    {"name": "schön \u2603", "start_ns": 7e6, "end_ns": None},
]


@pytest.mark.parametrize("where", ["spool", "saved", "saved again"])
def test_a_reopened_session_shows_what_the_live_one_showed(where: str, tmp_path: Path) -> None:
    with recording(tmp_path / "spool") as recorder:
        steps(recorder, 200, {50: RAW, 60: RAW})
        step(recorder, 201, fetches=[LOSS])
        recorder.flush()
        recorder.set_note(1, "slow")
        recorder.set_bookmarks(1, BOOKMARKS)
        recorder.set_headline(2, "All is well.")
        shown, path = comparable(recorder), recorder.session()["file"]
        recorder.save(str(tmp_path / "a.tftrace"))
    open_session(tmp_path / "a.tftrace").save(str(tmp_path / "b.tftrace"))
    files = {"spool": Path(path), "saved": tmp_path / "a.tftrace", "saved again": tmp_path / "b.tftrace"}
    reopened = open_session(files[where])
    assert comparable(reopened) == shown
    assert reopened.trace_record(1)["note"] == "slow" and reopened.trace_bytes(2) == RAW
    assert reopened.trace_record(1)["bookmarks"] == BOOKMARKS and reopened.trace_record(2)["bookmarks"] == []
    assert not reopened.session()["live"]


def test_keep_traces_is_per_run_and_numbers_are_not_used_again(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=2) as recorder:
        for number in range(1, 6):
            step(recorder, number, raw=RAW)
            step(recorder, number, fetches=[LOSS], raw=RAW)
            recorder.flush()
        assert [[trace["step"] for trace in run["traces"]] for run in recorder.runs()] == [[4, 5], [4, 5]]
        with pytest.raises(UnknownError, match="keep_traces"):
            recorder.trace_bytes(1)
        assert recorder.trace_record(10)["id"] == 10
        spool = recorder.session()["file"]
    reopened = open_session(spool)
    assert [[trace["id"] for trace in run["traces"]] for run in reopened.runs()] == [[7, 9], [8, 10]]


def test_space_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_writer, "SUPERFLUOUS_BYTES", 50_000)
    noise = os.urandom(20_000)  # compresses not at all
    with recording(tmp_path, keep_traces=1) as recorder:
        for number in range(1, 41):
            step(recorder, number, raw=b"\n\0\x32" + noise)
            recorder.flush()
        recorder.flush()
        shown = comparable(recorder)
        path = Path(recorder.session()["file"])
        assert path.stat().st_size < 200_000  # of 800,000 written
        assert [spool.name for spool in tmp_path.iterdir()] == [path.name]
    assert comparable(open_session(path)) == shown


def test_saving_goes_on_while_the_file_is_rewritten(tmp_path: Path) -> None:
    with recording(tmp_path / "spool", keep_traces=3) as recorder:
        steps(recorder, 5, {2: RAW, 3: RAW, 4: RAW})
        shown = comparable(recorder)
        chunks = recorder.saved_bytes()
        head = next(chunks)
        recorder.store.rewrite()
        for number in range(6, 9):  # makes all three go
            step(recorder, number, raw=RAW)
        recorder.flush()
        (tmp_path / "saved.tftrace").write_bytes(head + b"".join(chunks))
    assert comparable(open_session(tmp_path / "saved.tftrace"))[3] == shown[3]


def test_traces_that_make_way_while_the_session_is_saved_are_saved(tmp_path: Path) -> None:
    with recording(tmp_path / "spool", keep_traces=2) as recorder:
        steps(recorder, 5, {2: RAW, 3: RAW})
        shown = comparable(recorder)
        chunks = recorder.saved_bytes()
        abandoned = recorder.saved_bytes()
        for number in range(6, 9):
            step(recorder, number, raw=RAW)
        recorder.flush()
        (tmp_path / "saved.tftrace").write_bytes(b"".join(chunks))
        assert recorder.store.spool.kept_payloads == 3  # as somebody else has not read them yet
        del abandoned, chunks
        gc.collect()
        step(recorder, 9)
        recorder.flush()
        assert recorder.store.spool.kept_payloads == 0
        assert [trace["id"] for trace in recorder.runs()[0]["traces"]] == [4, 5] and recorder.trace_bytes(5) == RAW
    assert comparable(open_session(tmp_path / "saved.tftrace"))[1:] == shown[1:]


def test_a_full_disk_forgets_neither_what_made_way_nor_what_was_written_on_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(tmp_path, keep_traces=2) as recorder:
        steps(recorder, 5, {2: RAW, 3: RAW})
        with monkeypatch.context() as full:
            full.setattr(recorder.store.spool.file, "write_at", no_space)
            recorder.set_note(2, "written on a full disk")
            recorder.store.make_room(1, 1)
        assert [problem["code"] for problem in recorder.session()["problems"]] == ["storage"]
        step(recorder, 6, raw=RAW)
        recorder.flush()
        shown = comparable(recorder)
        assert shown[0]["problems"] == []
    reopened = open_session(recorder.session()["file"])
    assert comparable(reopened) == shown
    assert [trace["id"] for trace in reopened.runs()[0]["traces"]] == [2, 3]
    assert reopened.trace_record(2)["note"] == "written on a full disk"


@pytest.mark.parametrize(("free", "gives_back"), [(20_000, True), (0, True), (1 << 20, False)])
def test_no_trace_makes_way_for_one_that_would_find_no_room(
    free: int, gives_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(tmp_path, keep_traces=2) as recorder:
        steps(recorder, 5, {2: RAW, 3: RAW})
        store = recorder.store.spool.file
        with monkeypatch.context() as full:
            full.setattr(store, "write_at", no_space)
            full.setattr(store, "free", lambda: free)
            full.setattr(store, "gives_back", gives_back)
            step(recorder, 6, raw=b"\n\0\x32" + os.urandom(60_000))
            recorder.flush()
        assert [trace["id"] for trace in recorder.runs()[0]["traces"]] == [1, 2]
        assert [recorder.trace_bytes(number) for number in (1, 2)] == [RAW, RAW]


def test_a_run_seen_first_on_a_full_disk_is_there_when_its_trace_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path) as recorder:
        with monkeypatch.context() as full:
            full.setattr(recorder.store.spool.file, "write_at", no_space)
            steps(recorder, 3)
        step(recorder, 4, raw=RAW)
        recorder.flush()
        shown = comparable(recorder)
    assert comparable(open_session(recorder.session()["file"]))[1:] == shown[1:]


def test_many_runs_seen_first_on_a_full_disk_are_there_when_it_has_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path) as recorder:
        with monkeypatch.context() as full:
            full.setattr(recorder.store.spool.file, "write_at", no_space)
            for number in range(1200):
                step(recorder, number, fetches=[f"fetch{number}"])
            recorder.flush()
        step(recorder, 1201)
        recorder.flush()
    assert len(open_session(recorder.session()["file"]).runs()) == len(recorder.runs()) == 1201


def no_space(offset: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")


def stop_disk(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The disk takes nothing until the event is set."""
    released, write_at = threading.Event(), recorder.store.spool.file.write_at

    def slow(offset: int, data: bytes) -> None:
        assert released.wait(60)
        write_at(offset, data)

    monkeypatch.setattr(recorder.store.spool.file, "write_at", slow)
    return released


def run_step(recorder: Recorder, number: int) -> str | None:
    """A step as the hook records it, on the training's thread; who asked for its trace."""
    claim = recorder.queue.claim([TRAIN, LOSS], {X: 0}, None)
    if claim is None or isinstance(claim, Missed):
        recorder.queue.add(((TRAIN, LOSS), (X,), None, number * 2_000_000, number * 2_000_000 + 1_000_000, get_ident(), claim))
        return None
    step(recorder, number, raw=RAW, asked_by=claim.asked_by)
    recorder.queue.requests.complete(claim)
    return claim.asked_by


def test_who_traces_waits_for_nobody_while_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path, keep_traces=100) as recorder:
        steps(recorder, 3)
        released = stop_disk(recorder, monkeypatch)
        recorder.queue.backlog.wait_s = 10.0**6
        recorder.set_trace_all(True)
        assert [run_step(recorder, number) for number in range(4, 24)] == ["global"] * 20
        released.set()
        assert recorder.flush()
        assert [trace["step"] for trace in recorder.runs()[0]["traces"]] == list(range(4, 24))
        assert recorder.session()["problems"] == []


def test_a_disk_that_hangs_holds_training_up_once_and_the_page_says_which_traces_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(tmp_path, keep_traces=100) as recorder:
        steps(recorder, 3)
        released = stop_disk(recorder, monkeypatch)
        monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 0)
        recorder.set_trace_all(True)
        traced = [run_step(recorder, number) for number in range(4, 24)]
        assert traced == ["global"] * trace_backlog.FEW_TRACES + [None] * 16
        recorder.request_traces(1, 2)
        assert run_step(recorder, 24) is None and recorder.runs()[0]["pending_traces"] == 2
        released.set()
        assert recorder.flush()
        assert [run_step(recorder, number) for number in (25, 26)] == ["user", "user"]
        assert recorder.flush()
        (problem,) = recorder.session()["problems"]
        assert problem["code"] == "missing_traces"
        assert problem["message"].startswith("17 traces are missing, because traces came faster than they could be")
        assert "steps 8-24" in problem["message"]
        assert len(recorder.runs()[0]["traces"]) == trace_backlog.FEW_TRACES + 2 and recorder.runs()[0]["steps"] == 26


def test_traces_that_were_asked_for_are_kept_whatever_keep_traces_is(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=2) as recorder:
        steps(recorder, 1)
        recorder.request_traces(1, 120)
        for number in range(2, 122):
            assert run_step(recorder, number) == "user"
        recorder.set_trace_all(True)
        for number in range(122, 130):
            assert run_step(recorder, number) == "global"
        assert recorder.flush()
        assert [trace["step"] for trace in recorder.runs()[0]["traces"]] == [*range(2, 122), 128, 129]


def test_traces_that_were_asked_for_make_way_at_the_cap_and_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 4, {1: RAW, 2: RAW}, asked_by="user")
        monkeypatch.setattr(traces_to_drop, "MAX_REQUESTED_BYTES", 2 * recorder.trace_record(1)["stored_bytes"])
        for number in (5, 6):
            step(recorder, number, raw=RAW, asked_by="user")
        assert recorder.flush()
        assert [trace["step"] for trace in recorder.runs()[0]["traces"]] == [5, 6]
        assert [problem["code"] for problem in recorder.session()["problems"]] == ["asked_traces"]


def test_saving_keeps_the_old_file_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, link = str(tmp_path / "a.tftrace"), tmp_path / "spool" / "link"
    with recording(tmp_path / "spool") as recorder:
        steps(recorder, 3, {2: RAW})
        recorder.save(path)
        steps(recorder, 5)
        link.symlink_to(path)
        with monkeypatch.context() as failing:
            failing.setattr(records, "copied_trace_record", lambda trace: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                recorder.save(path)
        assert open_session(path).runs()[0]["steps"] == 3
        recorder.save(str(link))
        assert link.is_symlink() and open_session(path).runs()[0]["steps"] == 5
        with pytest.raises(StorageError, match="cannot be written"):
            recorder.save(str(tmp_path / "none" / "a.tftrace"))
    assert Path(path).stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["a.tftrace"]


def test_saving_waits_for_what_was_recorded_before(tmp_path: Path) -> None:
    with recording(tmp_path / "spool") as recorder:
        for number in range(1, 101):
            step(recorder, number, raw=RAW if number == 100 else b"")
        recorder.save(str(tmp_path / "a.tftrace"))
    (run,) = open_session(tmp_path / "a.tftrace").runs()
    assert run["steps"] == 100 and [trace["step"] for trace in run["traces"]] == [100]
    recorder.save(str(tmp_path / "b.tftrace"))  # a closed one has nothing to wait for
    assert open_session(tmp_path / "b.tftrace").runs()[0]["steps"] == 100


def test_names_as_long_as_the_file_system_takes_them(tmp_path: Path) -> None:
    most = os.pathconf(tmp_path, "PC_NAME_MAX") - len(".tftrace")
    path = tmp_path / ("\N{GREEK SMALL LETTER LAMDA}" * (most // 2) + ".tftrace")
    with recording(tmp_path / "spool") as recorder:
        steps(recorder, 3)
        recorder.save(str(path))
    assert open_session(path).runs()[0]["steps"] == 3


def test_loading_adds_runs_with_numbers_of_their_own(tmp_path: Path) -> None:
    with recording(tmp_path / "one") as recorder:
        steps(recorder, 20, {5: RAW})
        recorder.save(str(tmp_path / "a.tftrace"))
    with recording(tmp_path / "two") as recorder:
        steps(recorder, 10, {2: RAW})
        loaded = recorder.load(str(tmp_path / "a.tftrace"))
        assert loaded == {"ok": True, "runs": 1, "traces": 1, "cut": "", "damage": ""}
        assert [(run["id"], run["steps"], [trace["id"] for trace in run["traces"]]) for run in recorder.runs()] == [
            (1, 10, [1]),
            (2, 20, [2]),
        ]
        assert [run["origin"] for run in recorder.runs()] == ["", "a.tftrace"]
        assert recorder.trace_bytes(2) == RAW
        with pytest.raises(UnsupportedError, match="loaded from a file"):
            recorder.request_traces(2, 1)
        shown, path = comparable(recorder), recorder.session()["file"]
    assert comparable(open_session(path)) == shown


def test_requests_for_what_is_not_there(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        of_run: list[Callable[[int], Any]] = [recorder.run, recorder.step_times, lambda run: recorder.request_traces(run, 1)]
        of_trace: list[Callable[[int], Any]] = [recorder.trace_record, recorder.trace_bytes, recorder.trace_context]
        for ask in [*of_run, *of_trace, lambda trace: recorder.set_note(trace, "")]:
            with pytest.raises(UnknownError):
                ask(9)


def test_requests_add_up_and_those_that_the_script_ends_before_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 3)
        for _ in range(2):
            recorder.request_traces(1, 2, more=True)
        assert recorder.run(1)["pending_traces"] == 4
        recorder.request_traces(1, 1)
        assert recorder.run(1)["pending_traces"] == 1, "the page sets the number"
        recorder.request_traces(None, 1, more=True)
    assert caplog.messages == ["tftracer: 2 requested traces were not taken: the script ended before these steps."]


def broken_listener(message: LiveMessage) -> None:
    raise ZeroDivisionError


def test_listeners_hear_of_every_change_and_may_fail(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        heard: list[Any] = []
        recorder.subscribe(broken_listener)
        end = recorder.subscribe(heard.append)
        steps(recorder, 3, {2: RAW})
        recorder.set_note(1, "here")
        recorder.set_trace_all(True)
        end()
        recorder.set_trace_all(False)
    kinds = [message["type"] for message in heard]
    assert {"run", "trace", "session"} == set(kinds)
    notes = [message["payload"]["note"] for message in heard if message["type"] == "trace"]
    assert list(dict.fromkeys(notes)) == ["", "here"]  # a trace is announced once more when it is summed up
    updates = [message["payload"] for message in heard if message["type"] == "run"]
    assert updates[-1]["steps"] == 3 and all("traces" not in update for update in updates)  # these have messages of their own
    assert heard[-1]["payload"]["trace_all"] is True


def test_a_full_disk_is_said_and_what_was_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 10, {2: RAW})
        store = recorder.store.spool.file
        write_at = store.write_at

        def half(offset: int, data: bytes) -> None:
            write_at(offset, data[: len(data) // 2])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(store, "write_at", half)
        for number in range(11, 21):
            step(recorder, number, raw=RAW if number == 15 else b"")
        recorder.flush()
        codes = [problem["code"] for problem in recorder.session()["problems"]]
        assert codes[:2] == ["storage", "trace"] and set(codes[2:]) <= {"missing_traces"}  # that one comes a moment later
        assert "No space left" in recorder.session()["problems"][0]["message"]
        reopened = open_session(recorder.session()["file"])
        assert reopened.session()["damage"] == "" and reopened.runs()[0]["steps"] == 10 and reopened.trace_bytes(1) == RAW
        assert recorder.runs()[0]["steps"] == 20

        monkeypatch.undo()  # space is free again
        step(recorder, 21, raw=RAW)
        recorder.flush()
        assert "storage" not in [problem["code"] for problem in recorder.session()["problems"]]
        shown = comparable(recorder)
    assert comparable(open_session(recorder.session()["file"]))[1:] == shown[1:]


def test_unusable_folders_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file" / "neither"))
    with recording(tmp_path / "file" / "spool") as recorder:
        steps(recorder, 5, {2: RAW})
        (problem,) = recorder.session()["problems"]
        assert problem["code"] == "spool" and "kept in memory" in problem["message"] and "spool_dir" in problem["message"]
        assert recorder.session()["file"] == "" and recorder.trace_bytes(1) == RAW
        recorder.save(str(tmp_path / "a.tftrace"))
        shown = comparable(recorder)
    assert comparable(open_session(tmp_path / "a.tftrace")) == shown


def test_a_session_without_steps_leaves_no_file(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        assert Path(recorder.session()["file"]).exists()
    assert list(tmp_path.iterdir()) == []


def test_memory_stays_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_queue, "MAX_EVENTS", 1000)
    monkeypatch.setattr(step_writer, "HISTORY_STEPS", 2000)
    with recording(tmp_path) as recorder:
        for part in range(30):
            for number in range(500):
                step(recorder, part * 500 + number)
            assert recorder.flush()
        (run,) = recorder.store.live_runs.values()
        assert len(run.statistics.history.entries()) < 10_000 and not run.unwritten.changed and not recorder.queue.counted
        assert recorder.store.spool.superfluous_records > 10  # steps one by one, made superfluous by whole histories
        shown, path = comparable(recorder), recorder.session()["file"]
    assert comparable(open_session(path)) == shown


def test_several_threads_ask_at_once(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=2) as recorder:
        failed: list[BaseException] = []

        def ask() -> None:
            try:
                for _ in range(20):
                    for run in recorder.runs():
                        recorder.step_times(run["id"])
                    b"".join(recorder.saved_bytes())
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1, 30):
            step(recorder, number, raw=RAW)
            recorder.flush()
        recorder.store.rewrite()
        for thread in threads:
            thread.join()
        assert failed == []


def test_a_closed_session_can_still_be_read(tmp_path: Path) -> None:
    recorder = Recorder(spool_dir=tmp_path).start()
    steps(recorder, 3, {1: RAW})
    recorder.close()
    recorder.close()
    assert recorder.trace_bytes(1) == RAW and recorder.session()["ended_at"] is not None
    assert recorder.run(1)["fetches"] == [TRAIN.name, LOSS.name] and recorder.run(1)["feeds"] == [X.name]


def test_a_note_with_half_a_surrogate_pair_is_kept_without_it(tmp_path: Path) -> None:
    """JSON may bring one, and no UTF-8 can hold it."""
    with recording(tmp_path) as recorder:
        steps(recorder, 3, {2: RAW})
        assert recorder.set_note(1, "slow \ud800!")["note"] == "slow ?!"
        assert recorder.session()["problems"] == []
    session = open_session(recorder.session()["file"])
    assert session.trace_record(1)["note"] == "slow ?!" and session.session()["damage"] == ""
    assert session.set_note(1, "\udfff")["note"] == "?"
