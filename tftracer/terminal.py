"""Output of the command: text without terminal control sequences; on a terminal also colours and progress."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Protocol

RED, GREEN, YELLOW = "31", "32", "33"
#: Work that takes fewer seconds shows no progress.
SILENT_S = 1.0
TICK_S = 0.5  # time between two updates of the progress line
CLEAR_LINE = "\r\x1b[K"
#: Control characters except tab and line feed, characters for the text's direction, other line ends, lone surrogates.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Say(Protocol):
    """Writes an answer. ``is_safe``: do not escape the text, because the caller has done so or no terminal shows it."""

    def __call__(self, text: str, *, is_safe: bool = False) -> None: ...


def printable(text: str) -> str:
    """Escape characters in untrusted text that would control a terminal, as JSON does: ``\\u001b``, ``\\u202e``."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class PrintableFormatter(logging.Formatter):
    """Escapes control characters in log lines, which may quote untrusted files."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def has_colours(stream: IO[str]) -> bool:
    """Return whether to use colours: only on a terminal that has them, and not if ``NO_COLOR`` is set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str, stream: IO[str]) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours(stream) else text


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a text and the elapsed time on stderr during the block if it is a terminal. The line is removed at the end."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show_progress, args=[text, done], name="tftracer-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show_progress(text: str, done: threading.Event) -> None:
    began = time.monotonic()
    if done.wait(SILENT_S):
        return
    while True:
        line = f"{printable(text)}, {time.monotonic() - began:.0f} s"
        sys.stderr.write(CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()
        if done.wait(TICK_S):
            break
    sys.stderr.write(CLEAR_LINE)
    sys.stderr.flush()
