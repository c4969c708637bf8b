"""``Session``: the data of a session for scripts, opened by ``tftracer.open``. Needs no TensorFlow."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tftracer.contract.session import Run, SessionMessage, TraceRecord
from tftracer.contract.session import Session as Facts
from tftracer.display import markup
from tftracer.display.iframe import HEIGHT, Frame
from tftracer.engine.decoded_traces import DecodedTraces
from tftracer.errors import TracerError, UnknownError
from tftracer.export.tables import of_session
from tftracer.export.tables.of_trace import TracePart
from tftracer.export.tables.schema import OF_TRACES, TABLES
from tftracer.export.tables.table import Array, Part, Table
from tftracer.job.saved.processes import saved_job
from tftracer.scripting import notebook_display
from tftracer.scripting.compare import compare_sessions
from tftracer.scripting.download import downloaded, is_url
from tftracer.scripting.job import Job, Place, places
from tftracer.scripting.trace import SessionTrace
from tftracer.session.files.saved import SavedSession, open_session
from tftracer.session.process.launcher import process_title
from tftracer.session.steps.percentile_sketch import SketchedSteps
from tftracer.session.traces.other_traces import OtherTraces
from tftracer.storage.trace_payload import Loadable, TraceKey
from tftracer.trace.analyses.ops import By, check_grouping
from tftracer.trace.analyses.over_traces import OpTotals
from tftracer.trace.units import counted

if TYPE_CHECKING:
    from tftracer.comparison.comparison import Comparison
    from tftracer.trace.answers import Answers

#: Maximum number of decoded traces that a session caches; engine/decoded_traces.py limits their bytes.
KEPT_TRACES = 10_000


def open(path: str | os.PathLike[str], token: str | None = None, certificate: str | None = None) -> Session:
    """Open one session from a file or a URL. :func:`tftracer.scripting.open_path.open` also opens folders, and documents the
    errors."""
    name = os.fspath(path)
    if not is_url(name):
        return _opened(os.path.expanduser(name), name)  # noqa: PTH111 (Path drops the slashes of other names)
    with downloaded(name, token, certificate) as (path_of_copy, address):
        return _opened(path_of_copy, address)


def _opened(path: str, name: str) -> Session:
    source = open_session(path)
    saved = saved_job(path, source)
    if saved is None:
        return Session(source, name)
    job = Job(saved.processes, saved.steps)
    processes = [Session(process.session, name, place) for process, place in zip(job.processes, places(job))]
    opened = next((session for session in processes if session.source is source), None) or Session(source, name)
    opened._processes, opened.job_name = tuple(processes), saved.name
    return opened


class Session:
    """Everything that one process recorded, as tables of NumPy columns (``tftracer.Table``). Created by ``tftracer.open``.

    Traces are decoded when one of their tables is read, and the most recently used traces are cached. ``forget_traces`` frees
    them; ``close`` also closes the file. A session is a context manager.
    """

    #: The job's name, "" if there is none.
    job_name: str = ""

    def __init__(self, source: SavedSession, name: str, place: Place | None = None) -> None:
        self.source = source
        self.name = name
        self.place = place
        self._processes: tuple[Session, ...] = ()
        self._decoded = DecodedTraces(self._load, KEPT_TRACES)
        self._other_traces = OtherTraces(source, self._answers)
        self._checked: set[int] = set()  # ids of traces whose payloads were checked
        self._lock = threading.Lock()

    @property
    def processes(self) -> tuple[Session, ...]:
        """The sessions of all processes of a job, on one clock; only this session if there is no job."""
        return self._processes or (self,)  # not stored: a reference to itself would keep the session until a garbage collection

    # --------------------------------------------------------------------------------------------------- what it holds

    @property
    def facts(self) -> Facts:
        """Host, versions, command, times, and the cut or damaged parts of the file."""
        return self.source.session()

    @property
    def title(self) -> str:
        """The process's name in its job, such as ``rank 0``; without a job, a name from its launcher or process id."""
        if self.place is not None:
            return self.place.title
        facts = self.facts
        return process_title(facts["place"], facts["pid"]) if facts["pid"] else ""

    @property
    def rank(self) -> int:
        """The process's rank in its job; 0 if there is no job."""
        return self.place.rank if self.place is not None else self.facts["rank"] or 0

    def runs(self) -> Table:
        """Return the runs: title, steps, mean, percentiles."""
        return self._table("runs")

    def run(self, run: int | str | None = None) -> dict[str, Any]:
        """Return one run's row of ``runs()``, by its number or title; by default of the run that took the most time.

        Its times cover all its untraced steps. Raises ``UnknownError`` if there is no such run, or no run at all.
        """
        rows = [row for row in self.runs() if run in (None, row["title"], row["run_id"])]
        if not rows:
            titles = ", ".join(repr(title[:80]) for title in self.runs()["title"][:10])
            raise UnknownError(f"There is no run {run!r:.80} in {self.name}. The runs: {titles or 'none'}.")
        return max(rows, key=lambda row: (row["steps"] or 0) * (row["mean_ns"] or 0))

    def steps(self, run: int | str | None = None) -> Table:
        """Return the step times of one run, by its number or title, or of all runs.

        The newest 4,096 steps of a run have one row each. An older row stands for ``count`` steps: weight means by ``count``, and
        take the longest step from ``max_ns``. ``run()`` has statistics of all steps.
        """
        return self._table("steps", run=run)

    def traces(self) -> Table:
        """Return the traces, each with its step's budget."""
        return self._table("traces")

    def slices(self, trace: int | None = None) -> Table:
        """Return every execution of an op or kernel, of one trace or of all."""
        return self._table("slices", trace)

    def ops(self, by: By = "type", trace: int | None = None) -> Table:
        """Return op statistics for each trace, by ``type``, ``name`` (node) or ``scope``."""
        return self._table("ops", trace, by=by)

    def ops_over_traces(self, run: int | str | None = None, by: By = "type") -> Table:
        """Return op statistics over all traces of a run, given by its number or title, or of each run.

        The columns include mean, spread, shortest and longest time, and FLOP/s. Only the 10,000 ops with the largest totals of
        each trace count. Traces are decoded one after the other.
        """
        return self._table("ops_over_traces", run=run, by=by)

    def tensors(self, trace: int | None = None) -> Table:
        """Return the buffers of tensors: size, shape, times of allocation and release."""
        return self._table("tensors", trace)

    def transfers(self, trace: int | None = None) -> Table:
        """Return the tensors that one device sent to another."""
        return self._table("transfers", trace)

    def sentences(self, trace: int | None = None) -> Table:
        """Return the verdict's sentences about each trace."""
        return self._table("sentences", trace)

    def stalls(self) -> Table:
        """Return steps, and times between steps, that took far longer than usual: of each run the costliest and the newest."""
        return self._table("stalls")

    def ledger(self) -> Table:
        """Return the parts of the process's wall time, which add up to it."""
        return self._table("ledger")

    def input_stages(self) -> Table:
        """Return the stages of the ``tf.data`` pipelines, with the stage that limits each pipeline."""
        return self._table("input_stages")

    @property
    def growth_rate(self) -> float | None:
        """The growth of the process's memory at the end, in bytes per second; 0: no growth is proven; None: not known."""
        return self.source.memory_growth()["growth_rate"]

    def memory_growth(self) -> Table:
        """Return proven growths of the process's memory, newest first, and what grew."""
        return self._table("memory_growth")

    def findings(self) -> Table:
        """Return the findings about the traces: missing or doubtful data."""
        return self._table("findings")

    def run_messages(self) -> list[Run]:
        """Return the runs as in GET /api/session."""
        return self.source.runs()

    def sketched_steps(self, run: int | str) -> tuple[SketchedSteps, int]:
        """Return (sketches of a run's steps, the number of its last step).

        The sketches leave out traced steps and the steps right after them.
        """
        history = self.source.history(self._run(run)["id"])
        return history.sketched, history.last_step

    def trace_ids(self) -> list[int]:
        """Return the ids of all traces."""
        return [record["id"] for run in self.source.runs() for record in run["traces"]]

    def table(self, name: str, trace: int | None = None) -> Table:
        """Return a table by its name, as it is exported: ops are grouped by node name. ``trace``: only this trace's rows."""
        if name not in TABLES:
            raise UnknownError(f"There is no table {name!r}. There are {', '.join(TABLES)}.")
        return self._table(name, trace)

    def _table(self, name: str, trace: int | None = None, run: int | str | None = None, by: By = "name") -> Table:
        """Return a table; only rows of one trace or run, if given.

        ``by``: grouping of ops. Raises UnknownError for unknown numbers.
        """
        check_grouping(by)
        if trace is not None:
            self.source.trace_record(trace)
        if run is not None:
            self._run(run)
        return Table(name, lambda: self._parts(name, trace, run, by))

    def trace_rows(self, *tables: str, traces: Sequence[int] | None = None) -> Iterator[tuple[str, dict[str, Array]]]:
        """Yield (table, columns) of every trace, for tables whose rows belong to traces; by default all of these tables.

        Each trace is decoded once and not cached. ``traces``: only the traces with these ids.
        """
        for number in self.trace_ids() if traces is None else traces:
            for name in tables or OF_TRACES:
                yield from ((name, columns) for columns in self.table(name, number).parts())
            self._decoded.clear()

    def compare(self, *after: Session, before: Sequence[Session] = (), run: str | None = None) -> Comparison:
        """Compare this session, and ``before``, with the sessions ``after`` a change: step times with a 95% interval, and ops.

        ``run``: the title of the run to compare; by default the run that took the most time of those that all sessions have.
        Several sessions per side are needed to separate differences from chance. With one, the comparison names its assumption.
        """
        return compare_sessions([self, *before], after, run)

    # ------------------------------------------------------------------------------------------------------- notebooks

    def trace(self, number: int | None = None) -> SessionTrace:
        """Return one trace by its number (``trace_id``), by default the newest readable trace. A notebook shows its verdict.

        Raises ``UnknownError`` if there is no such trace, or no trace at all.
        """
        record = self._records(number)[0] if number is not None else self._newest()
        if record is None:
            raise UnknownError(f"{self.name} holds no trace. Trace a step on the page, or with trace_next().")
        return SessionTrace(
            record, self.source.run(record["run_id"]), self._message, lambda: self._answers(record["id"]), self._other_traces
        )

    def view(self, trace: int | None = None, height: int = HEIGHT) -> Frame:
        """Return the viewer of one trace, by default the newest, in a frame for a notebook (:meth:`SessionTrace.view`)."""
        return self.trace(trace).view(height)

    def _newest(self) -> TraceRecord | None:
        records = self._records()
        return max(records, key=lambda record: (record["state"] != "broken", record["started_at"], record["id"]), default=None)

    def _message(self) -> SessionMessage:
        return {"session": self.facts, "runs": self.source.runs()}

    def _repr_html_(self) -> str:
        """Show the runs and the newest trace's verdict in a notebook."""
        return markup.shown(f"Session {self.name}", self._as_html)

    def _as_html(self) -> str:
        newest = self.trace() if self._newest() else None
        return notebook_display.as_html(
            self.name, self.facts, self.source.runs(), [each.title for each in self.processes], newest
        )

    # --------------------------------------------------------------------------------------------------------- parts

    def _parts(self, name: str, trace: int | None, run: int | str | None, by: By) -> Iterator[Part]:
        trace_tables: dict[str, Callable[[TracePart], Part]] = {
            "slices": TracePart.slices,
            "ops": lambda part: part.ops(by),
            "tensors": TracePart.tensors,
            "transfers": TracePart.transfers,
            "sentences": TracePart.sentences,
        }
        if name in trace_tables:
            return map(trace_tables[name], self._parts_of(self._records(trace)))
        runs = [self._run(run)] if run is not None else self.source.runs()
        other_tables: dict[str, Callable[[], Iterable[Part]]] = {
            "session": lambda: [self._session_part()],
            "runs": lambda: [of_session.runs_part(runs)],
            "steps": lambda: map(self._steps_part, runs),
            "traces": lambda: (of_session.trace_part(record, partial(self._facts_of, record)) for record in self._records(trace)),
            "findings": lambda: map(of_session.findings_part, self._records(trace)),
            "stalls": lambda: [of_session.stalls_part(self.source.all_stalls()["stalls"])],
            "ledger": lambda: [of_session.ledger_part(self.source.ledger())],
            "input_stages": lambda: [of_session.input_stages_part(self.source.input_pipelines())],
            "memory_growth": lambda: [of_session.memory_growth_part(self.source.memory_growth())],
            "ops_over_traces": lambda: (of_session.ops_over_traces_part(each["id"], self._op_totals(each, by)) for each in runs),
        }
        return iter(other_tables[name]())

    def _session_part(self) -> Part:
        self._records()  # finds damage, which the row includes
        clock = self.place.job.clocks.of(self.place.title) if self.place else None
        offset, error = (round(clock.offset_ns), round(2 * clock.sigma_ns)) if clock else (None, None)
        return of_session.session_part(self.facts, self.title, offset, error)

    def _steps_part(self, run: Run) -> Part:
        history = self.source.history(run["id"])
        return of_session.steps_part(run["id"], history.entries(), history.traced)

    def _facts_of(self, record: TraceRecord) -> dict[str, Any]:
        part = next(self._parts_of([record]), None)
        return part.facts() if part else {"source": ""}

    def _parts_of(self, records: Iterable[TraceRecord]) -> Iterator[TracePart]:
        """Yield the tables of the readable traces. Records of others are marked as broken, with the reason in their findings."""
        for record in records:
            if record["state"] == "broken":
                continue
            align = partial(self.place.job.clocks.aligned, self.place.title) if self.place else None
            try:
                part = TracePart(record, self._answers(record["id"]), align, partial(self._other_traces.of, record["id"]))
            except TracerError as error:
                self.source.set_broken(record["id"], error)
            else:
                yield part

    def _load(self, trace: TraceKey) -> Loadable:
        return Loadable(partial(self.source.trace_bytes, trace.id), self.source.trace_context(trace.id))

    def _answers(self, trace: int) -> Answers:
        """Return the answers of a trace. Raises FormatError for invalid bytes, HelperError if memory runs out."""
        return self._decoded.use(TraceKey.of("", self.source.trace_record(trace)), _decoded)

    def _op_totals(self, run: Run, by: By) -> list[OpTotals]:
        records = (record for trace in run["traces"] for record in self._records(trace["id"]))
        return [OpTotals(**part.answers.op_totals(by, with_flops=True)) for part in self._parts_of(records)]

    def _records(self, trace: int | None = None) -> list[TraceRecord]:
        """Return the records of all traces, or of one trace. Traces whose analysis is not in the file are analyzed first."""
        numbers = self.trace_ids() if trace is None else [trace]
        with self._lock:
            unchecked = [number for number in numbers if number not in self._checked]
            self.source.check_payloads(unchecked)
            self.source.analyze_pending(unchecked)
            self._checked.update(unchecked)
        return [self.source.trace_record(number) for number in numbers]

    def _run(self, run: int | str) -> Run:
        if isinstance(run, str):
            matching = [each for each in self.source.runs() if each["title"] == run]
            if not matching:
                titles = ", ".join(repr(each["title"][:80]) for each in self.source.runs()[:10])
                raise UnknownError(f"There is no run {run[:80]!r}. The runs: {titles or 'none'}.")
            return matching[0]
        return self.source.run(run)

    # --------------------------------------------------------------------------------------------------------- closing

    def forget_traces(self) -> None:
        """Free the decoded traces of all processes; tables that are read later decode them again."""
        for process in {self, *self.processes}:
            process._decoded.clear()

    def close(self) -> None:
        """Close the file and free the decoded traces."""
        self.forget_traces()
        self.source.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        runs = self.source.runs()
        traces = sum(len(run["traces"]) for run in runs)
        parts = counted(len(runs), "run"), counted(traces, "trace"), counted(len(self.processes), "process", "processes")
        return f"<Session {self.name}: {', '.join(parts)}>"


def _decoded(answers: Answers) -> Answers:
    _ = answers.trace  # decodes it, so that errors are raised here
    return answers
