"""One trace of a session in a notebook: its verdict, and the whole viewer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tftracer.contract.session import Run, SessionMessage, TraceRecord
from tftracer.contract.trace import Verdict
from tftracer.display import markup
from tftracer.display.iframe import HEIGHT, Frame, framed
from tftracer.errors import TracerError
from tftracer.session.traces.other_traces import OtherTraces
from tftracer.storage.whole_file import write_whole
from tftracer.trace.units import duration

if TYPE_CHECKING:
    from tftracer.trace.answers import Answers

_SHOWN_OPS = 5
_SHOWN_FINDINGS = 5


class SessionTrace:
    """One traced step, from ``Session.trace``. A notebook shows its verdict; ``view()`` shows the whole viewer."""

    def __init__(
        self,
        record: TraceRecord,
        run: Run,
        session: Callable[[], SessionMessage],
        answers: Callable[[], Answers],
        other_traces: OtherTraces,
    ) -> None:
        self.record = record
        self._run = run
        self._session = session
        self._answers = answers
        self._other_traces = other_traces

    @property
    def number(self) -> int:
        """The trace's number in its session: ``trace_id`` of the tables."""
        return self.record["id"]

    @property
    def title(self) -> str:
        """The run and the step: ``train_step (32,784), step 12``."""
        step = self.record["step"]
        return self._run["title"] + (f", step {step:,}" if step is not None else "")

    def sentences(self) -> list[str]:
        """Return the verdict's sentences, the most important first. Raises TracerError for a damaged trace."""
        return [sentence["text"] for sentence in self._verdict()["sentences"]]

    def view(self, height: int = HEIGHT) -> Frame:
        """Show the whole viewer in a frame of the notebook. ``height``: in pixels.

        A small page is stored in the notebook. A page above 1 MB is stored in the kernel's working folder, with a note below the
        frame. The frame's scripts can access neither the notebook nor the network.
        """
        try:
            page = "".join(self._page())
        except TracerError as error:
            return Frame(self.title, markup.block(self.title, markup.paragraph(_unreadable(error))))
        return framed(page, self.title, height)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole viewer as one HTML file, which needs no network.

        Raises ``StorageError`` if the file cannot be written.
        """
        write_whole(os.fspath(path), (part.encode() for part in self._page()))

    def _page(self) -> Iterable[str]:
        from tftracer.export.html import page_of

        return page_of(self._answers(), self.record, self._session(), self._other_traces.of_all(self.number))

    def _repr_html_(self) -> str:
        return markup.shown("Trace", lambda: markup.block(self.title, *self.parts()))

    def parts(self) -> list[str]:
        """Return what a notebook shows below the title, as HTML."""
        try:
            verdict = self._verdict()
            ops = self._answers().ops("type")["rows"]
        except TracerError as error:
            return [markup.note(self._times()), markup.paragraph(_unreadable(error))]
        serious = [finding for finding in verdict["findings"] if finding["severity"] != "info"]
        rows = [(op["key"], f"{op['count']:,}", duration(op["total_ns"])) for op in ops[:_SHOWN_OPS]]
        return [
            markup.note(self._times()),
            markup.points(sentence["text"] for sentence in verdict["sentences"]),
            markup.table(("op type", " executions", " total time"), rows),
            *(markup.note(f"Note: {finding['message']} {finding['remedy']}") for finding in serious[:_SHOWN_FINDINGS]),
        ]

    def _verdict(self) -> Verdict:
        return self._answers().verdict(other_traces=self._other_traces.of(self.number, "verdict"))

    def _times(self) -> str:
        took, usual = self.record["duration_s"], self.record["median_s"]
        times = [f"{duration(took * 1e9)} traced" if took is not None else "duration not known"]
        times += [f"{duration(usual * 1e9)} untraced (median)"] if usual is not None else []
        times += [f"{self.record['nodes']:,} nodes"] if self.record["nodes"] is not None else []
        return " · ".join(times)

    def __repr__(self) -> str:
        return f"<SessionTrace {self.number}: {self.title}>"


def _unreadable(error: TracerError) -> str:
    return f"This trace cannot be read: {error}"
