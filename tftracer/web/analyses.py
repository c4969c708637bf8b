"""The answers about traces, computed once each: a cache of decoded traces, another of encoded bodies.

Runs on the server's loop; computing happens on worker threads. A question that several browsers ask at once is computed
once, one trace keeps one worker busy at most, and what nobody waits for any more is not begun.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from tftracer.errors import TracerError
from tftracer.session.source import SessionSource
from tftracer.web.encode import Body, encode
from tftracer.web.workers import Workers

if TYPE_CHECKING:
    from tftracer.trace.answers import Answers, By

V = TypeVar("V")

#: Decoded, a trace takes about twice the bytes of its RunMetadata (these, and the columns).
DECODED_BYTES = 512 << 20
DECODED_TRACES = 4
#: Encoded and compressed: the timeline of 96,108 nodes is about 2 MB.
BODY_BYTES = 64 << 20
BODIES = 2000
#: After this long without a question a decoded trace is let go: the memory is the training's.
IDLE_S = 120.0


class Trace(NamedTuple):
    """One trace of one session; differs when a file loaded later brings another trace with the same number."""

    session: str
    id: int
    started_at: float
    bytes: int

    @property
    def tag(self) -> str:
        return f"{self.session}-{self.id}-{self.started_at:.6f}-{self.bytes}"


class Question(NamedTuple):
    """What to ask ``Answers``; ``key`` tells two questions apart."""

    key: str
    answer: Callable[[Answers], Mapping[str, Any]]


class Format(NamedTuple):
    packed: bool  # msgpack
    encoding: str  # accepted content encoding


class Bounded(Generic[V]):
    """The values used last: at most so many, and of so many bytes together; the newest is kept in any case."""

    def __init__(self, entries: int, size: int) -> None:
        self._entries = entries
        self._size = size
        self._held: OrderedDict[Any, tuple[V, int]] = OrderedDict()

    def get(self, key: Any) -> V | None:
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def put(self, key: Any, value: V, size: int) -> None:
        self._held[key] = (value, size)
        self._held.move_to_end(key)
        while len(self._held) > 1 and (len(self._held) > self._entries or self.size > self._size):
            self._held.popitem(last=False)

    def clear(self) -> None:
        self._held.clear()

    @property
    def size(self) -> int:
        return sum(size for _, size in self._held.values())

    def __len__(self) -> int:
        return len(self._held)


Key = tuple[Trace, str, Format]


class Abandoned(Exception):
    """Nobody waits for this answer any more."""


class Flight:
    """A question on its way, and how many wait for it."""

    task: asyncio.Task[Body]
    waiters = 0


@dataclass
class Turn:
    """Whose turn it is at one trace."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Analyses:
    def __init__(self, source: SessionSource, workers: Workers) -> None:
        self._source = source
        self._workers = workers
        self._decoded: Bounded[Answers] = Bounded(DECODED_TRACES, DECODED_BYTES)
        self._bodies: Bounded[Body] = Bounded(BODIES, BODY_BYTES)
        self._flights: dict[Key, Flight] = {}
        self._turns: dict[Trace, Turn] = {}
        self._idle: asyncio.TimerHandle | None = None

    async def ask(self, trace: Trace, question: Question, form: Format) -> Body:
        """The encoded answer. Cancelling it is giving up: if nobody else waits, what has not begun never does."""
        key = (trace, question.key, form)
        while True:
            body = self._bodies.get(key)
            if body is not None:
                return body
            with contextlib.suppress(Abandoned):  # by those who asked before, just as this one came
                return await self._join(key, question)

    async def _join(self, key: Key, question: Question) -> Body:
        flight = self._flights.get(key)
        if flight is None or flight.task.done():
            flight = self._flights[key] = Flight()
            flight.task = asyncio.ensure_future(self._fly(key, question, flight))
            flight.task.add_done_callback(lambda task: self._land(key, task))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1

    def _land(self, key: Key, task: asyncio.Task[Body]) -> None:
        if key in self._flights and self._flights[key].task is task:
            del self._flights[key]
        if not task.cancelled():
            task.exception()  # seen, also when nobody waits for it any more

    async def answers(self, trace: Trace, use: Callable[[Answers], V]) -> V:
        """``use`` called with the decoded trace on a worker thread, in its turn; for exports."""
        turn = self._turns.setdefault(trace, Turn())
        turn.users += 1
        try:
            async with turn.lock:
                held = self._decoded.get(trace)
                result: V
                answers, result = await asyncio.wrap_future(self._workers.submit(self._use, trace, held, use))
                self._decoded.put(trace, answers, 2 * trace.bytes)
                self._let_go_later()
                return result
        finally:
            turn.users -= 1
            if not turn.users:
                self._turns.pop(trace, None)

    async def compare(self, first: Trace, second: Trace, by: By, form: Format) -> Body:
        """The comparison of two traces, encoded. Not kept: what it is made of is."""
        from tftracer.trace.compare import compare

        a, b = [await self.answers(trace, lambda answers: answers) for trace in (first, second)]
        work = self._workers.submit(lambda: encode(compare(a, b, by), form.packed, form.encoding))
        return await asyncio.wrap_future(work)

    async def _fly(self, key: Key, question: Question, flight: Flight) -> Body:
        trace, _, form = key

        def work(answers: Answers) -> Body:
            if not flight.waiters:
                raise Abandoned
            return self._body(trace, question, form, answers)

        body = await self.answers(trace, work)
        self._bodies.put(key, body, body.size)
        return body

    def _use(self, trace: Trace, held: Answers | None, use: Callable[[Answers], V]) -> tuple[Answers, V]:
        from tftracer.trace.answers import Answers  # not before a trace is opened: most jobs never open one

        answers = held or Answers(self._source.trace_bytes(trace.id), self._source.trace_context(trace.id), trace_id=trace.id)
        return answers, use(answers)

    def _body(self, trace: Trace, question: Question, form: Format, answers: Answers) -> Body:
        message = question.answer(answers)
        if question.key == "verdict" and message["sentences"]:
            with contextlib.suppress(TracerError):  # the trace may have made room for a newer one meanwhile
                self._source.set_headline(trace.id, message["sentences"][0]["text"])
        return encode(message, form.packed, form.encoding)

    def _let_go_later(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._decoded.clear)
