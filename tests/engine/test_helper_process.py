"""The helper process: real processes, real signals. Its answers are those of this process; whatever befalls it stays with it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import psutil
import pytest
from fake_source import DATA, FakeSource, a_trace
from job_page import wait_for
from recording import LOSS, RAW, TRAIN, X, recording, step, steps
from web_client import Client

from tftracer import memory_limit
from tftracer.capture.traces.requests import Claim
from tftracer.comparison.ops_over_traces import RunTraces
from tftracer.comparison.two_traces import OtherTotals
from tftracer.contract.analyses import ANALYSES, Parameter
from tftracer.engine import helper_process, helper_protocol
from tftracer.engine.decoded_traces import EXPORTS, AnswerFormat, Question
from tftracer.engine.engine import Engine, HelperEngine
from tftracer.engine.helper_process import Failure, Helper
from tftracer.errors import FormatError, HelperError, UnknownError
from tftracer.session import live
from tftracer.session.files.saved import open_session
from tftracer.session.live import Recorder
from tftracer.session.one_trace import session_of
from tftracer.session.writer import threads as writer
from tftracer.storage.tftrace_format import compress
from tftracer.storage.trace_payload import Payload, TraceKey
from tftracer.trace.model import TraceContext
from tftracer.web.app import Options, WebServer

FILES = sorted(path.name for path in DATA.glob("*.pb"))
FORMS = [AnswerFormat(True, "zstd"), AnswerFormat(False, "gzip"), AnswerFormat(False, "")]
ARGUMENTS: dict[Parameter, Any] = {"with_slack": True, "index": 3, "depth": 2}
QUESTIONS = [
    *(
        Question(analysis.name, {**{name: ARGUMENTS[name] for name in analysis.parameters if name in ARGUMENTS}, **choice})
        for analysis in ANALYSES
        for choice in analysis.choices()
    ),
    Question("memory", {"limit": 3}),
]
ONLY_PACKED = {analysis.name for analysis in ANALYSES if analysis.packed}
VERDICT = Question("verdict")
JSON = AnswerFormat(False, "")
PACKED = AnswerFormat(True, "zstd")
WAIT_S = 60


def trace_of(number: int, raw: bytes) -> TraceKey:
    return TraceKey("session", number, 0.5, len(raw))


class Source:
    """Traces by number, as a session keeps them, and what was taken from it."""

    def __init__(self, *raws: bytes) -> None:
        self.raws = raws
        self.loaded: list[int] = []

    def load(self, trace: TraceKey) -> Payload:
        self.loaded.append(trace.id)
        raw = self.raws[trace.id]
        return Payload(compress(raw), len(raw), TraceContext(step=trace.id, step_s=0.01, title="train_op"))

    def trace(self, number: int) -> TraceKey:
        return trace_of(number, self.raws[number])


@contextlib.contextmanager
def helped(source: Source) -> Iterator[HelperEngine]:
    engine = HelperEngine(source.load)
    try:
        yield engine
    finally:
        engine.close()


def running(engine: HelperEngine) -> psutil.Process:
    assert engine.helper.is_usable()
    return psutil.Process(engine.helper.pid)


# ----------------------------------------------------------------------------------------------------------- the same answers


@pytest.fixture(scope="module")
def all_files() -> Iterator[tuple[Source, HelperEngine]]:
    source = Source(*((DATA / name).read_bytes() for name in FILES))
    with helped(source) as engine:
        yield source, engine


@pytest.mark.parametrize("number", range(len(FILES)), ids=FILES)
def test_it_answers_as_this_process_does(number: int, all_files: tuple[Source, HelperEngine]) -> None:
    source, engine = all_files
    trace, threads = source.trace(number), Engine(source.load)
    for position, question in enumerate(QUESTIONS):
        form = PACKED if question.name in ONLY_PACKED else FORMS[position % len(FORMS)]
        assert engine.ask(trace, question, form) == threads.ask(trace, question, form), question.key
    for by in ("type", "name"):
        totals = b"".join(engine.ask(trace, Question("op_totals", {"by": by}), AnswerFormat(True, "zstd")).body.chunks)
        traces, beside = (trace, source.trace(0), by), OtherTotals([totals] * 3, [totals], False, 0, 0, "Steps.")
        assert engine.compare(*traces, beside, JSON) == threads.compare(*traces, beside, JSON)
        run = RunTraces([(1, 7, totals), (2, None, totals)], 3, 1)
        assert engine.run_ops(run, by, JSON) == threads.run_ops(run, by, JSON)
    assert engine.contents(trace) == threads.contents(trace)


@pytest.mark.parametrize("form", EXPORTS)
def test_it_exports_as_this_process_does(form: str) -> None:
    source = Source((DATA / FILES[0]).read_bytes())
    with helped(source) as engine:
        exported(form, source, engine)


def exported(form: str, source: Source, engine: HelperEngine) -> None:
    trace, session = source.trace(0), session_of(a_trace(0, source.trace(0).bytes))
    files = [io.BytesIO(), io.BytesIO()]
    others = {"roofline": [b"".join(engine.ask(trace, Question("best_rates"), PACKED).body.chunks)]}
    engine.export(trace, form, session, others, files[0])
    Engine(source.load).export(trace, form, session, others, files[1])
    here, there = files[1].getvalue(), files[0].getvalue()
    if form == "html":  # says when it was written
        assert there.startswith(b"<!doctype html>") and there.endswith(here[-100:]) and abs(len(there) - len(here)) < 1000
    else:
        assert there == here != b""


def test_a_trace_travels_once() -> None:
    source = Source(RAW)
    with helped(source) as engine:
        engine.contents(source.trace(0))
        source.loaded.clear()
        for question in QUESTIONS:
            engine.ask(source.trace(0), question, PACKED)
    assert source.loaded == []


def test_errors_come_back_as_they_are() -> None:
    source = Source(RAW, b"\xff" * 1000)
    with helped(source) as engine:
        with pytest.raises(UnknownError, match="no node"):
            engine.ask(source.trace(0), Question("node", {"index": 10**9}), JSON)
        with pytest.raises(UnknownError, match="no question"):
            engine.ask(source.trace(0), Question("_once"), JSON)
        with pytest.raises(FormatError):
            engine.ask(source.trace(1), VERDICT, JSON)
        assert engine.contents(source.trace(1))["state"] == "broken"
        with pytest.raises(Failure, match=r"ops.. got an unexpected keyword"):
            engine.ask(source.trace(0), Question("ops", {"colour": 1}), JSON)
        assert engine.ask(source.trace(0), VERDICT, JSON).headline


def test_a_trace_that_cannot_be_brought_is_the_error_to_tell() -> None:
    def gone(trace: TraceKey) -> Payload:
        raise UnknownError("it made way")

    engine = HelperEngine(gone)
    with pytest.raises(UnknownError, match="made way"):
        engine.ask(TraceKey("s", 1, 0.0, 1), VERDICT, JSON)
    engine.close()


class Full(io.BytesIO):
    def write(self, data: Any) -> int:
        raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_at_an_export_does_no_harm() -> None:
    source = Source(RAW)
    with helped(source) as engine:
        with pytest.raises(OSError, match="No space"):
            engine.export(source.trace(0), "chrome", session_of(a_trace(0, len(RAW))), {}, Full())
        pid = engine.helper.pid
        assert engine.ask(source.trace(0), VERDICT, JSON).headline and engine.helper.pid == pid


@contextlib.contextmanager
def memory_of(gigabytes: float) -> Iterator[None]:
    before = os.environ.get(memory_limit.VARIABLE)
    os.environ[memory_limit.VARIABLE] = str(gigabytes)
    try:
        yield
    finally:
        os.environ.pop(memory_limit.VARIABLE)
        if before is not None:
            os.environ[memory_limit.VARIABLE] = before


def test_memory_that_runs_out_is_an_answer_and_the_helper_goes_on() -> None:
    source = Source(RAW, b"\x0a\xff\x01" + b"\0" * 300_000_000)
    with memory_of(0.2), helped(source) as engine:
        pid = running(engine).pid
        for _ in range(2):
            with pytest.raises(
                HelperError, match=r"300\.0 MB needs more than 0\.2 GB .*TFTRACER_MEMORY_GB=0\.4.* or TFTRACER_MEMORY_GB=off"
            ):
                engine.ask(source.trace(1), VERDICT, JSON)
            with pytest.raises(HelperError, match="TFTRACER_MEMORY_GB"):
                engine.contents(source.trace(1))
            assert engine.ask(source.trace(0), VERDICT, JSON).headline
        assert engine.helper.pid == pid


@pytest.mark.parametrize("megabytes", [1, 12, 20, 27, 40])
def test_whatever_memory_there_is_every_question_is_answered(megabytes: int) -> None:
    source = Source((DATA / "dense500_tf2.15_cpu.pb").read_bytes())
    with memory_of(megabytes / 1000), helped(source) as engine:
        pid = running(engine).pid
        for question in QUESTIONS:
            try:
                assert engine.ask(source.trace(0), question, PACKED).body.size
            except HelperError as problem:
                assert memory_limit.VARIABLE in str(problem)
        assert engine.helper.pid == pid


def test_a_payload_without_room_is_passed_over() -> None:
    noise = os.urandom(60_000_000)  # as long when it is compressed
    source = Source(RAW, noise)
    with memory_of(0.05), helped(source) as engine:
        pid = running(engine).pid
        with pytest.raises(HelperError, match="TFTRACER_MEMORY_GB"):
            engine.ask(source.trace(1), VERDICT, JSON)
        assert engine.ask(source.trace(0), Question("budget"), JSON).body.size and engine.helper.pid == pid


# -------------------------------------------------------------------------------------------------------------- what befalls it


def suspended(engine: HelperEngine) -> psutil.Process:
    """The helper, once it is really stopped: the signal alone leaves it time for an answer."""
    worker = running(engine)
    worker.suspend()
    os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
    return worker


def test_killed_at_a_question_it_says_so_and_the_next_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(RAW)
    with helped(source) as engine:
        worker = suspended(engine)
        asked, failed = threading.Event(), []

        def receive(line: socket.socket, deadline: float | None) -> tuple[bytes, Any]:
            asked.set()  # the whole question is on the line: one that was killed before would be started and asked anew
            return helper_protocol.receive(line, deadline)

        def ask() -> None:
            try:
                engine.ask(source.trace(0), VERDICT, JSON)
            except BaseException as error:
                failed.append(error)

        monkeypatch.setattr(helper_process, "receive", receive)
        asking = threading.Thread(target=ask)
        asking.start()
        assert asked.wait(WAIT_S)
        worker.kill()
        asking.join(WAIT_S)
        assert isinstance(failed[0], HelperError) and "SIGKILL" in str(failed[0]) and "tftracer FILE" in str(failed[0])
        assert engine.ask(source.trace(0), VERDICT, JSON).headline
        assert engine.helper.pid != worker.pid and not psutil.pid_exists(worker.pid)  # and no zombie


def test_killed_between_two_questions_nobody_notices() -> None:
    source = Source(RAW)
    with helped(source) as engine:
        engine.ask(source.trace(0), VERDICT, JSON)
        worker = running(engine)
        worker.kill()
        worker.wait(WAIT_S)
        assert engine.ask(source.trace(0), VERDICT, JSON).headline


def test_one_that_hangs_is_ended() -> None:
    source = Source(RAW)
    with helped(source) as engine:
        worker = suspended(engine)
        engine.helper.timeout_s = 0.1
        with pytest.raises(HelperError, match="took too long"):
            engine.ask(source.trace(0), VERDICT, JSON)
        assert not psutil.pid_exists(worker.pid)
        engine.helper.timeout_s = WAIT_S
        assert engine.ask(source.trace(0), VERDICT, JSON).headline


def test_one_that_dies_again_and_again_is_not_started_for_ever() -> None:
    source = Source(RAW)
    with helped(source) as engine:
        engine.helper.timeout_s = -WAIT_S  # no time at all
        for _ in range(3):
            with pytest.raises(HelperError, match="took too long"):
                engine.ask(source.trace(0), VERDICT, JSON)
        with pytest.raises(HelperError, match="died 3 times"):
            engine.ask(source.trace(0), VERDICT, JSON)
        assert engine.helper.pid is None


SILENT = "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize("executable", [None, "", "/nonexistent/python", "silent python", "/usr/bin/training"])
def test_where_none_can_be_started_threads_answer(
    executable: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if executable == "silent python":
        executable = str(tmp_path / "python")
        Path(executable).write_text(SILENT, encoding="ascii")
        Path(executable).chmod(0o700)
    monkeypatch.setattr(sys, "executable", executable)
    source = Source(RAW)
    with helped(source) as engine:
        assert engine.ask(source.trace(0), VERDICT, JSON) == Engine(source.load).ask(source.trace(0), VERDICT, JSON)
        assert engine.contents(source.trace(0))["nodes"] > 0
        assert engine.helper.pid is None


def test_where_no_process_may_be_made_threads_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    source = Source(RAW)
    with helped(source) as engine:
        assert engine.ask(source.trace(0), VERDICT, JSON).headline


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_HELPER", "off")
    helper = Helper(Source(RAW).load)
    helper.start_in_background()
    assert not helper.is_usable() and helper.pid is None


def test_closed_while_it_starts_it_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    helper = Helper(Source(RAW).load)
    started: list[int] = []
    begin = helper_process.HelperProcess.__init__

    def closing(self: helper_process.HelperProcess) -> None:
        begin(self)
        started.append(self.process.pid)
        helper.close()

    monkeypatch.setattr(helper_process.HelperProcess, "__init__", closing)
    assert not helper.is_usable()
    assert helper.pid is None and not psutil.pid_exists(started[0])


# ----------------------------------------------------------------------------------------------------------- how it is started


def test_its_imports_have_a_low_priority_too() -> None:
    started = helper_process.HelperProcess()  # says when it has imported everything: wait_until_ready()
    try:
        assert psutil.Process(started.process.pid).nice() == min(19, os.nice(0) + 10)
    finally:
        started.end()


def test_it_has_nothing_of_the_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("LD_PRELOAD", "")
    with helped(Source(RAW)) as engine:
        worker = running(engine)
        environment = worker.environ()
        assert environment["CUDA_VISIBLE_DEVICES"] == ""
        assert not {"OMPI_COMM_WORLD_RANK", "LD_PRELOAD"} & set(environment)
        assert worker.nice() == min(19, os.nice(0) + 10)
        assert os.getpgid(worker.pid) == worker.pid  # Ctrl-C does not reach it
        assert all("tensorflow" not in file.path for file in worker.memory_maps())
        kinds = {str(Path(f"/proc/{worker.pid}/fd/{number}").readlink()) for number in (0, 1, 2)}
        assert kinds == {"/dev/null"}
        assert (Path("/proc") / str(worker.pid) / "oom_score_adj").read_text(encoding="ascii").strip() == "1000"


PARENT = """
import os, sys, time
from tftracer.engine.engine import HelperEngine
engine = HelperEngine(None)
assert engine.helper.is_usable(), engine.helper.unusable
{fork}
print(engine.helper.pid, flush=True)
sys.stdin.readline()
{end}
"""
FORK = "os.fork() or (time.sleep(1000), os._exit(0))"


@contextlib.contextmanager
def training(end: str, fork: str = "") -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """A process with a helper, which ends as ``end`` says once it reads a line; and that helper."""
    source = textwrap.dedent(PARENT.format(end=end, fork=fork))
    options: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", source], cwd=Path(__file__).parents[2], **options) as parent:
        try:
            assert parent.stdout is not None
            yield parent, psutil.Process(int(parent.stdout.readline()))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)  # its forked child, too


@pytest.mark.parametrize("end", ["killed", "os._exit(3)", "raise SystemExit", "engine.close()"])
@pytest.mark.parametrize("fork", ["", FORK], ids=["alone", "forked"])
def test_it_ends_with_its_parent(end: str, fork: str) -> None:
    with training("time.sleep(1000)" if end == "killed" else end, fork) as (parent, helper):
        if end == "killed":
            parent.kill()
        else:
            assert parent.stdin is not None
            parent.stdin.close()
        helper.wait(WAIT_S)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not kill it; its processor time is bounded there")
@pytest.mark.parametrize("fork", ["", FORK], ids=["alone", "forked"])
def test_one_that_can_run_no_code_of_its_own_ends_with_its_parent(fork: str) -> None:
    """Stopped, it runs none of its threads, as when C code holds the interpreter's lock."""
    with training("time.sleep(1000)", fork) as (parent, helper):
        helper.suspend()
        parent.kill()
        helper.wait(WAIT_S)


