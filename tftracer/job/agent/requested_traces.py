"""Traces steps for the job, from the hub's request to the stored trace. Runs on the agent's loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tftracer.contract.live import LiveMessage
from tftracer.contract.session import Run, TraceRecord
from tftracer.job.wire.protocol import Message, number, text
from tftracer.session.live import Recorder
from tftracer.session.model import is_analyzed
from tftracer.session.process.launcher import tf_config
from tftracer.session.steps.statistics import total_s

#: A step that passed this long ago without a trace is given up.
MISSED_AFTER_S = 30.0
#: If no trace with the step's number has come after this time, a trace with a lower number may be taken.
LOWER_NUMBER_AFTER_S = 2.0
#: The number of latest traces that are remembered, to recognize updates of known traces.
MAX_SEEN = 1000


@dataclass
class WatchedStep:
    """One step of one run that the hub wants traced."""

    job_trace: int
    run_title: str
    step: int
    uncounted: int  # steps that had finished but that the session had not counted at the time of the request
    lower_numbered: int = 0  # id of a trace of this run with a slightly lower number, which may be this step's
    passed_at: float | None = None
    summed_up: bool = False  # whether the trace's summary was sent to the hub


class StepWatch:
    """Watches for the traces of the steps that the hub wants traced. ``post`` sends a message to the hub."""

    def __init__(self, source: Recorder, post: Callable[..., None]) -> None:
        self._source = source
        self._post = post
        self._watched: dict[int, WatchedStep] = {}  # by the id of the job's trace
        self._seen: OrderedDict[int, WatchedStep | None] = OrderedDict()  # trace id -> the step whose trace it is

    def subscribe(self) -> Callable[[], None]:
        """Follow the session's traces from now on; return a function that stops it."""
        loop = asyncio.get_running_loop()

        def stored(message: LiveMessage) -> None:  # called on the thread that stored the trace
            if message["type"] == "trace":
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(self._stored, message["payload"])

        return self._source.subscribe(stored)

    def handle(self, message: Message) -> None:
        """Handle ``prepare``, ``trace`` or ``take_back``."""
        kind, job_trace = message["t"], number(message, "job_trace")
        if kind == "prepare":
            self._prepare(job_trace, text(message, "run_title"))
        elif kind == "trace":
            self._trace(job_trace, text(message, "run_title"), number(message, "step"))
        elif self._watched.pop(job_trace, None) is not None:
            self._source.cancel_step_requests()
            for watched in self._watched.values():
                self._source.request_trace_at(watched.run_title, watched.step)

    def _prepare(self, job_trace: int, title: str) -> None:
        """Report how many steps of the run have finished. Without a title, use the run that takes most of this process's time."""
        finished, runs = self._source.finished_steps(), self._source.runs()
        candidates = [run for run in runs if run["title"] in finished and (not title or run["title"] == title)]
        run = max(candidates, key=total_s, default=None)
        self._post(
            "steps",
            job_trace=job_trace,
            run_title=run["title"] if run else "",
            begun=finished[run["title"]] if run else 0,
            steps_per_s=steps_per_s(run) if run else None,
            servers="ps" if "ps" in tf_config(os.environ)[0] else "",
        )

    def _trace(self, job_trace: int, title: str, step: int) -> None:
        runs = self._source.runs()
        uncounted = uncounted_steps(title, runs, self._source.finished_steps())
        self._watched[job_trace] = WatchedStep(job_trace, title, step, uncounted)
        if self._source.request_trace_at(title, step):
            self._post("armed", job_trace=job_trace)
        else:
            del self._watched[job_trace]
            self._post("late", job_trace=job_trace)

    def _stored(self, record: TraceRecord) -> None:
        """Report a trace to the hub when it is stored, and again when its summary is known."""
        if record["id"] in self._seen:
            watched = self._seen[record["id"]]
            if watched is not None and is_analyzed(record) and not watched.summed_up:
                self._send_record(watched, record)
            return
        self._seen[record["id"]] = None
        while len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        title = next((run["title"] for run in self._source.runs() if run["id"] == record["run_id"]), None)
        for watched in list(self._watched.values()):
            if title == watched.run_title and record["asked_by"] == "user":
                self._match(watched, record)

    def _match(self, watched: WatchedStep, record: TraceRecord) -> None:
        """Check whether a trace is that of the watched step.

        A lower number may mean an earlier step, which the user traced. But it may be the same step: numbers differ if some of the
        run's steps had other options.
        """
        if record["step"] is None:
            return
        if record["step"] == watched.step:
            self._assign_trace(watched, record)
        elif watched.step - watched.uncounted - 1 <= record["step"] < watched.step:
            watched.lower_numbered = record["id"]

    def _assign_trace(self, watched: WatchedStep, record: TraceRecord) -> None:
        del self._watched[watched.job_trace]
        self._seen[record["id"]] = watched
        self._send_record(watched, record)

    def _send_record(self, watched: WatchedStep, record: TraceRecord) -> None:
        watched.summed_up = is_analyzed(record)
        plain = json.loads(json.dumps(record))  # a record may hold subclasses of str and int, which msgpack does not take
        self._post("traced", job_trace=watched.job_trace, step=watched.step, record=plain)

    def check(self, runs: list[Run]) -> None:
        """Give up steps that passed without a trace, for example because the disk was full."""
        finished, now = self._source.finished_steps(), time.monotonic()
        for watched in list(self._watched.values()):
            if finished.get(watched.run_title, 0) < watched.step:
                continue
            watched.passed_at = watched.passed_at or now
            record = _lower_numbered(watched, runs, finished) if now - watched.passed_at > LOWER_NUMBER_AFTER_S else None
            if record is not None:
                self._assign_trace(watched, record)
            elif now - watched.passed_at > MISSED_AFTER_S:
                del self._watched[watched.job_trace]
                self._post("missed", job_trace=watched.job_trace, step=watched.step, why="Its step passed without a trace.")


def uncounted_steps(title: str, runs: list[Run], finished: dict[str, int]) -> int:
    """Return the number of finished steps of a run that the session has not counted, or has counted for another run.

    ``runs`` must not be newer than ``finished``.
    """
    return max(0, finished.get(title, 0) - sum(run["steps"] for run in runs if run["title"] == title))


def _lower_numbered(watched: WatchedStep, runs: list[Run], finished: dict[str, int]) -> TraceRecord | None:
    """Return the trace with a lower number, if the difference is at most the number of uncounted steps."""
    traces = (trace for run in runs for trace in run["traces"] if trace["id"] == watched.lower_numbered)
    lowest = watched.step - uncounted_steps(watched.run_title, runs, finished)
    return next((trace for trace in traces if (trace["step"] or 0) >= lowest), None)


def steps_per_s(run: Run) -> float | None:
    """Return the steps per second of an active run, from its median step and the median pause between steps."""
    pause_s: Any = run["between_steps_s"] or 0.0
    step_s = (run["p50_s"] or run["mean_s"] or 0.0) + pause_s
    return 1.0 / step_s if step_s > 0 else None
