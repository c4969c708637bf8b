"""Sessions and RunMetadata pickled by tensorflow-tracer 1.1.0 and tfvis, read by ``safe_pickle``, which executes nothing."""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from tftracer.errors import FormatError
from tftracer.importers.imported import MAX_TRACES, Imported, ImportedRun, ImportedTrace, imported_traces
from tftracer.importers.safe_pickle import DATETIME, MAX_KEY, ORDERED_DICT, RUN_METADATA, SOURCE, TIMEDELTA, PickleReader, Stub

_MAX_NAMES = 1000


def looks_like_pickle(head: bytes) -> bool:
    """Return whether the file may be a pickle: protocols from 2 on begin with PROTO, older protocols with the name of a class."""
    return (head[:1] == b"\x80" and len(head) > 1 and head[1] <= 5) or head.startswith((b"ctensorflow.", b"ccopy", b"ctftracer."))


def read(data: bytes) -> Imported:
    """Read a session of tensorflow-tracer, or a RunMetadata or a list of them, as pickled by the ``Timeline`` of
    tensorflow-tracer or tfvis.

    Raises UnsafePickleError if the pickle names any other class, FormatError if it is damaged.
    """
    value = PickleReader(data).load()
    if isinstance(value, Stub) and value.path == RUN_METADATA:
        return _from_list([value])
    if isinstance(value, (list, tuple)) and value and all(isinstance(entry, Stub) for entry in value):
        return _from_list(value)
    if isinstance(value, Stub) and value.path == SOURCE and isinstance(value.state, dict):
        return Imported("tensorflow-tracer session", _merged(_Session(value.state).runs()))
    raise FormatError("the pickle holds neither a tensorflow-tracer session nor a RunMetadata, nor a list of RunMetadata")


def _from_list(values: Sequence[Any]) -> Imported:
    """Read RunMetadata that a script collected, one per step. Several references to the same RunMetadata count once."""
    if len(values) > MAX_TRACES:
        raise FormatError(f"the pickle holds more than {MAX_TRACES} traces")
    distinct = {id(value): value for value in values}
    return imported_traces("RunMetadata pickle", [_serialized(value) for value in distinct.values()])


def pickled(raw: bytes) -> bytes:
    """Pickle a serialized RunMetadata as TensorFlow would (protocol 4). Needs no TensorFlow.

    ``pickle.load`` can read it if TensorFlow is installed; the original tensorflow-tracer and ``read`` can, too.
    """
    name = RUN_METADATA.rpartition(".")
    parts = [b"\x80\x04"]
    parts += [b"\x8c" + bytes([len(text)]) + text.encode() for text in (name[0], name[2])]
    parts += [b"\x93)\x81}\x8c\x0aserialized", b"\x8e" + struct.pack("<Q", len(raw)), raw, b"sb."]
    return b"".join(parts)


def _serialized(stub: Any) -> bytes:
    if not isinstance(stub, Stub) or stub.path != RUN_METADATA:
        raise FormatError("a trace of the session is not a RunMetadata")
    if stub.state is None:
        return b""
    raw = stub.state.get("serialized", stub.state.get(b"serialized"))
    if isinstance(raw, str):  # Python 2 wrote bytes as text
        raw = raw.encode("latin1", "replace")
    if not isinstance(raw, bytes):
        raise FormatError("a RunMetadata in the pickle has no serialized bytes")
    return raw


def _dict(value: Any) -> dict[Any, Any]:
    if isinstance(value, Stub) and value.path == ORDERED_DICT:
        return value.items
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _index(value: Any) -> int:
    return int(value) if isinstance(value, int) and 0 <= value < MAX_KEY else -1


