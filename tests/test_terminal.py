"""What the commands write of a hostile file: nothing that steers a terminal."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tftracer.run_in_script import log_to_stderr
from tftracer.storage import tftrace_format
from tftracer.terminal import printable
from tftracer.trace.decode.descriptors import message_class

HOSTILE = "MatMul\x1b]0;title\x07\x1b[31m\x7f\x9b1m‮gnp.exe⁦\r\nFORGED "
STEERING = [*map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)))]
STEERING += map(chr, range(0x2066, 0x206A))
CSV = ["query", "a", "SELECT name FROM slices", "--csv"]
COMMANDS = [
    ["a", "--summary"],
    ["a", "--summary", "--json"],
    ["compare", "a", "--", "b", "--fail-if", "step > 5%"],
    ["compare", "a", "--", "b", "--json"],
    CSV,
    ["query", "a", "SELECT name FROM slices", "--json"],
    ["query", "a", "SELECT name FROM slices"],
    ["query", "a", "SELECT error('\x1b[31m')"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions whose every text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    for number, name in enumerate("ab", 1):
        step = message_class("RunMetadata")()
        device = step.step_stats.dev_stats.add(device=f"/job:worker/replica:0/task:0/device:CPU:0{HOSTILE}")
        for i in range(5):
            times = {"all_start_micros": 1_700_000_000_000_000 + 1000 * i, "all_end_rel_micros": 900 * number}
            label = f"{HOSTILE}{i} = {HOSTILE}(a, b)"
            device.node_stats.add(node_name=f"{HOSTILE}{i}", timeline_label=label, **times)
        run = {"id": 1, "title": HOSTILE, "fetches": [HOSTILE], "feeds": [HOSTILE], "options": HOSTILE, "steps": 9, "mean_s": 0.1}
        session = {"host": HOSTILE, "command": HOSTILE, "python": HOSTILE, "tensorflow": HOSTILE, "started_at": 1e9, "id": name}
        finding = {"code": "x", "severity": "error", "message": HOSTILE, "remedy": HOSTILE}
        trace = {"id": 1, "run_id": 1, "step": 3, "duration_s": 0.1, "note": HOSTILE, "context": {"findings": [finding]}}
        records = [
            tftrace_format.record("session", session),
            tftrace_format.record("run", run),
            tftrace_format.record("trace", trace, step.SerializeToString()),
        ]
        (folder / name).write_bytes(tftrace_format.header() + b"".join(records))
    return folder


def steering(text: str) -> set[str]:
    return set(text) & set(STEERING)


def on_terminal(arguments: Sequence[str], folder: Path) -> str:
    """All that is written where stdout and stderr are a terminal, which ends lines with carriage returns of its own."""
    own, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        [sys.executable, "-m", "tftracer", *arguments], cwd=folder, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = bytearray()
        with contextlib.suppress(OSError), contextlib.closing(os.fdopen(own, "rb", 0)) as terminal:
            while part := terminal.read(1 << 16):  # OSError: the process has closed its end
                written += part
        process.wait()
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "arguments", [["x.py", f"--{HOSTILE}"], ["run", f"--{HOSTILE}", "x.py"], ["export", f"--{HOSTILE}"]], ids=repr
)
def test_a_name_that_a_pattern_of_the_shell_stands_for_does_not_steer_the_terminal(arguments: list[str], tmp_path: Path) -> None:
    written = on_terminal(arguments, tmp_path)
    assert "usage: tftracer" in written and "Traceback" not in written and steering(written) == set()


def test_the_name_of_the_file_that_is_viewed_does_not_steer_the_terminal(folder: Path, tmp_path: Path) -> None:
    name = HOSTILE + ".tftrace"
    (tmp_path / name).write_bytes((folder / "a").read_bytes())
    command = [sys.executable, "-m", "tftracer", name, "--no-browser", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        written = process.stdout.readline()
        while written and b" is open at http" not in written:
            written += process.stdout.readline()
        process.kill()
    assert written and steering(written.decode()) == set()


def test_what_a_script_under_tftracer_run_is_told_does_not_steer_the_terminal() -> None:
    stream = io.StringIO()
    log = logging.getLogger("tftracer")
    before = log.handlers[:], log.level, log.propagate
    try:
        log_to_stderr("", stream)
        log.warning("tftracer: deleted the spool %s", HOSTILE)
    finally:
        (log.handlers[:], log.level, log.propagate) = before
    assert "deleted the spool MatMul" in stream.getvalue() and steering(stream.getvalue()) == set()


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_nothing_in_a_hostile_file_steers_the_terminal(arguments: list[str], folder: Path) -> None:
    written = on_terminal(arguments, folder)
    assert written and "Traceback" not in written
    assert steering(written) == set()
    if arguments is not CSV:  # whose quotes hold line breaks
        assert [line for line in written.splitlines() if line.startswith("FORGED")] == []


def test_csv_for_a_program_holds_the_values_as_they_are(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "tftracer", *CSV], cwd=folder, capture_output=True, check=True)
    rows = list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))
    assert rows[1] == [f"{HOSTILE}0"]


def test_escapes_keep_json_valid() -> None:
    text = "".join(STEERING)
    assert steering(printable(json.dumps(text, ensure_ascii=False))) == set()
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text
    assert printable("Kernel µ, 日本\n\t") == "Kernel µ, 日本\n\t"
