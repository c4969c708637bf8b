"""``tftracer run [options] script.py args...``: traces an unmodified script, and every process that it starts.

The script is executed as by ``python script.py args...``: ``exec`` replaces this process, so arguments, exit code, traceback,
signals, ``__main__`` and working directory are the script's own. The command adds only a folder to PYTHONPATH (autostart/) and an
environment variable; child processes inherit both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tftracer import sessions_of_one_command
from tftracer.run_in_script import VARIABLE
from tftracer.subcommand_parser import Parser

AUTOSTART = Path(__file__).parents[1] / "autostart"
#: The default first step that --trace traces; earlier steps warm up.
FIRST_STEP = 20
MAX_TRACES = 10_000
#: Options of ``tftracer run`` that take no value.
FLAGS = ("-h", "--help", "--stay")

SUMMARY = "runs and traces a script without changing it"


def parser() -> Parser:
    syntax = Parser(
        "tftracer run",
        usage="tftracer run [options] [options of Python] (script.py | folder | -m module | -c code | -) [args...]",
        description="Runs a script and traces it without changing it: sessions, compiled functions and Keras, in every "
        "process that it starts. The page's URL is printed as soon as the script has imported TensorFlow. A 'run' is the calls "
        "of session.run with the same fetches, feeds and options, or the calls of one compiled function with one signature.",
        epilog="All arguments after these options are passed to Python unchanged.",
    )
    syntax.add_argument("--port", type=int, default=9999, help="port of the page, or the next free port (default: 9999)")
    syntax.add_argument("--ip", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine alone)")
    syntax.add_argument(
        "--keep-traces",
        type=int,
        default=5,
        help="number of traces that are kept for each run, beside those of --trace (default: 5)",
    )
    syntax.add_argument(
        "--trace-slow",
        type=_slow_factor,
        default=True,
        metavar="FACTOR",
        help="a step is slow if it takes more than FACTOR times the median (default: 3), and more than 20 ms longer than the "
        "median; 'off': do not look for slow steps",
    )
    syntax.add_argument(
        "--trace",
        type=int,
        metavar="N",
        help="trace N steps of the run that takes the most time; nobody has to ask for them on the page",
    )
    first_step = f"with --trace: the first traced step (default: {FIRST_STEP})"
    syntax.add_argument("--from", dest="first_step", type=int, default=FIRST_STEP, metavar="STEP", help=first_step)
    syntax.add_argument(
        "--export-dir", help="export the session's tables to this folder (or URL, with fsspec) during the recording"
    )
    syntax.add_argument("--output", help="save the session to this file when the script ends")
    syntax.add_argument(
        "--repeat",
        type=int,
        metavar="N",
        help="run two scripts, '-- a.py args... -- b.py args...', N times each, in turns; --output is then a folder",
    )
    syntax.add_argument("--stay", action="store_true", help="keep the page after the end of the script, until Ctrl-C")
    return syntax


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    """Run the script, which replaces this process. With ``--repeat``, return the exit code."""
    syntax = parser()
    ours, script = split(list(arguments), syntax.options)
    options = checked(syntax, ours, script)
    if options.repeat is not None:
        folder = Path(options.output or FOLDER)
        return record_in_turns(scripts_of(script), options.repeat, folder, _options_of_each_execution(ours), say)
    command = [sys.executable, *script]
    environment = environment_of(options, os.environ.get("PYTHONPATH", ""))
    sys.stdout.flush()
    sys.stderr.flush()
    return os.execve(sys.executable, command, environment)  # never returns


def split(arguments: list[str], known: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into (our options, Python's arguments). argparse cannot do this: it would drop a ``--`` of the script.

    Our options are the first arguments that begin with two dashes. An unknown option counts as an option without a value, so that
    the parser's error names the option and not the argument after it.
    """
    end = 0
    while end < len(arguments) and (arguments[end].startswith("--") or arguments[end] in FLAGS):
        if arguments[end] == "--":
            return arguments[:end], arguments[end + 1 :]
        end += 2 if arguments[end] in known and arguments[end] not in FLAGS else 1
    return arguments[:end], arguments[end:]


