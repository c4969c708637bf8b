"""``tftracer.open``: every column holds what the page's answers hold, of every kind of trace and file."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import pytest
from job_page import wait_for
from local_jobs import Jobs, jobs
from made_stalls import record_slow_steps
from recording import RAW, TRAIN, X, recording, steps
from web_client import certificate, serving

import tftracer
from tftracer.errors import FormatError, StorageError, TracerError, UnknownError
from tftracer.export.tables.schema import SCRIPT_TABLES, TABLES
from tftracer.importers.imported import Imported
from tftracer.importers.open_any import open_bytes
from tftracer.scripting.session import Session
from tftracer.session.files.imported import model_of
from tftracer.session.files.saved import SavedSession
from tftracer.trace.analyses import communication, ops
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.columns import array
from tftracer.trace.model import NodeKind

__all__ = ["certificate", "jobs"]  # fixtures

DATA = Path(__file__).parents[1] / "data"
FILES = [
    "ps_worker0_tf2.21_cpu.pb",
    "while_loop_tf2.15_cpu.pb",
    "conv_costgraph_tf2.21_cpu.pb",
    "estimator_tf2.15_cpu.pb",
    "horovod_rank0_tf2.15_cpu.pb",
    "gpu_timeline_tf1.json",
    "foreign/timeline-2.json",
    "foreign/step.pb.gz",
    "foreign/step.pbtxt",
    "foreign/events.out.tfevents.small",
    "legacy/session.pickle",
    "legacy/run_metadata_protocol2.pickle",
    "versions/2-first-saved.tftrace",
    "versions/2-spool.tftrace",
    "xspace/convnet_tf2.21.xplane.pb",
    "xspace/gpu_v100_excerpt.xplane.pb.gz",
    "xspace/xla_cpu_tf2.21.xplane.pb.gz",
]


@pytest.fixture(params=FILES, scope="module")
def session(request: pytest.FixtureRequest) -> Any:
    with tftracer.open(DATA / request.param) as opened:
        yield opened


def answers_of(session: Session) -> dict[int, Answers]:
    """Of every trace, decoded anew, without the page's limits on rows."""
    traces = [trace for run in session.source.runs() for trace in run["traces"] if trace["state"] == "ready"]
    source = session.source
    return {t["id"]: Answers(source.trace_bytes(t["id"]), source.trace_context(t["id"]), trace_id=t["id"]) for t in traces}


def rows(table: tftracer.Table, trace_id: int) -> list[dict[str, Any]]:
    return [row for row in table if row["trace_id"] == trace_id]


@pytest.fixture(autouse=True)
def whole_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communication, "MAX_TRANSFERS", 1 << 40)


def test_slices_are_the_timeline_s(session: Session) -> None:
    table = session.slices()
    for trace_id, answers in answers_of(session).items():
        answers.critical_path()
        timeline = answers.timeline()
        columns = {name: column[table["trace_id"] == trace_id] for name, column in table.select().items()}
        node = array(timeline["node"])
        assert len(columns["node"]) == timeline["nodes"] > 0
        assert (columns["start_ns"][node] == array(timeline["start"])).all()
        assert (columns["dur_ns"][node] == array(timeline["duration"])).all()
        assert (columns["delay_ns"][node].filled(-1) == np.maximum(array(timeline["delay"]), -1)).all()
        assert (columns["critical"][node] == array(timeline["critical"])).all()
        assert [NodeKind[kind.upper()] for kind in columns["kind"][node]] == array(timeline["kind"]).tolist()
        trace = answers.trace
        assert columns["name"][node].tolist() == [trace.names[trace.name[i]] for i in node]
        assert columns["op"][node].tolist() == [trace.ops[trace.op[i]] for i in node]
        assert columns["device"][node].tolist() == [trace.devices[trace.device[i]].name for i in node]


@pytest.mark.parametrize("by", ["type", "name", "scope"])
def test_ops_are_the_ops_tab_s(session: Session, by: Any) -> None:
    table = session.ops(by)
    for trace_id, answers in answers_of(session).items():
        expected = ops.op_statistics(answers.trace, by, [], limit=1 << 40, arithmetic=answers.arithmetic)["rows"]
        op_rows = rows(table, trace_id)
        assert [row["key"] for row in op_rows] == [row["key"] for row in expected]
        for name in ("op", "device", "count", "total_ns", "self_ns", "max_ns", "host_ns", "device_ns", "delay_ns", "flops"):
            assert [row[name] for row in op_rows] == [row[name] for row in expected], name
        assert [row["traffic_bytes"] for row in op_rows] == [row["bytes"] for row in expected]
        assert [row["flops_unknown"] + row["traffic_unknown"] for row in op_rows] == [
            row["flops_unknown"] + row["bytes_unknown"] for row in expected
        ]
        assert [row["longest_node"] for row in op_rows] == [row["node"] for row in expected]


