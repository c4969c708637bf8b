"""The engines that decode and analyze traces: on threads of this process, or in a helper process.

A thread that decodes competes with the training for the GIL: next to a busy Python loop, decoding 2^20 nodes takes ten times as
long, and every step of the training is delayed. A helper process avoids both.

Both engines may be used from any thread, and block the caller.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import IO, Any

from tftracer.comparison.ops_over_traces import RunTraces
from tftracer.comparison.two_traces import OtherTotals
from tftracer.contract.encoding import Body
from tftracer.contract.session import SessionMessage
from tftracer.engine.decoded_traces import AnswerFormat, DecodedTraces, EncodedAnswer, EncodedOtherAnswers, Question
from tftracer.engine.helper_process import Helper
from tftracer.errors import HelperError
from tftracer.storage.trace_payload import LoadPayload, TraceKey
from tftracer.trace.model import Watched


class Engine(DecodedTraces):
    """Answers on the calling thread. Used by the viewer, and if no helper process can be started."""

    def start_in_background(self) -> None:
        """Prepare for questions that will come soon. Does not block."""

    def decode(self, trace: TraceKey) -> None:
        """Decode a trace before questions about it are asked.

        Raises nothing: if decoding fails, the questions raise the error.
        """
        with contextlib.suppress(Exception):
            self.use(trace, lambda answers: answers.trace)

    def contents(self, trace: TraceKey, watched: Watched | None = None) -> dict[str, Any]:
        """Return the fields of a trace's record that come from its contents (trace/record_fields.py)."""
        from tftracer.trace.record_fields import broken, contents_of, unfinished

        try:
            return self.use(trace, partial(contents_of, watched=watched))
        except HelperError as error:
            return unfinished(error)
        except Exception as error:
            return broken(error)


class HelperEngine(Engine):
    """Answers in a helper process, or on the calling thread if no process can be started.

    ``load`` returns a trace as its session stores it. The process is started by ``start_in_background`` or the first question.
    """

    def __init__(self, load: LoadPayload) -> None:
        super().__init__(load)
        self.helper = Helper(load)

    def ask(self, trace: TraceKey, question: Question, answer_format: AnswerFormat) -> EncodedAnswer:
        if not self.helper.is_usable():
            return super().ask(trace, question, answer_format)
        arguments = [question.name, dict(question.arguments)]
        body, reply = self._body("ask", [trace], [trace, arguments, answer_format])
        return EncodedAnswer(body, reply["headline"])

    def compare(self, first: TraceKey, second: TraceKey, by: str, others: OtherTotals, answer_format: AnswerFormat) -> Body:
        if not self.helper.is_usable():
            return super().compare(first, second, by, others, answer_format)
        return self._body("compare", [first, second], [first, second, by, others, answer_format])[0]

    def run_ops(self, run: RunTraces, by: str, answer_format: AnswerFormat) -> Body:
        if not self.helper.is_usable():
            return super().run_ops(run, by, answer_format)
        return self._body("run_ops", [], [run, by, answer_format])[0]

    def export(
        self, trace: TraceKey, file_format: str, session: SessionMessage, others: EncodedOtherAnswers, file: IO[bytes]
    ) -> None:
        if not self.helper.is_usable():
            super().export(trace, file_format, session, others, file)
            return
        self.helper.ask("export", [trace], [trace, file_format, session, others], file.write)

    def contents(self, trace: TraceKey, watched: Watched | None = None) -> dict[str, Any]:
        """Return the fields of a trace's record that come from its contents. Raises HelperError if the helper failed."""
        if not self.helper.is_usable():
            return super().contents(trace, watched)
        return self.helper.ask("contents", [trace], [trace, watched], lambda data: None)  # the fields are in the message

    def start_in_background(self) -> None:
        self.helper.start_in_background()

    def interrupt(self) -> None:
        """End the helper's current question with HelperError."""
        self.helper.interrupt()

    def close(self) -> None:
        self.helper.close()

    def _body(self, question: str, traces: list[TraceKey], arguments: list[Any]) -> tuple[Body, dict[str, Any]]:
        chunks: list[bytes] = []
        reply = self.helper.ask(question, traces, arguments, chunks.append)
        return Body(reply["content_type"], reply["encoding"], tuple(chunks)), reply