class _Session:
    """A pickled TracingSource. Values may occur several times (pickle's memo); each is converted once."""

    def __init__(self, state: dict[Any, Any]) -> None:
        self._state = state
        self._names_of: dict[int, list[str]] = {}  # by the id() of the text
        self._raw_of: dict[int, bytes] = {}  # by the id() of the RunMetadata
        self._traces_seen = 0

    def runs(self) -> list[ImportedRun]:
        metadata = _dict(self._state.get("_traces"))
        profiles = [_dict(profile) for profile in _dict(self._state.get("_run_profile")).values()]
        return [self._run(profile, _list(metadata.get(_index(profile.get("run_id"))))) for profile in profiles]

    def _run(self, profile: dict[Any, Any], metadata: list[Any]) -> ImportedRun:
        info, stats = _dict(profile.get("info")), _dict(profile.get("stats"))
        fetches, feeds = self._names(info.get("fetches")), self._names(info.get("feeds"))
        options = info.get("options")
        return ImportedRun(
            title=", ".join(fetches[:10]) or "session.run",
            fetches=fetches,
            feeds=feeds,
            options=options[:1000] if isinstance(options, str) and options != "None" else "",
            steps=max(_index(stats.get("runs")), 0),
            mean_s=seconds_of(stats.get("runtimes")),
            first_run_at=epoch_seconds(stats.get("first_run")),
            last_run_at=epoch_seconds(stats.get("last_run")),
            traces=self._traces(_list(profile.get("traces")), metadata),
        )

    def _traces(self, records: list[Any], metadata: list[Any]) -> list[ImportedTrace]:
        """Return the traces. (tensorflow-tracer replaced dropped traces by None.)"""
        self._traces_seen += len(metadata)
        if self._traces_seen > MAX_TRACES:
            raise FormatError(f"the session claims more than {MAX_TRACES} traces")
        return [
            ImportedTrace(self._raw(entry), started_at=epoch_seconds(_dict(record).get("date")))
            for record, entry in zip_longest(records[: len(metadata)], metadata)
            if entry is not None
        ]

    def _raw(self, entry: Any) -> bytes:
        if id(entry) not in self._raw_of:
            self._raw_of[id(entry)] = _serialized(entry)
        return self._raw_of[id(entry)]

    def _names(self, text: Any) -> list[str]:
        if id(text) not in self._names_of:
            self._names_of[id(text)] = _names(text)
        return self._names_of[id(text)]


_NAMED = re.compile(r"<tf\.[A-Za-z_.]{1,40} '([^']{1,500})'")


def _names(text: Any) -> list[str]:
    """Return the names in ``repr(fetches)`` or ``repr(feed_dict)``, without the fed values."""
    if not isinstance(text, str) or text == "None":
        return []
    names = list(dict.fromkeys(_NAMED.findall(text)))[:_MAX_NAMES]
    return names or [text[:200]]


def seconds_of(value: Any) -> float | None:
    """Convert a timedelta; None if it is invalid."""
    if not isinstance(value, Stub) or value.path != TIMEDELTA:
        return None
    if not all(isinstance(part, int) for part in value.args) or len(value.args) > 3:
        return None
    try:
        return datetime.timedelta(*value.args).total_seconds()
    except OverflowError:
        return None


def epoch_seconds(value: Any) -> float | None:
    """Convert a datetime without a time zone, which is taken as local time; None if it is invalid."""
    if not isinstance(value, Stub) or value.path != DATETIME or not value.args:
        return None
    state = value.args[0].encode("latin1", "replace") if isinstance(value.args[0], str) else value.args[0]
    if not isinstance(state, bytes) or len(state) != 10:
        return None
    year, month, day, hour, minute, second = struct.unpack(">HBBBBB", state[:7])
    micro = int.from_bytes(state[7:], "big")
    try:
        at = datetime.datetime(year, month & 0x7F, day, hour, minute, second, micro).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return at if at > 0 else None


def _merged(runs: list[ImportedRun]) -> list[ImportedRun]:
    """Merge runs with the same fetches, feed names and options. tensorflow-tracer made a new run for each set of fed values."""
    merged: dict[tuple[str, ...], ImportedRun] = {}
    for run in runs:
        key = (*run.fetches, "|", *run.feeds, "|", run.options)
        into = merged.setdefault(key, run)
        if into is not run:
            _merge(into, run)
    return list(merged.values())


def _merge(into: ImportedRun, run: ImportedRun) -> None:
    if run.mean_s is not None and run.steps:
        total = (into.mean_s or 0.0) * into.steps + run.mean_s * run.steps
        into.mean_s = total / (into.steps + run.steps)
    into.steps += run.steps
    firsts = [at for at in (into.first_run_at, run.first_run_at) if at is not None]
    lasts = [at for at in (into.last_run_at, run.last_run_at) if at is not None]
    into.first_run_at, into.last_run_at = min(firsts, default=None), max(lasts, default=None)
    into.traces += run.traces
