"""What the command writes: text that cannot steer a terminal; on a terminal colours, and the progress of long work."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import IO, Protocol

RED, GREEN, YELLOW = "31", "32", "33"
#: Work that takes less shows no progress.
SILENT_S = 1.0
TICK_S = 0.5
CLEAR_LINE = "\r\x1b[K"
#: Control characters but tab and line feed, what changes the direction of text, other ends of lines, halves of surrogate pairs.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Say(Protocol):
    """Writes an answer. ``is_safe``: as it is, because the caller has escaped it or no terminal reads it."""

    def __call__(self, text: str, *, is_safe: bool = False) -> None: ...


def printable(text: str) -> str:
    """Text that may come from a hostile file, with what would steer a terminal as JSON writes it: ``\\u001b``, ``\\u202e``."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class PrintableFormatter(logging.Formatter):
    """For log lines, which may quote files."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def has_colours(stream: IO[str]) -> bool:
    """Only where somebody looks on, and not where ``NO_COLOR`` is set (no-color.org) or the terminal has none."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str, stream: IO[str]) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours(stream) else text


class Progress:
    """``with Progress("Reading 12 files") as progress:`` shows the text with the time it takes on stderr, if that is a terminal.

    ``progress.text`` may be set meanwhile, from any thread. The line is removed at the end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._done = threading.Event()
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._show, name="tftracer-progress", daemon=True)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._done.wait(SILENT_S):
            return
        while True:
            line = f"{printable(self.text)}, {time.monotonic() - self._begun:.0f} s"
            sys.stderr.write(CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
            if self._done.wait(TICK_S):
                break
        sys.stderr.write(CLEAR_LINE)
        sys.stderr.flush()
