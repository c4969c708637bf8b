"""A cache of decoded traces, and the questions that can be asked about them. Used in the helper process and on threads.

Thread-safe.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, cast

from tftracer.contract.analyses import ANALYSES, OTHER_TRACES_NEEDED
from tftracer.contract.encoding import Body, encode, unpacked
from tftracer.contract.session import SessionMessage
from tftracer.engine.bounded_cache import BoundedCache
from tftracer.errors import HelperError, UnknownError
from tftracer.memory_limit import memory_errors
from tftracer.storage.trace_payload import Loadable, Payload, TraceKey

if TYPE_CHECKING:
    from tftracer.comparison.ops_over_traces import RunTraces
    from tftracer.comparison.two_traces import OtherTotals
    from tftracer.contract.analyses import OtherAnswers
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.answers import Answers

V = TypeVar("V")

#: Maximum size of the cache. A decoded trace counts as twice the bytes of its RunMetadata: these bytes, and the columns.
DECODED_BYTES = 512 << 20
DECODED_TRACES = 4

#: The methods of ``Answers`` that a question may name: the analyses, and the methods whose answers they need from other traces.
QUESTIONS = {analysis.name for analysis in ANALYSES} | {needed.method for needed in OTHER_TRACES_NEEDED.values()}

#: Maximum length of a question's key, because keys are stored with answers; longer keys are hashed.
LONG_KEY = 10_000


#: Analysis -> the encoded answers that it needs from other traces of the run.
EncodedOtherAnswers = Mapping[str, Sequence[bytes]]


class Question(NamedTuple):
    """A method of ``Answers`` and its arguments. The argument ``other_traces`` holds encoded answers about other traces."""

    name: str
    arguments: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """The key of the question: equal for equal arguments."""
        key = f"{self.name} {dict(self.arguments)}"
        return key if len(key) < LONG_KEY else f"{self.name} {hashlib.sha256(key.encode()).hexdigest()}"


class AnswerFormat(NamedTuple):
    packed: bool  # msgpack
    encoding: str  # accepted content encoding


class EncodedAnswer(NamedTuple):
    body: Body
    headline: str = ""  # a verdict's first sentence


Load = Callable[[TraceKey], Union[Payload, Loadable]]


class DecodedTraces:
    """The cache, of at most ``max_traces`` traces. ``load`` returns the payload of a trace that is not in the cache."""

    def __init__(self, load: Load, max_traces: int = DECODED_TRACES) -> None:
        self._load = load
        self._decoded: BoundedCache[Answers] = BoundedCache(max_traces, DECODED_BYTES)
        self._lock = threading.Lock()

    def use(self, trace: TraceKey, function: Callable[[Answers], V]) -> V:
        """Call ``function`` with the decoded trace. If it does not raise, cache the trace.

        Raises HelperError if memory ran out; then the cache was emptied.
        """
        from tftracer.trace.answers import Answers

        with self._lock:
            answers = self._decoded.get(trace)
        with self._emptied_on_helper_error(), memory_errors(trace.bytes):
            if answers is None:
                payload = self._load(trace)
                answers = Answers(payload.raw, payload.context, trace_id=trace.id)
            result = function(answers)
        with self._lock:
            self._decoded.put(trace, answers, 2 * trace.bytes)
        return result

    @contextlib.contextmanager
    def _emptied_on_helper_error(self) -> Iterator[None]:
        try:
            yield
        except HelperError:
            self.clear()
            raise

    def clear(self) -> None:
        with self._lock:
            self._decoded.clear()

    def ask(self, trace: TraceKey, question: Question, answer_format: AnswerFormat) -> EncodedAnswer:
        """Return the encoded answer. Raises what ``Answers`` raises, and UnknownError for an unknown question."""
        from tftracer.trace.verdict.verdict import headline

        if question.name not in QUESTIONS:
            raise UnknownError(f"There is no question {question.name[:50]!r}.")

        def answer(answers: Answers) -> EncodedAnswer:
            arguments = dict(question.arguments)
            if "other_traces" in arguments:
                arguments["other_traces"] = list(map(unpacked, arguments["other_traces"]))
            message = getattr(answers, question.name)(**arguments)
            return EncodedAnswer(encode(message, *answer_format), headline(message) if question.name == "verdict" else "")

        return self.use(trace, answer)

    def compare(self, first: TraceKey, second: TraceKey, by: str, others: OtherTotals, answer_format: AnswerFormat) -> Body:
        """Compare two traces. ``others``: the op totals of the other traces of their runs."""
        from tftracer.comparison.two_traces import compare

        a, b = [self.use(trace, lambda answers: answers) for trace in (first, second)]
        with self._emptied_on_helper_error(), memory_errors(first.bytes + second.bytes):
            return encode(compare(a, b, others, cast("By", by)), *answer_format)

    def run_ops(self, run: RunTraces, by: str, answer_format: AnswerFormat) -> Body:
        """Return the table of ops over the traces of a run, from the op totals of each."""
        from tftracer.comparison.ops_over_traces import run_ops

        return encode(run_ops(run, cast("By", by)), *answer_format)

    def export(
        self, trace: TraceKey, file_format: str, session: SessionMessage, others: EncodedOtherAnswers, file: IO[bytes]
    ) -> None:
        """Write the trace in a format of ``EXPORTS``.

        ``session``: a session with only this trace. ``others``: the answers about other traces that its analyses need.
        """
        parts_of, other_answers = EXPORTS[file_format], {name: list(map(unpacked, each)) for name, each in others.items()}

        def write(answers: Answers) -> None:
            file.writelines(part.encode("utf-8", "replace") for part in parts_of(answers, session, other_answers))

        self.use(trace, write)


def _chrome(answers: Answers, session: SessionMessage, others: OtherAnswers) -> Iterable[str]:
    from tftracer.export.chrome import chrome_traces

    return chrome_traces([("", answers)], show_memory=True)


def _html(answers: Answers, session: SessionMessage, others: OtherAnswers) -> Iterable[str]:
    from tftracer.export.html import page_of

    return page_of(answers, session["runs"][0]["traces"][0], session, others)


EXPORTS: dict[str, Callable[[Any, SessionMessage, OtherAnswers], Iterable[str]]] = {"chrome": _chrome, "html": _html}
