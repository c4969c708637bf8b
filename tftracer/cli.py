"""The ``tftracer`` command: opens a saved session, the spool of a killed job, or another tool's traces. Needs no TensorFlow.

The commands raise errors; this module prints them and turns them into exit codes. Errors in options are the exception: the parser
itself prints them (subcommand_parser.py). Exit codes: 0 success (also a viewer that was ended by Ctrl-C), 1 the file cannot be
opened, 2 wrong usage, 3 no port could be bound, 130 ended by Ctrl-C; ``tftracer compare`` has two more.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import logging
import os
import pkgutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tftracer import commands, viewer
from tftracer.errors import PortError, TracerError, UsageError
from tftracer.memory_limit import limit_memory, memory_errors
from tftracer.subcommand_parser import INTERRUPTED, USAGE, Parser, ended_by_interrupt, suggestion
from tftracer.terminal import RED, PrintableFormatter, coloured, printable, progress
from tftracer.version import __version__

if TYPE_CHECKING:
    from tftracer.session.answers import SessionSource
    from tftracer.session.files.saved import SavedSession
    from tftracer.storage.spool_folder import EndedSpool

FAILED, NO_PORT = 1, 3
#: The subcommands: each is a module of ``commands``.
COMMANDS = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
#: Subcommands whose process has no memory limit, because they execute a script or decode no files.
UNLIMITED = ("run", "fleet", "roof")
#: Subcommands that exit with 0 after Ctrl-C, like the viewer of a file.
VIEWERS = ("demo",)


def parser() -> Parser:
    summaries = [f"tftracer {name}: {importlib.import_module(f'tftracer.commands.{name}').SUMMARY}" for name in COMMANDS]
    syntax = Parser(
        "tftracer",
        "Opens a saved tracing session in the browser: a .tftrace file, the spool of a killed job, a session of "
        "tensorflow-tracer 1.x, RunMetadata or StepStats (.pb, .pbtxt, .json), a profile (.xplane.pb, or the log folder that "
        "holds it), Timeline JSON, or a tfevents file. TensorFlow is not needed.",
        epilog=f"commands (each has --help): {'; '.join(summaries)}. exit codes: 0 all went well, 1 the file cannot be opened, "
        "2 wrong usage, 3 no port could be bound, 130 ended by Ctrl-C before the page was open",
    )
    syntax.add_argument("session_file", nargs="?", help="the file to open")
    viewer.add_page_options(syntax)
    syntax.add_argument("--summary", action="store_true", help="print the runs, traces and what holds the step back, and exit")
    syntax.add_argument("--json", action="store_true", help="with --summary: as JSON")
    syntax.add_argument("--recover", action="store_true", help="list the sessions of ended jobs")
    syntax.add_argument("--version", action="version", version=f"tftracer {__version__}")
    return syntax


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    is_own_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    word = arguments[0] if arguments else ""
    if is_own_process and word not in UNLIMITED:
        limit_memory()
    try:
        with memory_errors(0):
            if word in COMMANDS and not Path(word).is_file():  # if a file has the name of a command, it is opened
                with contextlib.nullcontext() if word in VIEWERS else ended_by_interrupt():
                    return int(importlib.import_module(f"tftracer.commands.{word}").main(arguments[1:], say))
            if hint := spelling_hint(word):
                return usage_error(f"there is no file and no command {word!r}.{hint}")
            return open_file(parser().parse_args(arguments))
    except TracerError as problem:
        error(str(problem))
        return NO_PORT if isinstance(problem, PortError) else USAGE if isinstance(problem, UsageError) else FAILED
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED


def spelling_hint(word: str) -> str:
    """Return a suggestion (" Did you mean ...?") if the word seems to be a misspelt command, else ""."""
    may_be_file = word.startswith("-") or Path(word).suffix or Path(word).exists()
    return "" if may_be_file else suggestion(word, COMMANDS)


def say(text: str, *, is_safe: bool = False) -> None:
    """Write an answer to stdout (terminal.Say). If nobody reads stdout any more (``... | head``), go on without an error."""
    try:
        sys.stdout.write(f"{text if is_safe else printable(text)}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error(text: str) -> None:
    print(f"{coloured('tftracer:', RED, sys.stderr)} {printable(text)}", file=sys.stderr)


def open_file(options: argparse.Namespace) -> int:
    if options.recover:
        return list_ended_sessions()
    if not options.session_file:
        return usage_error("give a session_file to open, or --recover to list the sessions of ended jobs")
    if options.json and not options.summary:
        return usage_error("--json goes with --summary")
    if options.token == "":
        return usage_error("--token must not be empty; without it, a token is made")
    from tftracer.session.files.saved import open_session

    source = open_session(options.session_file)
    if not options.summary:
        print_damage(options.session_file, source)
        return viewer.serve(source, options.session_file, options)
    with ended_by_interrupt(), progress(f"Reading {options.session_file}"):
        source.check_payloads()
        print_damage(options.session_file, source)
        return summary(source, options.json)


def usage_error(why: str) -> int:
    print(parser().format_usage(), end="", file=sys.stderr)
    error(why if why.endswith("?") else f"{why}.")
    return USAGE


def print_damage(path: str, source: SessionSource) -> None:
    facts = source.session()
    for text in filter(None, (facts["cut"], facts["damage"])):
        error(f"{path}: {text}")


def list_ended_sessions() -> int:
    from tftracer.storage.spool_folder import ended_spools

    spools = ended_spools()
    if not spools:
        say("There are no sessions of ended jobs. Sessions in a folder that a script set as spool_dir are not listed.")
        return 0
    for spool in spools:
        say(line_of(spool))
    say(f"\nOpen one with: tftracer {spools[0].path}")
    return 0


def line_of(spool: EndedSpool) -> str:
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(spool.changed_at))
    return f"{changed}  {spool.bytes / 1e6:9.1f} MB  {spool.host} pid {spool.pid}  {spool.path}"


def summary(source: SavedSession, as_json: bool) -> int:
    from tftracer.session.summary_of_session import render, summarize

    source.analyze_pending()  # a killed job may not have analyzed its last traces
    contents = summarize(source)
    say(json.dumps(contents, indent=2) if as_json else render(contents).removesuffix("\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
