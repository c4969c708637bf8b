"""The other traces of a run, by which one is judged: which they are, and that a summary, scripts and pages say the same."""

from __future__ import annotations

import html
import lzma
import re
from pathlib import Path
from typing import Any

import msgpack
import pytest
from fake_source import FakeSource, a_trace
from html_page import Page
from recording import DATA, TRAIN, recording, step
from web_client import no_stray_logs, serving

import tftracer
from tftracer.contract.analyses import OTHER_TRACES_NEEDED
from tftracer.display.iframe import Frame
from tftracer.session.files.saved import open_session
from tftracer.session.summary_of_session import render, summarize
from tftracer.session.traces.other_traces import MAX_BYTES_AT_ONCE, other_traces_of_run

__all__ = ["no_stray_logs"]  # a fixture

RAW = [
    trace["raw"]
    for trace in msgpack.unpackb(lzma.decompress((DATA / "compute_steps" / "slow_kernel_1_tf2.21.xz").read_bytes()))["traces"]
]
VERDICT, ROOFLINE = OTHER_TRACES_NEEDED["verdict"], OTHER_TRACES_NEEDED["roofline"]


def saved(folder: Path, traces: int) -> str:
    with recording(folder, keep_traces=100) as recorder:
        for number, raw in enumerate(RAW[:traces], 1):
            step(recorder, number, (TRAIN,), raw=raw)
        assert recorder.flush()
        recorder.save(str(folder / "saved.tftrace"))
    return str(folder / "saved.tftrace")


def codes(verdict: Any) -> list[str]:
    return [sentence["code"] for sentence in verdict["sentences"]]


@pytest.mark.parametrize(("traces", "is_named"), [(3, False), (4, True)])
def test_the_summary_and_scripts_say_what_the_page_says(tmp_path: Path, traces: int, is_named: bool) -> None:
    file = saved(tmp_path, traces)
    summary = summarize(open_session(file))
    assert ("slow_kernel" in [sentence["code"] for sentence in summary["verdict"]]) == is_named
    with tftracer.open(file) as session:
        table = session.sentences()
        for number in session.trace_ids():
            of_trace = table["code"][table["trace_id"] == number].tolist()
            assert ("slow_kernel" in of_trace) == is_named
            assert len(session.trace(number).sentences()) == len(of_trace)


def test_a_summary_shows_a_stored_headline_beside_one_that_says_otherwise_now(tmp_path: Path) -> None:
    """The first traces of a run knew no others; what those show is said now."""
    source = open_session(saved(tmp_path, 4))
    stored = {trace["id"]: trace["headline"] for run in source.runs() for trace in run["traces"]}
    summary = summarize(source)
    other = {number: text for number, text in summary["recomputed"].items() if text != stored[number]}
    number, text = next(iter(other.items()))
    words = " ".join(render(summary).split())
    assert words.count("When it was recorded, the headline was") == len(other)
    assert f"{' '.join(text.split())} (When it was recorded, the headline was: {' '.join(stored[number].split())})" in words


def page_in(frame: Frame) -> Page:
    inline = re.search(r'srcdoc="([^"]*)"', frame.html)
    return Page(Path(frame.file).read_text() if frame.file else html.unescape(inline[1] if inline else ""))


def test_a_standalone_page_has_what_the_runs_other_traces_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(tmp_path, 4)
    monkeypatch.chdir(tmp_path)  # where a large page of a notebook is written
    with tftracer.open(file) as session, serving(open_session(file)) as asking:
        pages = [Page(asking.get("/api/traces/2/file?format=html").body.decode()), page_in(session.trace(2).view())]
        live = asking.get("/api/traces/2/roofline?by=name").json
    for page in pages:
        assert "slow_kernel" in codes(page.answer("verdict"))
        assert page.answer("roofline?by=name")["roofs"] == live["roofs"]
    (text,) = [words["text"] for words in live["words"] if words["source"] == "best"]
    assert "4 traces of this run" in text


def test_a_trace_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=100) as recorder:
        for number, raw in enumerate([*RAW[:4], b"\xff" * 100], 1):
            step(recorder, number, (TRAIN,), raw=raw)
        assert recorder.flush()
        recorder.save(str(tmp_path / "saved.tftrace"))
    with tftracer.open(tmp_path / "saved.tftrace") as session:
        assert "slow_kernel" in session.sentences(1)["code"].tolist()


def chosen(sizes: list[int], asked: Any) -> list[int]:
    """Of a run whose first trace is the one to judge: the numbers of the others, the last the newest."""
    source = FakeSource()
    source.traces = [{**a_trace(number, size), "started_at": float(number)} for number, size in enumerate([1, *sizes], 1)]
    return [record["id"] for record in other_traces_of_run(source, 1, asked)]


def test_the_newest_that_are_small_enough_together_are_read() -> None:
    small, large = 1000, MAX_BYTES_AT_ONCE // 2
    assert chosen([small] * 10, VERDICT) == [9, 10, 11] and chosen([small] * 10, ROOFLINE) == [5, 6, 7, 8, 9, 10, 11]
    assert chosen([small] * 2, VERDICT) == [2, 3] == chosen([small] * 2, ROOFLINE) and chosen([], ROOFLINE) == []
    assert chosen([large] * 5, VERDICT) == [5, 6] == chosen([large] * 5, ROOFLINE)
    assert chosen([small, 3 * large], ROOFLINE) == []
