"""The thread ``tftracer-traces``: compresses and stores the traces that were counted. It waits only for the disk."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tftracer.capture.recorded_steps import Capture
from tftracer.capture.steps.queue import StepQueue
from tftracer.contract.ledger import Ledger
from tftracer.contract.machine import GpuDevice
from tftracer.contract.session import TraceRecord
from tftracer.input_pipelines.answer import what_limits
from tftracer.ledger.largest_part_beside_steps import BesideSteps, beside_steps
from tftracer.session.files import records
from tftracer.session.files.reading import read_trace_record
from tftracer.session.problems import Guard
from tftracer.session.process.gpu_profiling import gpu_devices, gpu_facts
from tftracer.session.steps.near_step import near_step
from tftracer.session.steps.statistics import BetweenSteps, LiveRun
from tftracer.session.store import SessionStore
from tftracer.session.traces.steps_without_trace import MissingTraces
from tftracer.session.writer.summaries import REQUESTED_DELAY_S, TraceSummaries
from tftracer.storage.tftrace_format import compress
from tftracer.storage.trace_payload import TraceKey
from tftracer.trace.model import GpuFacts, TraceContext


class CountedTrace(NamedTuple):
    """A traced step that was counted but is not stored yet."""

    run: LiveRun
    capture: Capture
    step: int
    started_at: float
    duration_s: float
    median_s: float | None
    between_steps: BetweenSteps  # medians
    before_step: BetweenSteps


Job = Callable[[], object]
#: The time outside the steps is computed again only after this many seconds, because a session may have a thousand runs.
LEDGER_S = 2.0


class TraceWriter:
    def __init__(
        self, steps: StepQueue, store: SessionStore, summaries: TraceSummaries, missing: MissingTraces, communication_ops: str
    ) -> None:
        self._backlog = steps.backlog
        self._guard = Guard(store.problems, steps.failed)
        self._store = store
        self._summaries = summaries
        self._missing = missing
        self._communication_ops = communication_ops
        self._jobs: queue.SimpleQueue[CountedTrace | Job | None] = queue.SimpleQueue()
        self._gpu: dict[str, GpuFacts] = {}  # by trace level
        self._ledger: Ledger | None = None  # its message
        self._ledger_at = -LEDGER_S  # time.monotonic
        self._gpu_devices: list[GpuDevice] | None = None  # None: not known yet
        self.thread = threading.Thread(target=self._guard.run_thread, args=[self._run], name="tftracer-traces", daemon=True)

    def put(self, job: CountedTrace | Job | None) -> None:
        """Store a trace, or run a job, after everything that was put before. None ends the thread."""
        self._jobs.put(job)

    # ---------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            if isinstance(job, CountedTrace):
                self._store_guarded(job)
            else:
                self._guard.run(job)

    def _store_guarded(self, trace: CountedTrace) -> None:
        try:
            self._store_trace(trace)
        except Exception as error:
            self._missing.add(trace.run.handle.title, trace.step, "storing failed")
            self._store.problems.add("trace", f"A trace could not be stored ({error}). Training goes on.")
        finally:
            self._backlog.remove(trace.capture)

    def _store_trace(self, trace: CountedTrace) -> None:
        raw = trace.capture.read()
        if not raw:
            self._store.problems.add("empty_trace", trace.capture.problem)
            return
        stored, context = compress(raw), self._context(trace)
        record = self._record(trace, len(raw), len(stored))
        key = TraceKey.of(self._store.session()["id"], record)
        self._store.write_definition(trace.run)
        self._store.add_new_trace(record, context, records.trace_record(record, context, stored, len(raw)))
        self._summaries.announce(key, REQUESTED_DELAY_S if trace.capture.asked_by == "user" else 0.0)

    def _record(self, trace: CountedTrace, size: int, stored: int) -> TraceRecord:
        return {
            **read_trace_record({}),
            "id": self._store.next_trace_id(),
            "run_id": trace.run.handle.run_id,
            "step": trace.step,
            "started_at": trace.started_at,
            "duration_s": trace.duration_s,
            "median_s": trace.median_s,
            "bytes": size,
            "stored_bytes": stored,
            "asked_by": trace.capture.asked_by,
            "note": trace.capture.note,
        }

    def _context(self, trace: CountedTrace) -> TraceContext:
        capture, handle = trace.capture, trace.run.handle
        with self._store.lock:
            other_traces = self._store.model.of_other_traces(handle.run_id, trace.step)
            near = near_step(trace.run.statistics.history, trace.step)
            input_text, input_advice = what_limits(self._store.model.input_pipelines, time.time())
            beside = self._beside_steps(handle.title)
        return TraceContext(
            step=trace.step,
            step_s=trace.duration_s,
            median_s=trace.median_s,
            between_steps_s=trace.between_steps.outside_s,
            between_input_s=trace.between_steps.input_s,
            before_step_s=trace.before_step.outside_s,
            before_input_s=trace.before_step.input_s,
            input_text=input_text,
            input_advice=input_advice,
            **(beside._asdict() if beside else {}),
            feeds=len(handle.feeds),
            fed=capture.fed,
            began_at=capture.began_at,
            retraced=handle.changed,
            **other_traces,
            **near,
            gpus=capture.facts.gpus,
            trace_level=capture.trace_level,
            gpu_facts=self._gpu_facts(capture.trace_level),
            gpu_devices=self._devices(capture),
            measured_roof=self._store.session()["measured_roof"],
            cpu_use=capture.read_cpu_use(),
            partition_graphs_asked=capture.partition_graphs_asked,
            distributed=capture.facts.distributed,
            communication_ops=self._communication_ops,
            rank=self._store.session()["rank"],
            title=handle.title,
        )

    def _beside_steps(self, title: str) -> BesideSteps | None:
        """Return what the training did outside the run's usual steps so far; None if nothing is known.

        The ledger is computed again after LEDGER_S.
        """
        with contextlib.suppress(Exception):
            now = time.monotonic()
            if now - self._ledger_at >= LEDGER_S:
                self._ledger, self._ledger_at = None, now
                self._ledger = self._store.model.ledger_message()
            return beside_steps(self._ledger, title) if self._ledger else None
        return None

    def _gpu_facts(self, trace_level: str) -> GpuFacts:
        """Return the GPU facts, read after the first trace of the level: the first FULL_TRACE loads the profiling library."""
        if trace_level not in self._gpu:
            self._gpu[trace_level] = gpu_facts()
        return self._gpu[trace_level]

    def _devices(self, capture: Capture) -> list[GpuDevice]:
        """Return the GPUs, once TensorFlow uses its devices: its session has GPUs, or a compiled function ran."""
        if self._gpu_devices is None and (capture.facts.gpus or capture.trace_level == "profile"):
            self._gpu_devices = gpu_devices()
            if self._gpu_devices:
                self._store.set_facts(gpu_devices=self._gpu_devices)
        return self._gpu_devices or []