def test_it_outlives_the_thread_that_asked_for_it() -> None:
    """The kernel kills it when the thread that started it ends: that one lives as long as the helper."""
    source = Source(RAW)
    with helped(source) as engine:
        asking = threading.Thread(target=engine.helper.is_usable)
        asking.start()
        asking.join(WAIT_S)
        pid = engine.helper.pid
        assert pid is not None
        assert engine.ask(source.trace(0), VERDICT, JSON).headline
        assert engine.helper.pid == pid


def test_its_processor_time_is_bounded() -> None:
    stuck = "from tftracer.engine.helper_main import isolate, limit_cpu\nisolate()\nlimit_cpu(1)\nsum(range(10**18))"
    done = subprocess.run([sys.executable, "-c", stuck], cwd=Path(__file__).parents[2], check=False, timeout=WAIT_S * 5)
    assert done.returncode == -signal.SIGXCPU


def test_it_finds_the_package_wherever_it_is(tmp_path: Path) -> None:
    """Imported from a folder that only the script knows, with modules beside it that hide the interpreter's own."""
    (tmp_path / "tftracer").symlink_to(Path(__file__).parents[2] / "tftracer")
    script = tmp_path / "train.py"
    script.write_text(
        "from tftracer.engine.engine import HelperEngine\nengine = HelperEngine(None)\n"
        "print(engine.helper.is_usable(), engine.helper.unusable)\nengine.close()\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split()[0] == "True", done


def test_a_frame_that_is_none_is_refused() -> None:
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        helper_protocol.send(ours, helper_protocol.MESSAGE, {"a": [1, b"2"]})
        assert helper_protocol.receive(theirs) == (helper_protocol.MESSAGE, {"a": [1, b"2"]})
        ours.sendall(helper_protocol.HEAD.pack(b"x", 1) + b"1")
        with pytest.raises(EOFError):
            helper_protocol.receive(theirs)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(helper_protocol.HEAD.pack(helper_protocol.DATA, helper_protocol.MAX_BYTES + 1))
        with pytest.raises(EOFError):
            helper_protocol.receive(theirs)


# ------------------------------------------------------------------------------------------------------------- in a session


def test_a_recorders_traces_are_summed_up_and_opened_by_it(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        recorder.request_traces(None, 1)
        steps(recorder, 3, {2: RAW})
        record = recorder.trace_record(1)
        assert (record["state"], (record["nodes"] or 0) > 0, record["headline"] != "") == ("ready", True, True)
        assert recorder.engine.helper.pid is not None
        server = WebServer(recorder, Options(0), engine=recorder.engine)
        server.start()
        try:
            answer = Client(server).get("/api/traces/1/verdict", Accept="application/msgpack")
            chrome = Client(server).get("/api/traces/1/file?format=chrome")
            assert (answer.status, chrome.status, chrome.json["traceEvents"] != []) == (200, 200, True)
            assert msgpack.unpackb(answer.body)["sentences"][0]["text"] == record["headline"]
            suspended(recorder.engine)
            recorder.engine.helper.timeout_s = 0.1
            failed = Client(server).get("/api/traces/1/ops")
            assert (failed.status, failed.code) == (503, "analysis_failed")
            recorder.engine.helper.timeout_s = WAIT_S
            assert Client(server).get("/api/traces/1/ops").status == 200
        finally:
            server.stop()
    assert recorder.engine.helper.pid is None


def test_a_trace_that_could_not_be_summed_up_is_kept(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        assert recorder.engine.helper.is_usable()
        recorder.engine.helper.timeout_s = -WAIT_S
        steps(recorder, 3, {2: RAW})
        record = recorder.trace_record(1)
        assert record["state"] == "ready" and [f["code"] for f in record["findings"]] == ["not_summed_up"]
        assert recorder.trace_bytes(1) == RAW


@pytest.fixture
def a_patient_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Recorder]:
    """Whose helper, stopped, would be waited for for days."""
    for place, name in ((helper_process, "TIMEOUT_S"), (writer, "CLOSE_S"), (live, "SAVE_S")):
        monkeypatch.setattr(place, name, 10.0**6)
    monkeypatch.setattr(writer, "HELPER_S", 0.1)
    with recording(tmp_path) as recorder:
        assert recorder.engine.helper.is_usable()
        yield recorder


def test_the_end_of_a_script_waits_for_no_stopped_helper(a_patient_session: Recorder) -> None:
    recorder = a_patient_session
    worker = suspended(recorder.engine)
    step(recorder, 1, raw=RAW)
    recorder.close()
    assert not psutil.pid_exists(worker.pid)
    reopened = open_session(recorder.session()["file"])
    reopened.analyze_pending()
    record = reopened.trace_record(1)
    assert record["nodes"] and "not_summed_up" not in str(record["findings"]) and reopened.trace_bytes(1) == RAW


def test_a_save_waits_for_no_stopped_helper(a_patient_session: Recorder, tmp_path: Path) -> None:
    recorder = a_patient_session
    worker = suspended(recorder.engine)
    step(recorder, 1, raw=RAW)
    recorder.save(str(tmp_path / "saved.tftrace"))
    assert open_session(tmp_path / "saved.tftrace").trace_bytes(1) == RAW
    worker.resume()
    wait_for(lambda: recorder.trace_record(1)["nodes"])  # the same helper has summed it up


def test_traces_are_stored_and_requests_served_while_the_helper_is_stopped(a_patient_session: Recorder) -> None:
    """As on a machine whose processes leave none of its CPUs to the helper."""
    recorder = a_patient_session
    recorder.queue.backlog.wait_s = 10.0**6  # who waits for room waits for ever
    steps_before_it = 3
    for number in range(1, 1 + steps_before_it):
        step(recorder, number)
    worker = suspended(recorder.engine)
    recorder.set_trace_all(True)
    for number in range(1 + steps_before_it, 41):
        claim = recorder.queue.claim((TRAIN, LOSS), (X,), None)
        assert isinstance(claim, Claim)
        step(recorder, number, raw=RAW, asked_by=claim.asked_by)
        recorder.queue.requests.complete(claim)
        wait_for(lambda: recorder.queue.backlog.is_empty)  # released, though nobody knows what it holds
    (run,) = recorder.runs()
    assert [trace["step"] for trace in run["traces"]] == [36, 37, 38, 39, 40]  # as many as are kept
    assert recorder.trace_bytes(run["traces"][-1]["id"]) == RAW and recorder.session()["problems"] == []
    worker.resume()
    wait_for(lambda: all(trace["nodes"] for trace in recorder.runs()[0]["traces"]))


def test_a_viewer_starts_none(no_stray_logs: None) -> None:
    source = FakeSource(live=False)
    server = WebServer(source, Options(0))
    server.start()
    try:
        before = {child.pid for child in psutil.Process().children()}
        assert Client(server).get("/api/traces/1/verdict").status == 200
        assert {child.pid for child in psutil.Process().children()} <= before
    finally:
        server.stop()
