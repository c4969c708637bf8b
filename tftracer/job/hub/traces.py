"""Opens steps that were traced on several processes: fetches the traces from the processes, merges and caches them.

Runs on the server's loop; decoding and merging run on a worker thread. A trace is fetched when it is opened.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tftracer.errors import TracerError, UnsupportedError
from tftracer.job.analyses.answers import JobAnswers
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.job.hub.hub import Connection, Hub, TracedStep
from tftracer.session.model import is_analyzed
from tftracer.storage.tftrace_format import StoredPayload, compress, decompress
from tftracer.trace.decode import formats
from tftracer.trace.model import TraceContext
from tftracer.trace.verdict.incomplete_trace import findings_of
from tftracer.web.worker_threads import WorkerThreads

T = TypeVar("T")

NICE = 5
#: Limits of the caches: merged traces (and SUSPECT_STEPS more), and compressed bytes of fetched traces.
OPEN_TRACES = 4
FETCHED_BYTES = 256 << 20
FETCHES_AT_ONCE = 8
#: The usual suspects are computed from this many of the latest steps.
SUSPECT_STEPS = 10


@dataclass(frozen=True)
class MergedTrace:
    """A step of the job, merged from the available traces."""

    sources: list[tuple[str, int, bool]]  # process, id of its trace, whether its summary was known
    answers: JobAnswers
    unavailable: dict[str, Connection | None]  # process -> the connection on which its trace was not available


class JobTraces:
    """Fetches, merges and caches the traces of steps. ``communication_ops``: the user's pattern in the hub's process."""

    def __init__(self, hub: Hub, communication_ops: str = "") -> None:
        self.communication_ops = communication_ops
        self._hub = hub
        self._merged: OrderedDict[int, MergedTrace] = OrderedDict()  # by the id of the job's trace
        self._fetched: OrderedDict[tuple[str, int], tuple[bytes, int]] = OrderedDict()  # by process and trace id
        self._stored: dict[tuple[int, str], StoredPayload] = {}  # traces of a job that was opened from a file
        self._merging: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._workers: WorkerThreads | None = None

    async def ask(self, trace_id: int, question: Callable[[JobAnswers], T]) -> T:
        """Answer a question about a job's trace. Raises UnsupportedError if no process has traced the step yet."""
        answers = await self.answers(self._hub.trace(trace_id))
        return await self.work(lambda: question(answers))

    async def answers(self, traced: TracedStep) -> JobAnswers:
        """Return the step merged from all available traces; merge it again if there are more traces or newer records."""
        message = traced.message
        if not message["ready"]:
            raise UnsupportedError("No process has traced this step yet." + _reasons(self._missing(traced)))
        trace_id, ready = message["id"], [(process, traced.records[process]) for process in message["ready"]]
        sources = [(process, record["id"], is_analyzed(record)) for process, record in ready]
        async with self._merge_lock():
            merged = self._merged.pop(trace_id, None)
            if merged is None or merged.sources != sources or self._is_more_available(merged):
                merged = MergedTrace(sources, *await self._merge(traced))
            self._merged[trace_id] = merged
            while len(self._merged) > OPEN_TRACES + SUSPECT_STEPS:
                self._merged.popitem(last=False)
            return merged.answers

    def _is_more_available(self, merged: MergedTrace) -> bool:
        """Return whether a process whose trace was not available has connected again."""
        return any(self._connection(process) not in (None, old) for process, old in merged.unavailable.items())

    def _connection(self, process_id: str) -> Connection | None:
        member = self._hub.members.get(process_id)
        return member.connection if member is not None else None

    def _merge_lock(self) -> asyncio.Lock:
        """Return the lock for merging, one per loop: the server may be started again with another loop."""
        loop = asyncio.get_running_loop()
        if self._merging is None or self._merging[0] is not loop:
            self._merging = (loop, asyncio.Lock())
        return self._merging[1]

    async def latest(self, newest: TracedStep) -> list[JobAnswers]:
        """Return the latest traced steps of the job, for the usual suspects; ``newest`` comes last."""
        ready = [t for t in self._hub.traces.values() if t.message["ready"]][-SUSPECT_STEPS:]
        steps = []
        for traced in [t for t in ready if t is not newest]:
            try:
                steps.append(await self.answers(traced))
            except TracerError:  # its processes have deleted it, or are gone
                continue
        return [*steps, await self.answers(newest)]

    async def _merge(self, traced: TracedStep) -> tuple[JobAnswers, dict[str, Connection | None]]:
        free_fetches = asyncio.Semaphore(FETCHES_AT_ONCE)
        ready = list(traced.message["ready"])
        missing = self._missing(traced)
        unavailable: dict[str, Connection | None] = {}

        async def fetch(process_id: str) -> ProcessTrace | None:
            async with free_fetches:
                connection = self._connection(process_id)
                try:
                    return await self._decoded(traced, process_id)
                except TracerError as error:
                    missing[self._hub.title(process_id)] = str(error)
                    unavailable[process_id] = connection
                    return None

        traces = [trace for trace in await asyncio.gather(*map(fetch, ready)) if trace is not None]
        if not traces:
            raise UnsupportedError("None of the traces of this step is available any more." + _reasons(missing))
        other_steps = [merged.answers for merged in self._merged.values()]
        title, trace_id = traced.message["title"], traced.message["id"]
        clocks = {m.info["title"]: m.info["clock"] for m in self._hub.members.values()}
        return await self.work(lambda: JobAnswers(traces, title, trace_id, other_steps, missing, clocks)), unavailable

    async def _decoded(self, traced: TracedStep, process_id: str) -> ProcessTrace:
        raw = await self.raw(traced, process_id)
        record, title = traced.records[process_id], self._hub.title(process_id)

        def decode() -> ProcessTrace:
            trace = formats.decode(raw, self.communication_ops)
            findings = record["findings"] if is_analyzed(record) else findings_of(trace, TraceContext())
            return ProcessTrace(process_id, title, trace, findings)

        return await self.work(decode)

    async def raw(self, traced: TracedStep, process_id: str) -> bytes:
        """Return one process's RunMetadata of the step, from the cache or from the process."""
        stored, key = self._stored.get((traced.message["id"], process_id)), (process_id, traced.records[process_id]["id"])
        if stored is not None:
            return await self.work(stored.raw)
        cached = self._fetched.get(key)
        if cached is not None:
            return await self.work(lambda: decompress(*cached, "a fetched trace") if cached[1] else b"")
        raw = await self._fetch(*key)
        packed = await self.work(lambda: compress(raw))
        self._fetched[key] = (packed, len(raw))
        while len(self._fetched) > 1 and sum(len(p) for p, _ in self._fetched.values()) > FETCHED_BYTES:
            self._fetched.popitem(last=False)
        return raw

    async def _fetch(self, process_id: str, trace_id: int) -> bytes:
        async with self._hub.connection(process_id).ask("fetch", trace=trace_id) as reply:
            return b"".join([part async for part in reply.parts()])

    def add_stored(self, trace_id: int, process_id: str, stored: StoredPayload) -> None:
        """Add a process's trace of a step, from the file of a saved job."""
        self._stored[trace_id, process_id] = stored

    def stored(self, trace_id: int, process_id: str) -> StoredPayload | None:
        """Return a process's trace of a step; None unless the job was opened from a file that has it."""
        return self._stored.get((trace_id, process_id))

    async def work(self, function: Callable[[], T]) -> T:
        """Run a function on the worker thread."""
        if self._workers is None:
            self._workers = WorkerThreads("tftracer-job", 1, NICE)
        return await asyncio.wrap_future(self._workers.submit(function))

    def close(self) -> None:
        if self._workers is not None:
            self._workers.stop()

    def _missing(self, traced: TracedStep) -> dict[str, str]:
        return {self._hub.title(process): why for process, why in traced.message["missing"].items()}


def _reasons(missing: dict[str, str]) -> str:
    return "".join(f" {title}: {why}" for title, why in sorted(missing.items())[:5])
