"""What all subcommands share: Ctrl-C, typos, completion, colours and progress on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tftracer.cli import COMMANDS, VIEWERS
from tftracer.export.tables.schema import TABLES

ROOT = Path(__file__).parents[1]

#: Runs a subcommand whose work ends only by Ctrl-C, of which libraries make this and that: one never hears of the signal, one
#: (DuckDB, NumPy's import) raises an error of its own, one drops the interrupt.
STUCK = """
import importlib, sys, threading
command = importlib.import_module(f"tftracer.commands.{sys.argv[1]}")
def stuck(arguments, say):
    held = threading.Lock()
    held.acquire()
    try:
        say("begun")
        held.acquire()
    except KeyboardInterrupt:
        if sys.argv[2] == "hears":
            raise
        if sys.argv[2] == "another error":
            raise RuntimeError("Query interrupted")
    while sys.argv[2] == "deaf":
        try:
            held.acquire()
        except KeyboardInterrupt:
            pass
    return 0
command.main = stuck
from tftracer.cli import main
sys.exit(main([sys.argv[1]]))
"""


def tftracer(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("hearing", ["hears", "deaf", "another error", "drops it"])
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in VIEWERS])
def test_a_subcommand_that_is_interrupted_ends_with_130_and_without_a_traceback(command: str, hearing: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, command, hearing], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors


def test_ctrl_c_while_the_command_is_imported_ends_it_with_130_and_without_a_traceback() -> None:
    code = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "tftracer.viewer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from importlib.metadata import EntryPoint
command = EntryPoint("tftracer", sys.argv.pop(1), "console_scripts").load()
sys.exit(command())
"""
    scripts = re.search(r'^tftracer = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert scripts
    command = [sys.executable, "-c", code, scripts[1], "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (130, "")


def test_the_package_itself_imports_nothing_before_ctrl_c_is_handled() -> None:
    """``python -m tftracer`` imports it before ``__main__``: an interrupt meanwhile ends in a traceback of its imports."""
    code = "import sys; before = set(sys.modules); import tftracer; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['__future__', 'tftracer', 'tftracer.errors']"


def test_the_end_of_a_pipe_does_not_change_what_a_gate_says() -> None:
    """``tftracer compare --fail-if ... | head -1``: its own exit code, though nobody reads on."""
    files = [str(ROOT / f"tests/data/slow_to_fast_{name}.tftrace") for name in ("adam", "adagrad")]
    command = [sys.executable, "-m", "tftracer", "compare", "--fail-if", "step > 5%", files[0], "--", files[1]]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (5, b"")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["exprot", "a.tftrace"], "there is no file and no command 'exprot'. Did you mean 'export'?"),
        (["export", "--parqet", "DIR", "a.tftrace"], "Did you mean '--parquet'?"),
        (["a.tftrace", "--sumary"], "Did you mean '--summary'?"),
        (["run", "--ouput", "a.tftrace", "train.py"], "Did you mean '--output'?"),
    ],
)
def test_a_typo_gets_the_word_that_was_meant(arguments: list[str], meant: str) -> None:
    done = tftracer(*arguments)
    assert done.returncode == 2 and meant in done.stderr and "usage: tftracer" in done.stderr


def test_every_subcommand_says_what_it_does_and_is_listed() -> None:
    listed = re.sub(r"\s+", " ", tftracer("--help").stdout)
    for command in COMMANDS:
        assert f"tftracer {command}: " in listed
        assert tftracer(command, "--help").stdout.startswith(f"usage: tftracer {command}")


def test_the_help_of_query_names_every_table() -> None:
    listed = re.sub(r"\s+", " ", tftracer("query", "--help").stdout)
    assert f"over the tables of sessions: {', '.join(TABLES)}. Needs" in listed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_their_options(shell: str) -> None:
    script = tftracer("completion", shell).stdout
    for word in (*COMMANDS, "fail-if", "parquet"):
        assert word in script


def test_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(tftracer("completion", "bash").stdout)

    def completed(*words: str) -> list[str]:
        line = (
            f'source {script}; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _tftracer; echo "${{COMPREPLY[@]}}"'
        )
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True).stdout.split()

    assert completed("tftracer", "com") == ["compare", "completion"]
    assert completed("tftracer", "export", "--par") == ["--parquet"]


def on_a_terminal(*arguments: object, **environment: str) -> str:
    """What the command writes to stderr, which is a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **environment}, cwd=ROOT
    ) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the terminal's end
            while select.select([ours], [], [], 60)[0] and (part := os.read(ours, 4096)):
                text += part
        process.wait(60)
    os.close(ours)
    return text.decode()


def test_colours_are_for_terminals_and_no_color_is_honoured() -> None:
    wrong = ["-m", "tftracer", "nowhere.tftrace"]
    assert "\x1b[31mtftracer:\x1b[0m" in on_a_terminal(*wrong)
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_a_terminal(*wrong, **environment)
    assert "\x1b" not in tftracer("nowhere.tftrace").stderr


PROGRESS = """
import sys
from tftracer import terminal
terminal.SILENT_S = terminal.TICK_S = 0.01
with terminal.progress("Reading 3 files"):
    if sys.argv[1] == "wait":
        written, write = __import__("threading").Event(), sys.stderr.write
        class Heard:
            def __getattr__(self, name): return getattr(sys.__stderr__, name)
            def write(self, text): write(text), written.set()
        sys.stderr = Heard()
        written.wait(60)
print("done", file=sys.stderr)
"""


def test_progress_is_shown_on_a_terminal_alone_and_taken_away() -> None:
    shown = on_a_terminal("-c", PROGRESS, "wait")
    assert "Reading 3 files, 0 s" in shown and shown.endswith("\r\x1b[Kdone\r\n")
    piped = subprocess.run([sys.executable, "-c", PROGRESS, ""], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    assert piped.stderr == "done\n"
