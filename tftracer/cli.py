"""The ``tftracer`` command: opens a saved session, the spool of a killed job, or another tool's traces. Needs no TensorFlow.

The only place that prints errors and exits. Exit codes: 0 all went well (Ctrl-C included), 1 the file cannot be opened, 2 wrong
usage, 3 no port could be bound.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import logging
import os
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tftracer.errors import PortError, TracerError
from tftracer.memory_limit import limit_memory, memory_errors, without_limit
from tftracer.version import __version__

if TYPE_CHECKING:
    from tftracer.session.saved import SavedSession
    from tftracer.session.source import SessionSource
    from tftracer.storage.spool_folder import DeadSpool

FAILED, USAGE, NO_PORT = 1, 2, 3
#: First words that are commands.
COMMANDS = ("run", "export", "query", "compare", "fleet", "roof")
#: Those that run a script, or decode no files: the others limit the memory of their process.
UNLIMITED = ("run", "fleet", "roof")


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535; 0 takes any free one")
    return number


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tftracer",
        description="Opens a saved tracing session in the browser: a .tftrace file, the spool of a killed job, a session of "
        "tensorflow-tracer 1.x, RunMetadata or StepStats (.pb, .pbtxt, .json), a profile (.xplane.pb, or the log folder that "
        "holds it), Timeline JSON, or a tfevents file. TensorFlow is not needed.",
        epilog="also: tftracer run SCRIPT, tftracer export FILE... --parquet DIR, tftracer query FILE SQL, "
        "tftracer compare A... -- B..., tftracer fleet DIR, tftracer roof (each has --help). "
        "exit codes: 0 all went well, 1 the file cannot be opened, 2 wrong usage, 3 no port could be bound",
    )
    made.add_argument("session_file", nargs="?", help="the file to open")
    made.add_argument("--port", type=port, default=9999, help="port of the page; the next free one if it is in use (9999)")
    made.add_argument("--ip", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine alone)")
    made.add_argument("--token", help="what the page asks for; better in the environment, as TFTRACER_TOKEN (a new one)")
    made.add_argument("--no-browser", action="store_true", help="print the page's URL and open no browser")
    made.add_argument("--summary", action="store_true", help="print the runs, the traces and what holds the step back, and exit")
    made.add_argument("--json", action="store_true", help="with --summary: as JSON")
    made.add_argument("--recover", action="store_true", help="list the sessions of ended jobs")
    made.add_argument("--version", action="version", version=f"tftracer {__version__}")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    is_own_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    word = arguments[0] if arguments else ""
    if is_own_process and word not in UNLIMITED:
        limit_memory()
    try:
        with memory_errors(0):
            if word in COMMANDS and not Path(word).is_file():  # a file of that name is a session to open
                return command(word, arguments[1:])
            return run(parser().parse_args(arguments))
    except TracerError as problem:
        print(f"tftracer: {problem}", file=sys.stderr)
        return NO_PORT if isinstance(problem, PortError) else FAILED
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 0
    except BrokenPipeError:  # `tftracer ... | head`: nothing more can be printed, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def command(word: str, arguments: list[str]) -> int:
    if word == "run":
        from tftracer import run_command

        return run_command.main(arguments)
    from tftracer import compare_command, export_command, fleet_command, query_command, roof_command

    return {
        "export": export_command.main,
        "query": query_command.main,
        "compare": compare_command.main,
        "fleet": fleet_command.main,
        "roof": roof_command.main,
    }[word](arguments, print)


def run(options: argparse.Namespace) -> int:
    if options.recover:
        return recover()
    if not options.session_file:
        return usage_error("give a session_file to open, or --recover to list the sessions of ended jobs")
    if options.json and not options.summary:
        return usage_error("--json goes with --summary")
    if options.token == "":
        return usage_error("--token must not be empty; without it, a token is made")
    from tftracer.session.saved import open_session

    source = open_session(options.session_file)
    if options.summary:
        source.check_payloads()
    print_damage(options.session_file, source)
    return summary(source, options.json) if options.summary else serve(source, options)


def usage_error(why: str) -> int:
    print(f"{parser().format_usage()}tftracer: {why}.", file=sys.stderr)
    return USAGE


def print_damage(path: str, source: SessionSource) -> None:
    facts = source.session()
    for text in filter(None, (facts["cut"], facts["damage"])):
        print(f"tftracer: {path}: {text}", file=sys.stderr)


def recover() -> int:
    from tftracer.storage.spool_folder import dead_spools

    spools = dead_spools()
    if not spools:
        print("No ended job has left a session. Sessions written to a spool_dir of their own are listed nowhere.")
        return 0
    for spool in spools:
        print(line_of(spool))
    print(f"\nOpen one with: tftracer {spools[0].path}")
    return 0


def line_of(spool: DeadSpool) -> str:
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(spool.changed_at))
    return f"{changed}  {spool.bytes / 1e6:9.1f} MB  {spool.host} pid {spool.pid}  {spool.path}"


def summary(source: SavedSession, as_json: bool) -> int:
    from tftracer.session.summary import render, summarize

    source.analyze_pending()  # a killed job may not have analyzed its last traces
    contents = summarize(source)
    print(json.dumps(contents, indent=2) if as_json else render(contents), end="\n" if as_json else "")
    return 0


def serve(source: SavedSession, options: argparse.Namespace) -> int:
    """Until Ctrl-C, or until the page shuts it down."""
    from tftracer.job.membership import saved_job_pages
    from tftracer.web.app import Options, WebServer

    server = WebServer(source, Options(options.port, options.ip, options.token), saved_job_pages(options.session_file, source))
    server.start()
    threading.Thread(target=check_traces, args=[source], daemon=True).start()
    try:
        if options.port and server.port != options.port:
            print(f"Port {options.port} is in use; the page is on port {server.port}.", file=sys.stderr)
        print(f"{options.session_file} is open at {server.url}\nCtrl-C ends.", flush=True)
        with opened(server.url) if wants_browser(options) else contextlib.nullcontext():
            server.join()
    finally:
        server.stop()
    return 0


def check_traces(source: SavedSession) -> None:
    """Check and analyze the traces: takes longer than opening the file, and the page shows the results as they come."""
    source.check_payloads()
    source.analyze_pending()


def wants_browser(options: argparse.Namespace) -> bool:
    """Only where the caller would see it."""
    if options.no_browser or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in {"darwin", "win32"} or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@contextlib.contextmanager
def opened(url: str) -> Iterator[None]:
    """Open the browser through a file that only its owner can read, because other users can see command lines."""
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={html.escape(url)}">'
    with tempfile.TemporaryDirectory(prefix="tftracer-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(page, encoding="utf-8")
        threading.Thread(target=open_browser, args=[file.as_uri()], daemon=True).start()
        yield


def open_browser(url: str) -> None:
    with without_limit():  # browsers map far more than they use
        webbrowser.open(url)


if __name__ == "__main__":
    sys.exit(main())
