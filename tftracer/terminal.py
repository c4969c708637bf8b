"""What the command shows on a terminal alone: colours, and the progress of long work. Elsewhere nothing of it is written."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import IO

RED, GREEN, YELLOW, BOLD = "31", "32", "33", "1"
#: Work that takes less shows no progress.
SILENT_S = 1.0
TICK_S = 0.5
CLEAR_LINE = "\r\x1b[K"


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
            line = f"{self.text}, {time.monotonic() - self._begun:.0f} s"
            sys.stderr.write(CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
            if self._done.wait(TICK_S):
                break
        sys.stderr.write(CLEAR_LINE)
        sys.stderr.flush()
