"""Perfetto's own trace processor reads what is exported: all of it, to the nanosecond, and complains of nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.trace_processor import TraceProcessor, engine_page
from playwright.sync_api import Browser, Page

from tftracer.export.chrome import write_chrome_traces
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("*.pb"))


@pytest.fixture
def engine(browser: Browser) -> Iterator[Page]:
    with engine_page(browser) as page:
        yield page


def answers_of(name: str, rank: int | None = None) -> Answers:
    return Answers((DATA / name).read_bytes(), TraceContext(rank=rank))


def chrome(answers: Answers) -> bytes:
    file = io.BytesIO()
    write_chrome_traces([("", answers)], file, show_memory=True)
    return file.getvalue()


def expected_slices(answers: Answers, origin_ns: int) -> list[tuple[int, int]]:
    trace = answers.trace
    return sorted(zip((trace.start + trace.origin_ns - origin_ns).tolist(), (trace.end - trace.start).tolist()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_chrome_json_is_read_without_an_import_error(path: Path, engine: Page) -> None:
    answers = answers_of(path.name)
    written = chrome(answers)
    read = TraceProcessor(engine, written)
    assert read.errors() == {}
    assert read.query("select ts, dur from slice order by ts, dur") == expected_slices(answers, answers.trace.origin_ns)
    events = json.loads(written)["traceEvents"]
    arrows = [event for event in events if event["ph"] == "s"]
    assert read.query("select count(*) from flow") == [(len(arrows),)]
    counts = sorted(count for event in events if event["ph"] == "C" for count in event["args"].values())
    assert read.query("select value from counter order by value") == [(count,) for count in counts]
    names = {device.title for device in answers.trace.devices}
    assert {name for (name,) in read.query("select name from process where name is not null")} == names


def test_files_of_two_ranks_stay_apart_when_they_are_merged(engine: Page) -> None:
    ranks = [answers_of(f"horovod_rank{rank}_tf2.15_cpu.pb", rank) for rank in (0, 1)]
    files = [json.loads(chrome(answers))["traceEvents"] for answers in ranks]
    read = TraceProcessor(engine, json.dumps([*files[0], *files[1]]).encode())
    assert read.errors() == {}
    assert read.query("select count(*) from slice") == [(sum(answers.trace.n for answers in ranks),)]
    arrows = sum(event["ph"] == "s" for events in files for event in events)
    assert read.query("select count(*) from flow") == [(arrows,)]
    assert {name for (name,) in read.query("select name from process where name is not null")} == {"rank 0 CPU:0", "rank 1 CPU:0"}


def test_two_ranks_in_one_file(engine: Page) -> None:
    ranks = [answers_of(f"horovod_rank{rank}_tf2.15_cpu.pb", rank) for rank in (0, 1)]
    file = io.BytesIO()
    write_chrome_traces([("", answers) for answers in ranks], file)
    read = TraceProcessor(engine, file.getvalue())
    assert read.errors() == {}
    origin = min(answers.trace.origin_ns for answers in ranks)
    slices = sorted(entry for answers in ranks for entry in expected_slices(answers, origin))
    assert read.query("select ts, dur from slice order by ts, dur") == slices
