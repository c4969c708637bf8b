"""What the web layer, the command line and the exports see of a session, live or reopened. No HTTP in here.

Every method may be called from any thread. ``UnknownError`` for a run or trace that does not exist, ``StorageError`` and
``FormatError`` as they say.
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
        """Where the process's wall time went; of a live session as of the last second."""

    def input_pipelines(self) -> InputPipelines:
        """What limits the ``tf.data`` pipelines; of a live session as of the last second."""

    def memory_growth(self) -> ProcessMemory:
        """What the process holds over time, and what grows; of a live session as of the last second."""

    def run_stalls(self, run_id: int) -> RunStalls: ...

    def all_stalls(self) -> StallList: ...

    def stall(self, stall_id: int) -> StallDetail: ...

    def gaps(self, run_id: int) -> GapProfile: ...

    def sample_gaps(self, run_id: int) -> None:
        """Sample the time between the steps for the next 20 s. ``UnsupportedError`` where no training runs."""

    def trace_record(self, trace_id: int) -> TraceRecord: ...

    def trace_context(self, trace_id: int) -> TraceContext: ...

    def trace_bytes(self, trace_id: int) -> bytes:
        """The serialized RunMetadata, as TensorFlow gave it."""

    def set_note(self, trace_id: int, note: str) -> TraceRecord: ...

    def set_bookmarks(self, trace_id: int, bookmarks: list[Bookmark]) -> TraceRecord:
        """Replaces the trace's bookmarks."""

    def set_headline(self, trace_id: int, headline: str) -> None: ...

    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False) -> None:
        """Trace the next ``steps`` steps of a run (None: of whichever runs next); 0 takes the request back.

        ``with_graph``: of one run; its next step collects the graph that it runs as, and is not traced.
        ``UnsupportedError`` on a reopened session, where there is no training to trace, and where no graph can be collected.
        """

    def set_trace_all(self, on: bool) -> None: ...

    def save(self, path: str) -> None:
        """Write everything to one .tftrace file, in the place of an older one: atomically (temporary file, fsync, rename)."""

    def saved_bytes(self) -> Iterator[bytes]:
        """The same file as a stream, in chunks; memory for one record at a time."""

    def load(self, path: str, name: str = "") -> Loaded:
        """Add what a session file (or anything that tftracer opens) holds to this session.

        ``name``: how the file is called for people, its base name if left out; the runs' ``origin``.
        """

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Returns a function that ends the subscription."""

    def close(self) -> None: ...


class JobSource(SessionSource, Protocol):
    """``recorder.Recorder`` is one. Every method may be called from any thread."""

    def steps_begun(self) -> dict[str, int]:
        """Title of each run -> how many of its steps have begun."""

    def request_trace_at(self, run_title: str, step: int) -> bool:
        """Trace the run's step of that number; False if it has begun already."""

    def take_back_traces_at(self) -> None:
        """Forget all requests of ``request_trace_at``."""

    def add_problem(self, code: str, message: str) -> None: ...

    def solved(self, code: str) -> None: ...