@pytest.mark.parametrize("by", ["type", "name", "scope"])
def test_ops_over_traces_are_the_statistics_of_the_table_of_ops(session: Session, by: Any) -> None:
    ops_of_traces = list(session.ops(by))
    for run in session.source.runs():
        read = [trace["id"] for trace in run["traces"] if trace["state"] == "ready"]
        expected: dict[str, list[dict[str, Any]]] = {}
        for row in ops_of_traces:
            if row["run_id"] == run["id"]:
                expected.setdefault(row["key"], []).append(row)
        over = list(session.ops_over_traces(run["id"], by))
        assert {row["key"]: row["traces"] for row in over} == {key: len(rows) for key, rows in expected.items()}
        work = sum(ops.op_statistics(answers_of(session)[trace].trace, by, [])["total_ns"] for trace in read)
        for row in over:
            rows = expected[row["key"]]
            times = [each["total_ns"] for each in rows]
            assert (row["run_id"], row["of_traces"]) == (run["id"], len(read))
            assert (row["shortest_ns"], row["longest_ns"], row["median_ns"]) == (min(times), max(times), np.median(times))
            assert row["spread_ns"] == (pytest.approx(np.std(times, ddof=1)) if len(times) > 1 else None)
            assert row["share"] == pytest.approx(sum(times) / work if work else 0)
            known = [each["flops"] for each in rows if not each["flops_unknown"]]
            assert row["flops"] == (pytest.approx(np.mean(known)) if known else None)
            assert (row["best_flops_per_s"] or 0) >= (row["median_flops_per_s"] or 0)


def test_ops_over_traces_are_of_all_runs_or_of_one() -> None:
    with tftracer.open(DATA / "versions/2-spool.tftrace") as session:
        title = session.runs()["title"][0]
        of_one = session.ops_over_traces(title)
        assert set(of_one["run_id"].tolist()) == {session.runs()["run_id"][0]}
        assert len(session.ops_over_traces()) == sum(len(session.ops_over_traces(int(run))) for run in session.runs()["run_id"])
        dtypes = {"int": "i", "float": "f", "text": "O"}
        for field in SCRIPT_TABLES["ops_over_traces"]:
            assert of_one[field.name].dtype.kind == dtypes[field.type] and len(of_one[field.name]) == len(of_one)
            assert isinstance(of_one[field.name], np.ma.MaskedArray) == field.unknown, field.name
        with pytest.raises(UnknownError, match="type, name or scope"):
            session.ops_over_traces(by="colour")  # type: ignore[arg-type]
        with pytest.raises(UnknownError, match="no such run"):
            session.ops_over_traces("no such run")


def test_tensors_are_the_memory_tab_s(session: Session) -> None:
    table = session.tensors()
    for trace_id, answers in answers_of(session).items():
        expected = answers.memory(limit=1 << 40)
        tensor_rows = rows(table, trace_id)
        assert len(tensor_rows) == expected["tensors_total"] == len(expected["tensors"])
        for row, tensor in zip(tensor_rows, expected["tensors"]):
            for name in ("node", "output", "last_consumer"):
                assert row[name] == (tensor[name] if tensor[name] >= 0 else None), name
            for name in ("name", "op", "device", "allocator", "bytes", "shape", "dtype", "alloc_ns", "free_ns"):
                assert row[name] == tensor[name], name  # type: ignore[literal-required]


def test_a_profile_s_table_of_tensors_is_what_its_allocators_recorded() -> None:
    with tftracer.open(DATA / "xspace/gpu_v100_excerpt.xplane.pb.gz") as opened:
        table = opened.tensors()
        assert len(table) > 300
        assert "GPU_4_bfc" in table["allocator"]
        of_largest = table[0]
        assert (of_largest["output"], of_largest["last_consumer"], of_largest["shape"]) == (None, None, "")


