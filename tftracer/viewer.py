"""Serves a saved session's page until Ctrl-C, for ``tftracer FILE`` and ``tftracer demo``."""

from __future__ import annotations

import argparse
import contextlib
import html
import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tftracer.memory_limit import without_limit
from tftracer.subcommand_parser import Parser
from tftracer.terminal import printable

if TYPE_CHECKING:
    from tftracer.session.files.saved import SavedSession


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535; 0 takes any free one")
    return number


def add_page_options(parser: Parser) -> None:
    parser.add_argument("--port", type=port, default=9999, help="port of the page, or the next free port (default: 9999)")
    parser.add_argument("--ip", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine alone)")
    parser.add_argument(
        "--token", help="the secret that the page asks for (default: a new one); better set TFTRACER_TOKEN in the environment"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the page's URL and open no browser")


def serve(source: SavedSession, path: str, options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or until the page shuts down the server. ``options``: see ``add_page_options``."""
    from tftracer.job.membership import saved_job_pages
    from tftracer.web.app import Options, WebServer

    server = WebServer(source, Options(options.port, options.ip, options.token), saved_job_pages(path, source))
    server.start()
    source.analyzer = server.contents
    source.check_in_background()
    try:
        if options.port and server.port != options.port:
            sys.stderr.write(f"Port {options.port} is in use; the page is on port {server.port}.\n")
        sys.stdout.write(f"{printable(path)} is open at {server.url}\nCtrl-C ends.\n")
        sys.stdout.flush()
        with opened(server.url) if wants_browser(options) else contextlib.nullcontext():
            server.join()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
    finally:
        server.stop()
    return 0


def wants_browser(options: argparse.Namespace) -> bool:
    """Return whether to open a browser: only if the user would see it."""
    if options.no_browser or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@contextlib.contextmanager
def opened(url: str) -> Iterator[None]:
    """Open the browser through a file that only its owner can read: the URL is secret, and other users can see command lines."""
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={html.escape(url)}">'
    with tempfile.TemporaryDirectory(prefix="tftracer-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(page, encoding="utf-8")
        threading.Thread(target=open_browser, args=[file.as_uri()], daemon=True).start()
        yield


def open_browser(url: str) -> None:
    with without_limit():  # browsers map far more memory than they use
        webbrowser.open(url)