def checked(syntax: Parser, ours: list[str], script: list[str]) -> argparse.Namespace:
    """Parse the options. If one is wrong, exit with 2 now: after ``exec`` the script could only run without tracing."""
    options = syntax.parse_args(ours)
    if not script:
        syntax.error("give the script to run, or -m and a module")
    if not 0 <= options.port <= 65535:
        syntax.error("--port is a number from 0 to 65535; 0 takes any free one")
    if options.trace is not None and not 1 <= options.trace <= MAX_TRACES:
        syntax.error(f"--trace is a number from 1 to {MAX_TRACES:,}")
    if options.first_step < 1:
        syntax.error("--from is a number from 1")
    if options.keep_traces < 1:
        syntax.error("--keep-traces is a number from 1")
    if options.repeat is not None and (options.repeat < 1 or options.stay or options.export_dir):
        syntax.error("--repeat needs a number of at least 1, and cannot be used with --stay or --export-dir")
    if options.repeat is not None and not (len(scripts := scripts_of(script)) == 2 and all(scripts)):
        syntax.error("--repeat takes two scripts: tftracer run --repeat 8 -- a.py -- b.py")
    return options


def _options_of_each_execution(ours: list[str]) -> list[str]:
    """Return the options for each execution of ``--repeat``: without --repeat and --output, and with any free port."""
    kept, skip = ["--port", "0"], False
    for argument in ours:
        name, has_value, _ = argument.partition("=")
        is_left_out = name in ("--repeat", "--output", "--port")
        if not (skip or is_left_out):
            kept.append(argument)
        skip = is_left_out and not has_value
    return kept


def environment_of(options: argparse.Namespace, python_path: str) -> dict[str, str]:
    """Return the script's environment: that of this process, with the autostart folder first on PYTHONPATH, and the options as
    JSON."""
    server = {
        "server_port": options.port,
        "server_ip": options.ip,
        "keep_traces": options.keep_traces,
        "trace_slow": options.trace_slow,
        "export_dir": _absolute(options.export_dir),
    }
    settings = {
        "pid": os.getpid(),
        "server": server,
        "trace": [options.trace, options.first_step] if options.trace else None,
        "output": _absolute(options.output),
        "stay": options.stay,
        "sessions": sessions_of_one_command.new_list(),
    }
    path = os.pathsep.join([str(AUTOSTART), *([python_path] if python_path else [])])
    return {**os.environ, "PYTHONPATH": path, VARIABLE: json.dumps(settings)}


def _absolute(path_or_url: str | None) -> str | None:
    """Make a path absolute, because the script may change its working directory. A URL is returned unchanged."""
    return path_or_url and (path_or_url if "://" in path_or_url else str(Path(path_or_url).absolute()))


def _slow_factor(text: str) -> float | bool:
    """Parse the value of ``--trace-slow``."""
    from tftracer.arguments import slow_factor  # imported here because it imports NumPy, which is slow

    if text == "off":
        return False
    try:
        return slow_factor("--trace-slow", text) or False
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError("must be 'off' or a number from 1.5 to 1000") from None


#: For ``--repeat``: the default folder of the sessions, and the letters that stand for the two scripts.
FOLDER, SIDES = "sessions", "ab"


def scripts_of(arguments: Sequence[str]) -> list[list[str]]:
    """Split the arguments at each ``--`` into scripts with their arguments."""
    scripts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--":
            scripts.append([])
        else:
            scripts[-1].append(argument)
    return scripts


def record_in_turns(
    scripts: Sequence[Sequence[str]], times: int, folder: Path, options: Sequence[str], say: Callable[[str], None]
) -> int:
    """Run the scripts in the order a, b, a, b, ... and stop at the first that fails. Return its exit code, or 0.

    ``options``: options of ``tftracer run`` for every execution.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, times + 1):
        for side, script in zip(SIDES, scripts):
            session = folder / f"{side}-{number}.tftrace"
            command = [sys.executable, "-m", "tftracer", "run", *options, "--output", str(session), *script]
            code = subprocess.call(command)
            if code:
                say(f"{' '.join(script)[:200]} ended with exit code {code} in round {number}; the rest was not started.")
                return code
    say(f"{times} sessions of each script are in {folder}. To compare them:")
    say("  tftracer compare " + " -- ".join(f"{folder}/{side}-*.tftrace" for side in SIDES[: len(scripts)]))
    return 0
