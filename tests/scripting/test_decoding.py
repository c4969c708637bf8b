"""Exports, queries and comparisons decode each trace once, and hold few of them at a time."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import RAW, recording, steps

import tftracer
from tftracer.cli import say
from tftracer.commands.compare import main as compare_command
from tftracer.scripting.export import export
from tftracer.scripting.query import query
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.tftrace_format import TRACE
from tftracer.storage.tftrace_reader import Reader
from tftracer.trace.answers import Answers

TRACES = 3
#: The four files', each different.
CONTENTS = [RAW.replace(b"MatMul", b"MatMu%x" % i) for i in range(4 * TRACES)]


class Decoding:
    """``decoded``: how often each trace (of each file) was; ``most``: decoded traces that were in memory at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decoded: Counter[bytes] = Counter()
        self.most = 0
        self._alive: weakref.WeakSet[Answers] = weakref.WeakSet()
        monkeypatch.setattr("tftracer.trace.answers.Answers", self._decode)

    def _decode(self, raw: Callable[[], bytes], *context: Any, **options: Any) -> Answers:
        answers = Answers(raw, *context, **options)
        self.decoded[raw()] += 1
        self._alive.add(answers)
        self.most = max(self.most, len(self._alive))
        return answers

    @property
    def alive(self) -> int:
        return len(self._alive)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("sessions")
    paths = []
    for i in range(4):
        with recording(folder / f"spool{i}") as recorder:
            steps(recorder, TRACES, {number + 1: CONTENTS[TRACES * i + number] for number in range(TRACES)})
            paths.append(str(folder / f"{i}.tftrace"))
            recorder.save(paths[-1])
    return paths


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch) -> Decoding:
    gc.collect()
    return Decoding(monkeypatch)


def test_an_export_keeps_no_trace_of_an_earlier_file(files: list[str], decoding: Decoding, tmp_path: Path) -> None:
    export(files, str(tmp_path))
    # Once for its rows, and once more at most for the verdicts of the other traces of its run.
    assert max(decoding.decoded.values()) <= 2 and len(decoding.decoded) == 4 * TRACES
    assert decoding.most <= TRACES


def test_a_query_decodes_each_trace_once_for_all_tables(files: list[str], decoding: Decoding) -> None:
    sql = "SELECT count(DISTINCT job) FROM slices JOIN ops USING (job, trace_id) JOIN tensors USING (job, trace_id)"
    assert query(files, sql).rows == [(4,)]
    assert set(decoding.decoded.values()) == {1} and len(decoding.decoded) == 4 * TRACES
    assert decoding.most == 1


def test_a_comparison_decodes_each_trace_once(files: list[str], decoding: Decoding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftracer.engine.decoded_traces.DECODED_BYTES", 1)  # as if the traces were large
    assert compare_command([*files[:2], "--", *files[2:]], say) == 0
    assert set(decoding.decoded.values()) == {1} and len(decoding.decoded) == 4 * TRACES
    assert decoding.most <= 2  # the one that is kept, and the one that takes its place


def test_a_session_that_is_closed_holds_no_trace(files: list[str], decoding: Decoding) -> None:
    with tftracer.open(files[0]) as session:
        assert len(session.slices()) > 0 and decoding.alive == TRACES
        session.forget_traces()
        assert decoding.alive == 0
        assert len(session.slices()) > 0 and decoding.alive == TRACES
    assert decoding.alive == 0


def test_one_trace_is_read_without_the_others_and_damage_is_counted_once(files: list[str], tmp_path: Path) -> None:
    data = bytearray(Path(files[0]).read_bytes())
    for record in Reader(FileBytes(files[0])):
        if record.type == TRACE and record.meta["id"] > 1:
            data[record.payload.offset + record.payload.size // 2] ^= 1
    (tmp_path / "damaged.tftrace").write_bytes(data)
    with tftracer.open(tmp_path / "damaged.tftrace") as session:
        first, second, third = session.trace_ids()
        assert len(session.slices(first)) > 0 and session.facts["damage"] == ""
        assert [len(session.slices(number)) for number in (second, third)] == [0, 0]
        assert session.facts["damage"] == "2 traces are damaged."
        assert session.table("session")["damage"][0] == "2 traces are damaged."
