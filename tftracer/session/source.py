"""The interface of a session, live or reopened, for the web layer, the command line and the exports. Knows no HTTP.

Every method may be called from any thread. The methods raise ``UnknownError`` for a run or trace that does not exist,
``StorageError`` if a file cannot be read or written, and ``FormatError`` if its content is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Bookmark, Loaded, Run, Session, StepTimes, TraceRecord
from tftracer.contract.stalls import GapProfile, RunStalls, StallDetail, StallList
from tftracer.session.publisher import Listener
from tftracer.trace.model import TraceContext


class SessionSource(Protocol):
    """A session. ``session/live.py`` is the live one, ``session/files/saved.py`` the reopened one."""

    def session(self) -> Session: ...

    def runs(self) -> list[Run]: ...

    def run(self, run_id: int) -> Run: ...

    def step_times(self, run_id: int) -> StepTimes: ...

    def ledger(self) -> Ledger:
        """Return where the process's wall time went. A live session updates it every second."""

    def input_pipelines(self) -> InputPipelines:
        """Return what limits the ``tf.data`` pipelines. A live session updates it every second."""

    def memory_growth(self) -> ProcessMemory:
        """Return the process's memory over time, and what grows. A live session updates it every second."""

    def run_stalls(self, run_id: int) -> RunStalls: ...

    def all_stalls(self) -> StallList: ...

    def stall(self, stall_id: int) -> StallDetail: ...

    def gaps(self, run_id: int) -> GapProfile: ...

    def sample_gaps(self, run_id: int) -> None:
        """Sample the time between the steps for the next 20 s. Raises ``UnsupportedError`` if no training runs."""

    def trace_record(self, trace_id: int) -> TraceRecord: ...

    def trace_context(self, trace_id: int) -> TraceContext: ...

    def trace_bytes(self, trace_id: int) -> bytes:
        """Return the serialized RunMetadata as TensorFlow returned it."""

    def set_note(self, trace_id: int, note: str) -> TraceRecord: ...

    def set_bookmarks(self, trace_id: int, bookmarks: list[Bookmark]) -> TraceRecord:
        """Replace the trace's bookmarks."""

    def set_headline(self, trace_id: int, headline: str) -> None: ...

    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False) -> None:
        """Trace the next ``steps`` steps of a run (None: of any run); 0 cancels the request.

        ``with_graph``: the run's next step is not traced; it collects the optimized graph of the run's function.
        Raises ``UnsupportedError`` for a reopened session, which has no training to trace, and if no graph can be collected.
        """

    def set_trace_all(self, on: bool) -> None: ...

    def save(self, path: str) -> None:
        """Write everything to one .tftrace file. An older file is replaced atomically (temporary file, fsync, rename)."""

    def saved_bytes(self) -> Iterator[bytes]:
        """Return the same file as a stream of chunks. Needs memory for only one record at a time."""

    def load(self, path: str, name: str = "") -> Loaded:
        """Add the contents of a session file, or of any other file that tftracer opens, to this session.

        ``name``: the file's name as users see it (default: its base name). It becomes the runs' ``origin``.
        """

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with each change from now on. Return a function that ends this."""

    def close(self) -> None: ...


class JobSource(SessionSource, Protocol):
    """A live session that is part of a job, such as ``recorder.Recorder``. Every method may be called from any thread."""

    def finished_steps(self) -> dict[str, int]:
        """Return run title -> number of its steps so far; the next one may be under way."""

    def request_trace_at(self, run_title: str, step: int) -> bool:
        """Trace the run's step with this number. Return False if it has begun already."""

    def cancel_traces_at(self) -> None:
        """Cancel all requests of ``request_trace_at``."""

    def add_problem(self, code: str, message: str) -> None: ...

    def solved(self, code: str) -> None: ...
