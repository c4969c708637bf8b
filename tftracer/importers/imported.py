"""The content of another tool's file, before it becomes a session.

``open_any`` returns an ``Imported``, from which session/files/imported.py builds a session. Each trace is a serialized
RunMetadata or XSpace, built by the importer if the format has neither. ``findings`` say what the format lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tftracer.contract.basics import Finding

#: Maximum number of traces in a file.
MAX_TRACES = 100_000


@dataclass
class ImportedTrace:
    """One traced step."""

    raw: bytes  # serialized RunMetadata or XSpace
    title: str = ""
    step: int = 0  # the run's step number, from 1; 0: not known
    started_at: float | None = None  # epoch seconds
    duration_s: float | None = None  # wall time of the session.run
    findings: list[Finding] = field(default_factory=list)
    is_whole_file: bool = False  # whether ``raw`` is the unchanged content of the file


@dataclass
class ImportedRun:
    """One run. A file with a single trace has one run, too."""

    title: str
    fetches: list[str] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    options: str = ""
    steps: int = 0
    mean_s: float | None = None
    first_run_at: float | None = None
    last_run_at: float | None = None
    traces: list[ImportedTrace] = field(default_factory=list)


@dataclass
class Imported:
    """A whole file."""

    kind: str  # the format as users see it: "tensorflow-tracer session", "RunMetadata", "Timeline JSON"
    runs: list[ImportedRun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)  # findings about the file as a whole
    cut: str = ""  # what is missing because the file ends early or is damaged, in sentences; "" if it is complete


def imported_traces(kind: str, traces: list[bytes]) -> Imported:
    """Return one run with these serialized RunMetadata."""
    return Imported(kind, [ImportedRun("Run metadata", traces=[ImportedTrace(raw) for raw in traces])])