def test_transfers_sentences_findings_and_budgets_are_the_page_s(session: Session) -> None:
    transfers, sentences, findings = session.transfers(), session.sentences(), session.findings()
    budgets = {row["trace_id"]: row for row in session.traces()}
    for trace_id, answers in answers_of(session).items():
        expected = answers.communication()["transfers"]
        transfer_rows = rows(transfers, trace_id)
        assert len(transfer_rows) == answers.communication()["transfers_total"]
        assert [row["start_ns"] + row["dur_ns"] for row in transfer_rows] == [transfer["end_ns"] for transfer in expected]
        for name in ("node", "tensor", "source", "destination", "bytes", "start_ns"):
            assert [row[name] for row in transfer_rows] == [transfer[name] for transfer in expected], name
        verdict = answers.verdict()["sentences"]
        assert [(r["code"], r["text"], r["share"]) for r in rows(sentences, trace_id)] == [
            (s["code"], s["text"], s["share"]) for s in verdict
        ]
        record = session.source.trace_record(trace_id)
        assert [row["message"] for row in rows(findings, trace_id)] == [finding["message"] for finding in record["findings"]]
        parts, row = answers.budget()["whole"]["parts_ns"], budgets[trace_id]
        assert {name: row[f"{name}_ns"] for name in parts} == {
            name: None if value is None else round(value) for name, value in parts.items()
        }
        assert row["memory_peak_bytes"] == next((c["peak_bytes"] for c in answers.memory()["curves"]), None)
        assert (row["nodes"], row["step"], row["headline"]) == (record["nodes"], record["step"], record["headline"])


def test_runs_and_steps_are_the_overview_s(session: Session) -> None:
    runs = {row["run_id"]: row for row in session.runs()}
    for run in session.source.runs():
        row = runs[run["id"]]
        assert (row["title"], row["traces"], row["steps"] or 0) == (run["title"], len(run["traces"]), run["steps"])
        assert row["p99_ns"] == (None if run["p99_s"] is None else round(run["p99_s"] * 1e9))
        entries = session.source.history(run["id"]).entries()
        table = session.steps(run["id"])
        assert table["step"].tolist() == entries[:, 0].tolist()
        assert np.allclose(table["mean_ns"] / 1e9, entries[:, 3], rtol=0, atol=1e-9)
        assert np.allclose(table["start_at"].astype(np.int64) / 1e9, entries[:, 2], rtol=0, atol=2e-6)
        assert set(table["step"][table["traced"]].tolist()) <= set(session.source.history(run["id"]).traced)


def test_columns_have_the_types_that_the_docs_say(session: Session) -> None:
    dtypes = {"int": "i", "float": "f", "bool": "b", "text": "O", "time": "M"}
    for name, fields in TABLES.items():
        columns = session.table(name).select()
        assert list(columns) == [field.name for field in fields]
        assert len({len(column) for column in columns.values()}) == 1
        for field in fields:
            assert columns[field.name].dtype.kind == dtypes[field.type], (name, field.name)
            masked = isinstance(columns[field.name], np.ma.MaskedArray)
            assert masked == (field.unknown and field.type not in ("text", "time")), (name, field.name)


def test_one_trace_and_one_run_can_be_asked_for() -> None:
    with tftracer.open(DATA / "versions/2-spool.tftrace") as session:
        (first, *_) = session.traces()["trace_id"].tolist()
        assert set(session.slices(trace=first)["trace_id"].tolist()) == {first}
        title = session.runs()["title"][1]
        assert set(session.steps(title)["run_id"].tolist()) == {session.runs()["run_id"][1]}
        assert len(session.steps()) == sum(len(session.steps(int(run))) for run in session.runs()["run_id"])
        for wrong in (lambda: session.slices(trace=99), lambda: session.steps("no such run"), lambda: session.steps(99)):
            with pytest.raises(UnknownError):
                wrong()
        with pytest.raises(UnknownError, match="type, name or scope"):
            session.ops(by="colour")  # type: ignore[arg-type]
        with pytest.raises(UnknownError, match="start_ns"):
            session.slices()["begin"]
        with pytest.raises(UnknownError, match="slices"):
            session.table("slice")


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copy(DATA / "versions/2-saved.tftrace", tmp_path / "mine.tftrace")
    with tftracer.open("~/mine.tftrace") as session:
        assert len(session.runs()) and session.name == "~/mine.tftrace"


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nothing-here"):
        tftracer.open(tmp_path / "nothing-here.tftrace")
    with pytest.raises(FormatError):
        tftracer.open(DATA / "invalid/pb-cut.bin")


