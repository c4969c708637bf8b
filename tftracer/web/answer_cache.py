"""The answers about traces: each is computed once, encoded, and cached.

Runs on the server's loop. The engine computes on worker threads, which wait for the helper process if there is one. Simultaneous
requests for the same answer share one computation; a trace occupies at most one worker; a computation that has not begun is
dropped when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from typing import IO, Any, TypeVar
from weakref import WeakValueDictionary

from tftracer.comparison.ops_over_traces import RunTraces
from tftracer.comparison.two_traces import OtherTotals
from tftracer.contract.encoding import Body
from tftracer.contract.session import TraceRecord
from tftracer.engine.bounded_cache import BoundedCache
from tftracer.engine.decoded_traces import AnswerFormat, EncodedOtherAnswers, Question
from tftracer.engine.engine import Engine
from tftracer.errors import TracerError
from tftracer.session.answers import SessionSource
from tftracer.session.one_trace import session_of
from tftracer.storage.trace_payload import Loadable, TraceKey
from tftracer.web.worker_threads import WorkerThreads

V = TypeVar("V")

#: Maximum size of the cached answers, encoded and compressed. The timeline of 96,108 nodes takes about 2 MB.
CACHE_BYTES = 64 << 20
CACHE_ENTRIES = 2000
#: Decoded traces are freed after this long without a question.
IDLE_S = 120.0
EXPORT_BYTES = 8 << 20  # a larger export is on disk while it is sent

Key = tuple[TraceKey, str, AnswerFormat]


class Abandoned(Exception):
    """Nobody waits for this answer any more."""


class Computation:
    """An answer that is being computed, and the number of requests that wait for it."""

    task: asyncio.Task[Body]
    waiting = 0


class AnswerCache:
    """The cache. ``engine``: by default the worker threads compute. ``instance``: identifies a session that has no id."""

    def __init__(self, source: SessionSource, workers: WorkerThreads, engine: Engine | None = None, instance: str = "") -> None:
        self._source = source
        self._workers = workers
        self._local_engine = Engine(self._load)
        self._engine: Engine = engine or self._local_engine
        self._instance = instance
        self._cache: BoundedCache[Body] = BoundedCache(CACHE_ENTRIES, CACHE_BYTES)
        self._computations: dict[Key, Computation] = {}
        #: Held while something is computed from a trace. A lock is deleted when nobody holds it or waits for it.
        self._locks: WeakValueDictionary[TraceKey, asyncio.Lock] = WeakValueDictionary()
        self._idle_timer: asyncio.TimerHandle | None = None

    def _load(self, trace: TraceKey) -> Loadable:
        return Loadable(lambda: self._source.trace_bytes(trace.id), self._source.trace_context(trace.id))

    def prepare(self) -> None:
        """Prepare the engine for questions, because a browser has connected."""
        self._engine.start_in_background()

    def key_of(self, record: TraceRecord) -> TraceKey:
        """Return the engine's key of a trace. From any thread; takes the session's lock."""
        return TraceKey.of(self._source.session()["id"] or self._instance, record)

    async def ask(self, trace: TraceKey, question: Question, answer_format: AnswerFormat) -> Body:
        """Return the encoded answer. The computation is dropped if all waiting requests are cancelled before it begins."""
        key = (trace, question.key, answer_format)
        while True:
            body = self._cache.get(key)
            if body is not None:
                return body
            with contextlib.suppress(Abandoned):  # earlier requests gave up just before this one came
                return await self._wait_for(key, question)

    async def compare(self, first: TraceKey, second: TraceKey, by: str, others: OtherTotals, answer_format: AnswerFormat) -> Body:
        """Return the encoded comparison of two traces. It is not cached."""
        return await self._run(first, lambda: self._engine.compare(first, second, by, others, answer_format))

    async def run_ops(self, run: RunTraces, by: str, answer_format: AnswerFormat) -> Body:
        """Return the encoded table of ops over a run's traces. It is not cached, but each trace's totals are."""
        return await asyncio.wrap_future(self._workers.submit(self._engine.run_ops, run, by, answer_format))

    async def export(self, trace: TraceKey, file_format: str, record: TraceRecord, others: EncodedOtherAnswers) -> IO[bytes]:
        """Return the trace in another tool's format, as a temporary file positioned at its beginning."""

        def write() -> IO[bytes]:
            file: IO[bytes] = tempfile.SpooledTemporaryFile(EXPORT_BYTES)  # noqa: SIM115
            self._engine.export(trace, file_format, session_of(record), others, file)
            file.seek(0)
            return file

        return await self._run(trace, write)

    async def contents(self, trace: TraceKey) -> dict[str, Any]:
        """Return the fields of a trace's record that come from its contents, and leave the trace decoded for later questions.

        Used by a server without a helper. A question that arrives while the trace is decoded is answered first.
        """
        await self._run(trace, lambda: self._local_engine.decode(trace))
        return await self._run(trace, lambda: self._local_engine.contents(trace))

    async def _wait_for(self, key: Key, question: Question) -> Body:
        computation = self._computations.get(key)
        if computation is None or computation.task.done():
            computation = self._computations[key] = Computation()
            computation.task = asyncio.ensure_future(self._compute(key, question, computation))
            computation.task.add_done_callback(lambda task: self._remove_computation(key, task))
        computation.waiting += 1
        try:
            return await asyncio.shield(computation.task)
        finally:
            computation.waiting -= 1

    def _remove_computation(self, key: Key, task: asyncio.Task[Body]) -> None:
        if key in self._computations and self._computations[key].task is task:
            del self._computations[key]
        if not task.cancelled():
            task.exception()  # otherwise asyncio would log it if nobody waits any more

    async def _compute(self, key: Key, question: Question, computation: Computation) -> Body:
        trace, _, answer_format = key

        def work() -> Body:
            if not computation.waiting:
                raise Abandoned
            return self._answer(trace, question, answer_format)

        body = await self._run(trace, work)
        self._cache.put(key, body, body.size)
        return body

    def _answer(self, trace: TraceKey, question: Question, answer_format: AnswerFormat) -> Body:
        body, headline = self._engine.ask(trace, question, answer_format)
        if headline:
            with contextlib.suppress(TracerError):  # the trace may have been replaced by a newer one
                self._source.set_headline(trace.id, headline)
        return body

    async def _run(self, trace: TraceKey, work: Callable[[], V]) -> V:
        """Run ``work`` on a worker thread, while nothing else is computed from this trace."""
        lock = self._locks.setdefault(trace, asyncio.Lock())
        async with lock:
            result = await asyncio.wrap_future(self._workers.submit(work))
            self._free_when_idle()
            return result

    def _free_when_idle(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_S, self._engine.clear)
