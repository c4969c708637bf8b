"""``make test`` runs every suite, two at a time, whatever becomes of the others."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from job_page import wait_for

ROOT = Path(__file__).parents[1]
#: Suites that meet: each goes on when the other one has come as far.
MEETING = """
one:
	@echo one begins; echo >$(FOLDER)/to-two; cat $(FOLDER)/to-one; echo one ends
two:
	@echo two begins; cat $(FOLDER)/to-two; echo >$(FOLDER)/to-one; echo two ends
"""
BROKEN = """
broken:
	@echo it broke; exit 3
passing:
	@echo it passed
"""
#: Suites that say that they have begun, and never end.
ENDLESS = """
endless-%:
	@echo $$$$ >$(FOLDER)/begun; exec tail -f /dev/null
"""


def start_make_test(suites: str, folder: Path, own_suites: str = "") -> subprocess.Popen[str]:
    """It may itself be run by make, which tells its children much in the environment."""
    own = folder / "own.mk"
    own.write_text(own_suites)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", "test", f"SUITES={suites}", "NEEDED=help", f"FOLDER={folder}", "LANES=2"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=ROOT, env={**environment, "MAKEFILES": str(own)}, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def pipes(folder: Path, *names: str) -> None:
    for name in names:
        os.mkfifo(folder / name)


def test_a_suite_that_fails_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    process = start_make_test("no-such-suite broken passing neither-this-one", tmp_path, BROKEN)
    output, _ = process.communicate()
    assert process.returncode != 0
    assert "it passed\n" in output and "it broke\n" in output and "broken] Error 3" in output.rpartition("FAILED:")[2]
    assert "No rule to make target 'no-such-suite'" in output
    failed = output.rpartition("FAILED:\n")[2]
    assert "'no-such-suite'" in failed and "'neither-this-one'" in failed and "passing" not in failed


def test_two_run_at_a_time_and_each_is_printed_in_one_piece(tmp_path: Path) -> None:
    pipes(tmp_path, "to-one", "to-two")
    process = start_make_test("one two", tmp_path, MEETING)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "FAILED" not in output
    lines = output.splitlines()
    for name in ("one", "two"):
        begins = lines.index(f"{name} begins")
        assert [line for line in lines[begins + 1 : begins + 3] if line] == [f"{name} ends"]


def test_an_interrupt_ends_them_all(tmp_path: Path) -> None:
    pipes(tmp_path, "begun")
    # Open for both all the time: one that opened it at the first one's end would write to a pipe that nobody reads.
    with os.fdopen(os.open(tmp_path / "begun", os.O_RDWR), encoding="ascii") as begun:
        process = start_make_test("endless-1 endless-2", tmp_path, ENDLESS)
        started = [int(begun.readline()) for _ in range(2)]
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
    process.communicate()
    assert process.returncode != 0
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), "the suites' end")