def test_a_trace_without_a_node_has_empty_tables() -> None:
    session = Session(SavedSession(model_of(open_bytes(b"\n\x00"))), "empty")
    for name in ("slices", "ops", "tensors", "transfers"):
        assert [len(column) for column in session.table(name).select().values()] == [0] * len(TABLES[name])
    (trace,) = session.traces()
    assert (trace["nodes"], trace["length_ns"], trace["origin_at"], trace["memory_peak_bytes"]) == (0, None, None, None)


def test_hostile_names_come_through_as_they_are() -> None:
    name = "a'\"; drop table slices; --\x00é\n<script>"
    raw = RAW.replace(b"MatMul_26", b"\xff\x00';--\n<b")
    session = Session(SavedSession(model_of(open_bytes(raw))), name)
    assert "�\x00';--\n<b" in "".join(session.slices()["name"])
    assert repr(session).startswith("<Session a'")


def test_a_damaged_trace_is_said_and_the_others_are_there(tmp_path: Path) -> None:
    good = DATA / "versions/2-saved.tftrace"
    with tftracer.open(good) as session:
        payload = session.source.trace_state(3).payload
        damaged = bytearray(good.read_bytes())
        damaged[damaged.index(payload.frame_unchecked()) + 20] ^= 255
        total = len(session.slices())
        lost = len(session.slices(trace=3))
    path = tmp_path / "damaged.tftrace"
    path.write_bytes(damaged)
    with tftracer.open(path) as session:
        assert dict(zip(session.traces()["trace_id"].tolist(), session.traces()["state"]))[3] == "broken"
        assert len(session.slices()) == total - lost
        assert session.findings()["code"].tolist().count("unreadable") == 1


def test_a_live_session_is_asked_by_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFTRACER_TOKEN", raising=False)
    with recording(tmp_path) as recorder, serving(recorder, token="the-token") as client:
        steps(recorder, 5, traced={3: RAW})
        wait_for(lambda: recorder.runs()[0]["traces"][0]["nodes"], "the trace's summary")
        url = client.server.url
        address = url.partition("?")[0]
        with tftracer.open(url) as session, tftracer.open(address, token="the-token") as again:
            assert session.runs()["steps"].tolist() == [5] and session.facts["live"] is False
            assert len(session.slices()) == session.traces()["nodes"][0] == 370
            assert (again.slices()["start_ns"] == session.slices()["start_ns"]).all()
            assert "the-token" not in repr(session) + repr(again)
        for view in ("traces/1?tab=ops&", "runs/1/ops?", "runs/1?", "compare?a=1&b=2&", "job?", "job/traces/3?"):
            with tftracer.open(f"{address}{view}token=the-token#part") as linked:
                assert linked.runs()["steps"].tolist() == [5]
        monkeypatch.setenv("TFTRACER_TOKEN", "the-token")
        tftracer.open(address).close()
        with pytest.raises(StorageError, match="token is wrong"):
            tftracer.open(address, token="another")
        monkeypatch.delenv("TFTRACER_TOKEN")
        with pytest.raises(StorageError, match="TFTRACER_TOKEN"):
            tftracer.open(address)
    with pytest.raises(StorageError, match="cannot be reached"):
        tftracer.open(address, token="the-token")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/?token=cut\u2026", "http://[::1/?token=a", "http://a..b/?token=a", "http://127.0.0.1:x/?token=a"],
)
def test_a_url_that_was_not_copied_whole_is_an_error_that_names_it(url: str) -> None:
    with pytest.raises(StorageError, match=re.escape(url[:9])):
        tftracer.open(url)


@pytest.mark.parametrize("body", [b"<html>", b"[1]"])
def test_a_page_of_another_program_is_no_session(body: bytes) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(TracerError):
            tftracer.open(f"http://127.0.0.1:{server.server_port}/?token=a")
        server.shutdown()


def test_a_certificate_of_one_s_own_is_asked_for(tmp_path: Path, certificate: tuple[str, str]) -> None:
    with recording(tmp_path) as recorder, serving(recorder, certfile=certificate[0], keyfile=certificate[1]) as client:
        with pytest.raises(StorageError, match="certificate=FILE"):
            tftracer.open(client.server.url)
        assert len(tftracer.open(client.server.url, certificate=certificate[0]).runs()) == 0


def test_a_job_s_processes_are_on_one_clock(jobs: Jobs, tmp_path: Path) -> None:
    first, _ = jobs.start(2)
    number = first.trace()["id"]
    first.summed_up(number)
    timeline = first.packed(f"api/job/traces/{number}/timeline")
    path = tmp_path / "job.tftrace"
    path.write_bytes(first.ask("api/job/file"))
    with tftracer.open(path) as session, tftracer.open(first.server.url) as live:
        check_job(session, timeline)
        check_job(live, timeline)


