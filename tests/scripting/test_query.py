"""SQL over sessions and exported folders, and the commands."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tftracer
from tftracer.errors import FormatError
from tftracer.export.tables.schema import TABLES
from tftracer.scripting.export import export
from tftracer.scripting.query import query

DATA = Path(__file__).parents[1] / "data"
FILE = DATA / "ps_worker0_tf2.21_cpu.pb"
SQL = "SELECT op, sum(total_ns)::BIGINT AS ns FROM ops GROUP BY op ORDER BY ns DESC, op LIMIT 5"


def run(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(DATA.parents[1])}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=folder, check=False)


def test_a_session_and_its_exported_folder_answer_alike(tmp_path: Path) -> None:
    export([str(FILE)], str(tmp_path))
    for table in TABLES:
        sql = f"SELECT * FROM {table} ORDER BY ALL"
        one, other = query([str(FILE)], sql), query([str(tmp_path)], sql)
        assert one.columns == other.columns and one.rows == other.rows


def test_the_answer_is_the_ops_tab_s() -> None:
    with tftracer.open(FILE) as session:
        ops = session.ops("type")
        expected = sorted(zip(ops["key"].tolist(), ops["total_ns"].tolist()), key=lambda row: (-row[1], row[0]))[:5]
    assert query([str(FILE)], SQL).rows == expected


def test_several_files_and_ranks() -> None:
    files = [str(DATA / f"horovod_rank{rank}_tf2.15_cpu.pb") for rank in (0, 1)]
    assert query(files, "SELECT DISTINCT job FROM slices ORDER BY job").rows == [
        ("horovod_rank0_tf2.15_cpu",),
        ("horovod_rank1_tf2.15_cpu",),
    ]
    assert query(files, "SELECT DISTINCT job, rank FROM traces ORDER BY rank", "both").rows == [("both", 0), ("both", 1)]


def test_a_wrong_statement_is_said_with_the_tables() -> None:
    with pytest.raises(FormatError, match="slices"):
        query([str(FILE)], "SELECT colour FROM slices")
    with pytest.raises(FormatError, match="syntax error"):
        query([str(FILE)], "SELEC 1")


def test_the_commands(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("export", FILE, "--parquet", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("job=ps_worker0_tf2.21_cpu rank=0000: ")
    answers = [run("query", where, SQL, *how) for where in (FILE, out) for how in ((), ("--json",), ("--csv",))]
    assert [answer.returncode for answer in answers] == [0] * 6
    assert [answer.stdout for answer in answers[:3]] == [answer.stdout for answer in answers[3:]]
    text, as_json, as_csv = (answer.stdout for answer in answers[:3])
    rows = json.loads(as_json)
    assert [row["op"] for row in rows] == [line.split()[0] for line in text.splitlines()[1:]]
    assert [int(row["ns"]) for row in csv.DictReader(io.StringIO(as_csv))] == [row["ns"] for row in rows]


def test_errors_are_one_line_and_an_exit_code(tmp_path: Path) -> None:
    done = run("query", tmp_path / "nothing.tftrace", "SELECT 1 FROM runs")
    assert done.returncode == 1 and done.stderr.startswith("tftracer: ") and "Traceback" not in done.stderr
    assert run("export", FILE).returncode == 2


@pytest.mark.parametrize("word", ["export", "query"])
def test_a_file_that_is_named_as_a_command_is_opened(tmp_path: Path, word: str) -> None:
    (tmp_path / word).write_bytes(FILE.read_bytes())
    done = run(word, "--summary", folder=tmp_path)
    assert done.returncode == 0 and "Budget" in done.stdout


def test_no_extension_is_fetched_from_the_network() -> None:
    with pytest.raises(FormatError, match="extension"):
        query([str(FILE)], "SELECT * FROM 'https://127.0.0.1:1/x.parquet'")


def test_texts_for_the_terminal_hold_no_control_characters(tmp_path: Path) -> None:
    file = tmp_path / "x.pb"
    file.write_bytes(FILE.read_bytes().replace(b"MatMul_26", b"\x1b[2J\x07abc\n"[:9]))
    done = run("query", file, "SELECT DISTINCT name FROM slices")
    assert done.returncode == 0 and "\x1b" not in done.stdout and "[2J" in done.stdout
