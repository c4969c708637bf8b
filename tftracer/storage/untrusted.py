"""Reads values from an untrusted file or message, and checks them.

A value that is missing or of a wrong type becomes its field's default, so that no file can raise an error or break a type of the
wire contract.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from tftracer.contract.basics import Finding
from tftracer.contract.machine import GpuDevice, MeasuredDevice, MeasuredRate, MeasuredRoof
from tftracer.contract.session import Bookmark, LauncherInfo, Problem
from tftracer.trace.model import CpuUse, FedValue, GpuFacts

MAX_TEXT = 10_000
MAX_ITEMS = 10_000
MAX_BOOKMARKS = 100
MAX_BOOKMARK_NAME = 100
_LATEST_NS = 1e15  # latest time of a bookmark: eleven days
_LATEST_S = 253_402_300_800  # latest time of a clock: the year 10000
_LARGEST = 1 << 53  # JSON numbers are exact up to this
#: Field name -> function that reads and checks its value.
Fields = dict[str, Callable[[Any], Any]]


def text(value: Any, limit: int = MAX_TEXT) -> str:
    """Return text that can be encoded as UTF-8: lone surrogates, which JSON and file names may have, become "?"."""
    return value[:limit].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def short(value: Any) -> str:
    return text(value, 100)


def texts(value: Any) -> list[str]:
    return [text(item) for item in items(value) if isinstance(item, str)]


def items(value: Any) -> list[Any]:
    return list(value[:MAX_ITEMS]) if isinstance(value, (list, tuple)) else []


def number(value: Any) -> float | None:
    """Return a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return float(value) if math.isfinite(value) else None


def seconds(value: Any) -> float:
    return number(value) or 0.0


def duration(value: Any) -> float:
    """Return seconds that are not negative; 0 if not known."""
    return max(0.0, seconds(value))


def duration_or_none(value: Any) -> float | None:
    given = number(value)
    return None if given is None else max(0.0, given)


def moment_or_none(value: Any) -> float | None:
    """Return epoch seconds up to the year 9999, or None."""
    given = number(value)
    return given if given is not None and 0 <= given < _LATEST_S else None


def moment(value: Any) -> float:
    return moment_or_none(value) or 0.0


def count(value: Any, default: int = 0) -> int:
    return value if type(value) is int and 0 <= value <= _LARGEST else default


def bookmarks(value: Any) -> list[Bookmark]:
    """Return the valid bookmarks: each has a name and a time, and a range ends after its start."""
    read = [_bookmark(item) for item in items(value)[:MAX_BOOKMARKS]]
    return [bookmark for bookmark in read if bookmark is not None]


def _bookmark(value: Any) -> Bookmark | None:
    given = table(value)
    name, start, end = text(given.get("name"), MAX_BOOKMARK_NAME), number(given.get("start_ns")), number(given.get("end_ns"))
    if not name or start is None or not 0 <= start <= _LATEST_NS:
        return None
    if given.get("end_ns") is not None and (end is None or not start < end <= _LATEST_NS):
        return None
    return {"name": name, "start_ns": start, "end_ns": end}