def check_job(session: Session, timeline: Any) -> None:
    assert [(process.title, process.rank) for process in session.processes] == [("rank 0", 0), ("rank 1", 1)]
    assert session.job_name and session is session.processes[0]
    assert len(session.steps()) > 0, "the hub's own session is in it too"
    start = np.empty(timeline["nodes"])
    start[array(timeline["node"])] = array(timeline["start"])
    origin = np.datetime64(int(timeline["origin_ns"]), "ns")
    parts = []
    for process in session.processes:
        (trace_id,) = process.traces()["trace_id"].tolist()
        since = (process.traces()["origin_at"][0] - origin).astype(np.int64)
        parts.append(process.slices(trace_id)["start_ns"] + since)
    assert (np.concatenate(parts) == start).all()
    assert np.ma.count(session.processes[1].table("session")["clock_offset_ns"]) == 1


def test_it_imports_no_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow was imported')")
    code = "import sys, tftracer; print(len(tftracer.open(sys.argv[1]).ops()), 'tornado' in sys.modules)"
    command = [sys.executable, "-c", code, str(DATA / "while_loop_tf2.15_cpu.pb")]
    environment = {"PYTHONPATH": f"{Path(tftracer.__file__).parents[1]}:{tmp_path}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=True)
    assert int(done.stdout.split()[0]) > 0


def test_recorded_steps_are_there_before_the_session_ends(tmp_path: Path) -> None:
    """The spool of a process that still runs opens as it stands."""
    with recording(tmp_path) as recorder:
        steps(recorder, 20, traced={4: RAW})
        with tftracer.open(recorder.session()["file"]) as session:
            assert session.steps()["traced"].tolist() == [number == 4 for number in range(1, 21)]
            assert (session.steps()["mean_ns"] == 1_000_000).all()
            assert session.traces()["step"].tolist() == [4]


def test_the_times_of_a_long_run_are_of_all_its_steps(tmp_path: Path) -> None:
    """Rows of older steps stand for several: neither their number nor their mean tells of the steps."""
    total, slow = 11_598, 1_000
    with recording(tmp_path) as recorder:
        for number in range(1, total + 1):
            longer = 596_000_000 if number == slow else 0
            start = number * 2_000_000 + (596_000_000 if number > slow else 0)
            recorder.queue.add(((TRAIN,), (X,), None, start, start + 1_000_000 + longer, get_ident(), None))
            assert number % 2_000 or recorder.flush()
        assert recorder.flush()
        path = tmp_path / "long.tftrace"
        recorder.save(str(path))
    with tftracer.open(path) as session:
        run, steps = session.run(), session.steps()
        assert run == session.runs()[0] == session.run(run["title"]) == session.run(run["run_id"])
        assert run["steps"] == steps["count"].sum() == total > 2 * len(steps) > 0
        assert run["max_ns"] == pytest.approx(597_000_000, rel=0.01) and steps["max_ns"].max() == 597_000_000
        assert np.average(steps["mean_ns"], weights=steps["count"]) == pytest.approx(1_000_000 + 596_000_000 / total, rel=1e-6)
        assert f"{len(steps):,} rows of 11,598 steps" in repr(steps)
        with pytest.raises(UnknownError):
            session.run("no such run")
    with pytest.raises(UnknownError, match="no run"):
        Session(SavedSession(model_of(Imported("an empty file"))), "empty").run()


def test_stalls_are_the_slow_steps_of_the_page(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run = record_slow_steps(recorder)
        path = tmp_path / "slow.tftrace"
        recorder.save(str(path))
    with tftracer.open(path) as session:
        expected = session.source.run_stalls(run.run_id)["stalls"]
        stall_rows = list(session.stalls())
        assert [row["step"] for row in stall_rows] == [stall["step"] for stall in expected] == [50, 97, 194, 291]
        for row, stall in zip(stall_rows, expected):
            assert (row["stall_id"], row["duration_ns"]) == (stall["id"], round(stall["duration_s"] * 1e9))
            assert (row["inside"], row["code"]) == (stall["where"] == "inside", stall["place"])
            for name in ("run_id", "cause", "text", "uncertainty", "samples", "trace_id", "every"):
                assert row[name] == stall[name], name


def test_tables_survive_without_their_session() -> None:
    columns = tftracer.open(DATA / "while_loop_tf2.15_cpu.pb").ops().select()
    assert pickle.loads(pickle.dumps(columns))["key"][0]
