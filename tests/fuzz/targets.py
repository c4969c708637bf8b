"""The readers that strangers' bytes reach: functions of bytes that return, or raise one of the errors of the package. Sessions
that they return are asked every question.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import msgpack

from fuzz.questions import ask_all, ask_some
from tftracer.errors import TracerError
from tftracer.importers import legacy_pickles, open_any, tfevents, timeline_json
from tftracer.importers import run_metadata as run_metadata_files
from tftracer.importers.imported import Imported, ImportedRun, ImportedTrace
from tftracer.session.files.imported import model_of
from tftracer.session.files.reading import read_model
from tftracer.session.files.saved import SavedSession
from tftracer.storage import tftrace_format as session_file
from tftracer.storage.tftrace_reader import Reader

DATA = Path(__file__).parent.parent / "data"
#: What once broke a reader: what is refused now, and what can be read.
FOUND = [path for folder in ("invalid", "odd") for path in sorted((DATA / folder).glob("*.bin"))]


class InMemory:
    """A session file's bytes, as file.Reader wants them."""

    name = "memory"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]

    def length(self) -> int:
        return len(self._data)

    def close(self) -> None:
        pass


def any_file(data: bytes) -> SavedSession:
    return SavedSession(model_of(open_any.open_bytes(data)))


def pickle(data: bytes) -> None:
    legacy_pickles.read(data)


def json(data: bytes) -> None:
    timeline_json.read(data.decode("utf-8", "replace"))


def events(data: bytes) -> None:
    tfevents.read(data)


def text(data: bytes) -> None:
    run_metadata_files.from_text(data.decode("utf-8", "replace"))


def session(data: bytes) -> SavedSession:
    return SavedSession(read_model(Reader(InMemory(data)), "memory"))


def trace(data: bytes) -> SavedSession:
    """RunMetadata, with a cost graph or without, or a profile."""
    return SavedSession(model_of(Imported("a trace", [ImportedRun("a trace", traces=[ImportedTrace(data)])])))


def context(data: bytes) -> SavedSession:
    """The texts that a session's records carry, a line each: the file's checksums let no changed bytes reach them."""
    lines = data.decode("utf-8", "replace").split("\n")
    return session(session_of(dict(zip(CONTEXT, lines))))


#: Texts of a trace's context, as a session file has them.
CONTEXT = ("communication_ops", "device_pattern", "cupti", "trace_level", "title")


#: Of a slow step: two samples of one line.
FRAME = {"file": "train.py", "line": 1, "function": "main", "kind": "script"}
STACKS = bytes(msgpack.packb({"frames": [FRAME], "parent": [-1, 0], "frame": [0, 0], "seconds": [0.0, 0.1], "samples": [0, 2]}))


def session_of(texts: dict[str, str]) -> bytes:
    """A small session with one trace."""
    step = (DATA / "foreign" / "step.pb").read_bytes()
    run = {"id": 1, "title": texts.get("title", "train_op"), "fetches": ["train_op"]}
    records = [
        session_file.record("run", run),
        session_file.record("stall", {"id": 1, "run_id": 1, "step": 3, "text": texts.get("title", "")}, STACKS),
        session_file.record("period", {"run_id": 1, "every": 97, "times": 3, "next_step": 100}),
        session_file.record("marks", {"marks": [{"kind": "gc", "at": 1.0, "duration_s": 0.1}]}),
        session_file.record("trace", {"id": 1, "run_id": 1, "step": 3, "context": texts}, step),
    ]
    return session_file.header() + b"".join(records)


TARGETS: dict[str, Callable[[bytes], SavedSession | None]] = {
    "pickle": pickle,
    "events": events,
    "json": json,
    "text": text,
    "session": session,
    "context": context,
    "run_metadata": trace,
    "cost_graph": trace,
    "profile": trace,
    "any_file": any_file,
}


#: Of these, the values in the message are changed, and its lengths stay right: most such files can be read.
PROTOBUF = ("run_metadata", "cost_graph", "profile")
#: These return sessions, which are asked.
ASKED = (*PROTOBUF, "session", "context", "any_file")

#: Patterns at which a matcher that backtracks never ends, and one of each thing that a pattern may hold.
PATTERNS = ["(a+)+$", "(a|a)*b", "(.*a){20}", "(.*.*.*=)*$", "^(?:Mat|[^A-Z_]*?)Mul\\b", "(?i)[a-f]{2,9}|\\w+\\.$", "(\\w*)*!$"]


PROFILES = [
    "control_flow_tf2.21.xplane.pb.xz",
    "partitioned_tf2.21.xplane.pb.xz",
    "eager_tf2.21.xplane.pb",
    "retraced_tf2.21.xplane.pb.gz",
    "slow_map_tf2.21.xplane.pb.gz",
    "two_threads_tf2.21.xplane.pb.xz",
    "gpu_v100_excerpt.xplane.pb.gz",
]


def seeds(name: str) -> list[bytes]:
    """Small real files of the format, to begin with."""
    paths: dict[str, list[Path]] = {
        "pickle": sorted((DATA / "legacy").glob("*.pickle")),
        "events": [DATA / "foreign" / "events.out.tfevents.small"],
        "json": sorted((DATA / "foreign").glob("timeline-*.json")),
        "text": [DATA / "foreign" / "step.pbtxt"],
        "run_metadata": [DATA / "foreign" / "step.pb", DATA / "conv_tf2.12_cpu.pb"],
        "cost_graph": [DATA / "conv_costgraph_tf2.21_cpu.pb"],
        "any_file": [*sorted((DATA / "foreign").glob("step.*")), *FOUND],
    }
    if name == "session":
        return [session_of({"communication_ops": "MatMul|Exchange"})]
    if name == "context":
        return [f"{pattern}\n{pattern}\nno libcupti\nFULL_TRACE\ntrain".encode() for pattern in PATTERNS]
    if name == "profile":
        return [read(DATA / "xspace" / profile) for profile in PROFILES]
    return [path.read_bytes() for path in paths[name]]


def read(path: Path) -> bytes:
    return {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)(path.read_bytes())


def one_input(name: str, data: bytes, one_in: int = 1) -> None:
    """Anything but a return or a TracerError with a message is a finding.

    one_in: one of so many questions is asked, the same ones of the same input.
    """
    try:
        source = TARGETS[name](data)
        if source is not None and one_in > 1:
            ask_some(source, one_in, zlib.crc32(data))
        elif source is not None:
            ask_all(source)
    except TracerError as error:
        if len(str(error)) < 10:
            raise AssertionError("an error that says nothing") from error
