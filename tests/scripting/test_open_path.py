"""``tftracer.open`` of folders: saved sessions, and exported tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tftracer
from tftracer.errors import UnknownError, UnsupportedError
from tftracer.export.tables.schema import TABLES
from tftracer.scripting.export import export

DATA = Path(__file__).parents[1] / "data"
FILES = {"first.tftrace": "versions/2-first-saved.tftrace", "second.tftrace": "versions/2-saved.tftrace"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, file in FILES.items():
        shutil.copy(DATA / file, tmp_path / name)
    (tmp_path / "notes.txt").write_text("no session")
    return tmp_path


def rows(table: tftracer.Table, job: str) -> list[dict[str, object]]:
    return [{key: value for key, value in row.items() if key not in ("job", "rank")} for row in table if row["job"] == job]


def test_a_folder_of_sessions_holds_the_rows_of_all(folder: Path) -> None:
    with tftracer.open(folder) as opened:
        assert [session.name for session in opened.processes] == [str(folder / name) for name in FILES]
        for name in TABLES:
            table = opened.table(name)
            assert table.columns[-2:] == ("job", "rank")
            for job, session in zip(("first", "second"), opened.processes):
                assert rows(table, job) == list(session.table(name)), name
        title = opened.processes[0].runs()["title"][0]
        assert len(opened.steps(title)) == sum(len(session.steps(title)) for session in opened.processes) > 0
        assert len(opened.ops("scope")) == sum(len(session.ops("scope")) for session in opened.processes) > 0
        assert opened.run(title)["title"] == title
        assert f"{len(opened.runs())} runs" in repr(opened) and ">second<" in opened._repr_html_()
        with pytest.raises(UnknownError, match="this run"):
            len(opened.steps("no such run"))
        with pytest.raises(UnsupportedError, match="processes"):
            opened.trace()


def test_an_exported_folder_holds_the_tables_of_its_sessions(folder: Path, tmp_path: Path) -> None:
    export([str(folder / name) for name in FILES], str(tmp_path / "tables"))
    with tftracer.open(tmp_path / "tables") as opened, tftracer.open(folder) as sessions:
        for name in TABLES:
            exported, table = opened.table(name), sessions.table(name)
            assert exported.columns == table.columns
            for column, values in exported.select().items():
                assert values.dtype == table[column].dtype and isinstance(values, np.ma.MaskedArray) == isinstance(
                    table[column], np.ma.MaskedArray
                )
            for job in ("first", "second"):
                assert sorted(map(repr, rows(exported, job))) == sorted(map(repr, rows(table, job))), name
        title = sessions.runs()["title"][0]
        assert len(opened.steps(title)) == len(sessions.steps(title)) > 0
        assert len(opened.slices(3)) == len(sessions.slices(3)) > 0
        assert opened.run(title)["steps"] > 0
        for refused in (lambda: len(opened.ops("type")), lambda: len(opened.ops_over_traces()), opened.trace):
            with pytest.raises(UnsupportedError):
                refused()


def test_a_folder_of_a_profiler_s_logs_is_opened_as_before(tmp_path: Path) -> None:
    logs = tmp_path / "plugins/profile/2026_11_23"
    logs.mkdir(parents=True)
    shutil.copy(DATA / "xspace/convnet_tf2.21.xplane.pb", logs / "host.xplane.pb")
    with tftracer.open(tmp_path) as opened:
        assert len(opened.slices()) > 0 and "job" not in opened.slices()