def count_or_none(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _LARGEST else None


def positive_or_none(value: Any) -> int | None:
    return count(value) or None


def one_of(*texts: str) -> Callable[[Any], str]:
    """Return a reader of a text that is one of these; anything else becomes the first."""
    return lambda value: value if isinstance(value, str) and value in texts else texts[0]


def flag(value: Any) -> bool:
    return value is True


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def fields_of(value: Any, fields: Fields) -> dict[str, Any]:
    """Read all fields of a message; unknown keys are left out."""
    given = table(value)
    return {name: read(given.get(name)) for name, read in fields.items()}


_NONE: Fields = {}


def readers(message: type, names: Sequence[str] = (), kinds: Fields = _NONE, **special: Callable[[Any], Any]) -> Fields:
    """Return a reader for each field of a message of the contract, or of a dataclass: from ``special``, or else by its type.

    ``names``: the fields to read, by default all. ``kinds``: type as the contract writes it -> reader, where the usual one does
    not fit. Raises KeyError for a field whose type has no reader.
    """
    types = {name: str(getattr(kind, "__forward_arg__", kind)) for name, kind in message.__annotations__.items()}
    return {
        name: special.get(name) or kinds.get(types[name]) or _READERS[name.endswith("_at"), types[name]]
        for name in names or types
    }


def rows_of(
    message: type, limit: int = MAX_ITEMS, kinds: Fields = _NONE, **special: Callable[[Any], Any]
) -> Callable[[Any], list[Any]]:
    """Return a reader of a list of messages of this type; entries that are not maps are left out."""
    fields = readers(message, (), kinds, **special)
    return lambda value: [fields_of(item, fields) for item in items(value)[:limit] if isinstance(item, dict)]


def tuple_of(record: type, limit: int, kinds: Fields, **special: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a reader of a list of dataclasses of this type."""
    fields = readers(record, (), kinds, **special)
    return lambda value: tuple(record(**fields_of(item, fields)) for item in items(value)[:limit])


#: (whether the field's name ends in ``_at``, its type as the contract writes it) -> reader.
_READERS: dict[tuple[bool, str], Callable[[Any], Any]] = {
    (True, "float"): moment,
    (True, "float | None"): moment_or_none,
    (False, "float"): seconds,
    (False, "float | None"): number,
    (False, "int"): count,
    (False, "int | None"): count_or_none,
    (False, "bool"): flag,
    (False, "bool | None"): lambda value: value if isinstance(value, bool) else None,
    (False, "str"): text,
    (False, "list[str]"): texts,
}
findings = rows_of(Finding, 100, code=short, severity=one_of("info", "warning", "error"))
gpu_devices = rows_of(GpuDevice, 1000, name=short, compute_capability=short)
problems = rows_of(Problem, 100, code=short)
_LAUNCHER = readers(LauncherInfo, role=short, launcher=short)
_FED = rows_of(
    FedValue,
    dtype=short,
    tensor_dtype=short,
    shape=lambda value: [count(size) for size in items(value)],
    copied=one_of("", "order", "list"),
)


def gpu_facts(value: Any) -> GpuFacts:
    given, facts = table(value), GpuFacts()
    if given.get("build") in ("cuda", "rocm", "cpu"):
        facts["build"] = given["build"]
    for name in ("cuda_version", "visible_devices", "libcupti_loaded", "libcupti_file"):
        if isinstance(given.get(name), str):
            facts[name] = text(given[name], 1000)
    for name in ("driver", "restricted"):
        if isinstance(given.get(name), bool):
            facts[name] = given[name]  # type: ignore[literal-required]
    return facts


def measured_roof(value: Any) -> MeasuredRoof | None:
    """Return the roof; None without a host: then it is of an unknown machine."""
    roof = cast(MeasuredRoof, fields_of(value, _ROOF))
    return roof if roof["host"] else None


def _rate(value: Any) -> float:
    """Return a rate; 0 if it is missing or implausible."""
    given = number(value) or 0.0
    return given if 0 < given < 1e20 else 0.0


_rates = rows_of(MeasuredRate, 100, dtype=short, flops_per_s=_rate, by=short)
_ROOF = readers(
    MeasuredRoof,
    processor=short,
    devices=rows_of(
        MeasuredDevice,
        100,
        kind=short,
        rates=lambda value: [rate for rate in _rates(value) if rate["flops_per_s"] > 0],
        bytes_per_s=lambda value: _rate(value) or None,
    ),
)


def cpu_use(value: Any) -> CpuUse:
    given, use = table(value), CpuUse()
    for name in ("wall_s", "cpu_s", "job_cpu_s", "busiest_thread_s", "run_queue_s", "cpus"):
        known = number(given.get(name))
        if known is not None and known >= 0:
            use[name] = known
    return use


def fed_values(value: Any) -> list[FedValue] | None:
    """Return the fed values; None: not known."""
    return None if value is None else _FED(value)


def launcher_info(value: Any) -> LauncherInfo:
    return cast(LauncherInfo, fields_of(value, _LAUNCHER))
