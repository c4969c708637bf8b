"""SQL over sessions and exported folders, and the commands."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tftracer
from tftracer.errors import FormatError
from tftracer.export.tables.schema import TABLES
from tftracer.scripting.export import export
from tftracer.scripting.query import answers, query

DATA = Path(__file__).parents[1] / "data"
SESSION = DATA / "versions/2-saved.tftrace"
FILE = DATA / "ps_worker0_tf2.21_cpu.pb"
SQL = "SELECT op, sum(total_ns)::BIGINT AS ns FROM ops GROUP BY op ORDER BY ns DESC, op LIMIT 5"


def run(*arguments: object, folder: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(DATA.parents[1])}
    pipes: dict[str, Any] = {"capture_output": True, "text": True, "input": stdin}
    return subprocess.run(command, **pipes, timeout=300, env=environment, cwd=folder, check=False)


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


def test_several_statements_each_answer(tmp_path: Path) -> None:
    several = f"CREATE TABLE long AS {SQL}; SELECT count(*) AS n FROM long; SELECT max(ns) AS ns FROM long; DESCRIBE long;"
    count, longest, described = answers([str(FILE)], several)
    assert (count.rows, longest.rows) == ([(5,)], [(query([str(FILE)], SQL).rows[0][1],)])
    assert [row[0] for row in described.rows] == ["op", "ns"]
    assert answers([str(FILE)], "CREATE TABLE one AS SELECT 1; ") == [] and query([str(FILE)], "").rows == []
    with pytest.raises(FormatError, match="colour"):
        answers([str(FILE)], "SELECT 1; SELECT colour FROM ops")
    done = run("query", FILE, several, "--json")
    assert [len(rows) for rows in json.loads(done.stdout)] == [1, 1, 2]


def test_times_with_a_time_zone_need_no_pytz() -> None:
    assert importlib.util.find_spec("pytz") is None, "an environment with pytz proves nothing"
    zoned = "start_at::TIMESTAMPTZ"
    sql = f"SELECT trace_id, {zoned} AS moment, [{zoned}] AS listed, 1 AS trace_id FROM traces ORDER BY moment DESC"
    result = query([str(SESSION)], sql)
    plain = query([str(SESSION)], "SELECT trace_id, start_at FROM traces ORDER BY start_at DESC")
    assert result.columns == ["trace_id", "moment", "listed", "trace_id"]
    assert [row[0] for row in result.rows] == [row[0] for row in plain.rows]
    assert [row[1][:19] for row in result.rows] == [str(row[1])[:19] for row in plain.rows]
    assert result.rows[0][1].endswith("+00") and result.rows[0][2] == f"['{result.rows[0][1]}']"


def test_json_is_valid_whatever_the_values_are() -> None:
    sql = """SELECT 'nan'::DOUBLE AS a, '-inf'::DOUBLE AS b, 1.25 AS c, MAP {1: 'nan'::DOUBLE} AS d, 'x'::BLOB AS e,
             {'f': NULL} AS f, DATE '2026-11-23' AS g, INTERVAL 3 DAYS AS h,
             9007199254740993 AS i, 2 AS i, 3 AS i_1, true AS j, 'é"' AS k"""
    done = run("query", FILE, sql, "--json")

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    assert json.loads(done.stdout, parse_constant=refuse) == [
        {"a": None, "b": None, "c": 1.25, "d": {"1": None}, "e": "78", "f": {"f": None}, "g": "2026-11-23",
         "h": "3 days, 0:00:00", "i": 9007199254740993, "i_1": 2, "i_1_1": 3, "j": True, "k": 'é"'}
    ]  # fmt: skip


def test_sql_comes_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "slowest.sql"
    file.write_text(f"-- of all\n{SQL};\n", encoding="utf-8")
    as_argument, from_file, piped, also_piped = (
        run("query", FILE, SQL, "--json"), run("query", "-f", file, FILE, "--json"),
        run("query", FILE, "-", "--json", stdin=SQL), run("query", FILE, "-f", "-", "--json", stdin=SQL),
    )  # fmt: skip
    assert as_argument.stdout == from_file.stdout == piped.stdout == also_piped.stdout != ""
    done = run("query", FILE, "-f", tmp_path / "nothing.sql")
    assert done.returncode == 1 and "nothing.sql: no SQL" in done.stderr and "Traceback" not in done.stderr
    assert run("query", FILE).returncode == 2


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


def test_a_trace_that_is_damaged_is_left_out_and_said_with_the_remedy(tmp_path: Path) -> None:
    data = bytearray(SESSION.read_bytes())
    with tftracer.open(SESSION) as session:
        data[data.index(session.source.trace_state(3).payload.frame_unchecked()) + 20] ^= 255
    path = tmp_path / "damaged.tftrace"
    path.write_bytes(data)
    done = run("query", path, "SELECT count(DISTINCT trace_id) AS traces FROM ops", "--json")
    with tftracer.open(SESSION) as session:
        readable = len(set(session.ops()["trace_id"].tolist()) - {3})
    assert done.returncode == 0 and json.loads(done.stdout) == [{"traces": readable}]
    assert done.stderr == "Left out: 1 trace of damaged, which cannot be read. Copy the file again, or trace again.\n"


def test_a_partition_whose_pages_are_damaged_is_left_out_and_said_with_the_remedy(tmp_path: Path) -> None:
    """Its footer is whole: only an answer that needs the page fails."""
    files = [str(DATA / f"horovod_rank{rank}_tf2.15_cpu.pb") for rank in (0, 1)]
    export(files, str(tmp_path))
    expected = query(files[:1], "SELECT job, sum(dur_ns), max(name) FROM slices GROUP BY job").rows
    (damaged,) = tmp_path.glob("slices/job=horovod_rank1*/*/*.parquet")
    data = bytearray(damaged.read_bytes())
    for place in range(len(data) // 8, len(data) // 2, 64):
        data[place] ^= 0x5A
    damaged.write_bytes(data)
    done = run("query", tmp_path, "SELECT job, sum(dur_ns) AS ns, max(name) AS name FROM slices GROUP BY job", "--json")
    assert done.returncode == 0, done.stderr
    assert [(row["job"], row["ns"], row["name"]) for row in json.loads(done.stdout)] == expected
    assert re.fullmatch(r"Left out: job=horovod_rank1\S*: it cannot be read \(.*\)\. Export its session again\.\n", done.stderr)


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
        query([str(FILE)], "SELECT * FROM 'https://127.0.0.1:1/x.parquet'", external=True)


def test_texts_for_the_terminal_hold_no_control_characters(tmp_path: Path) -> None:
    file = tmp_path / "x.pb"
    file.write_bytes(FILE.read_bytes().replace(b"MatMul_26", b"\x1b[2J\x07abc\n"[:9]))
    done = run("query", file, "SELECT DISTINCT name FROM slices")
    assert done.returncode == 0 and "\x1b" not in done.stdout and "[2J" in done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM '{other}'",
        "COPY (SELECT 1) TO '{new}'",
        "COPY (SELECT 1) TO '{exported}/steps/new.csv'",
        "EXPORT DATABASE '{new}'",
        "ATTACH '{new}' AS more",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET allowed_directories",
    ],
)
@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_query_reaches_its_own_tables_alone(tmp_path: Path, statement: str, of: str) -> None:
    other, exported, new = tmp_path / "other.csv", tmp_path / "exported", tmp_path / "new"
    other.write_text("a\n1\n")
    export([str(FILE)], str(exported))
    file = str(FILE if of == "file" else exported)
    sql = statement.format(other=other, new=new, exported=exported)
    assert query([file], "SELECT count(*) FROM ops").rows[0][0] > 0
    before = sorted(exported.rglob("*"))
    with pytest.raises(FormatError):
        query([file], f"SELECT count(*) FROM ops; {sql}")
    assert not new.exists() and sorted(exported.rglob("*")) == before


def test_external_access_can_be_allowed(tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    assert run("query", "--external", FILE, f"COPY (SELECT count(*) AS n FROM ops) TO '{new}'; FROM '{new}'").returncode == 0
    assert new.read_text().startswith("n\n")
    done = run("query", FILE, f"FROM '{new}'")
    assert done.returncode != 0 and "--external" in done.stderr and "Traceback" not in done.stderr
