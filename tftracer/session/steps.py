"""Step times as columns: in the file's STEPS and HISTORY records, and on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from tftracer.errors import FormatError
from tftracer.session.file import Record, unpack_map
from tftracer.session.history import Entry, History
from tftracer.session.model import HISTORY
from tftracer.web.messages import Column, StepTimes

Doubles = npt.NDArray[np.float64]

#: Beyond these no step number, no time and no history is real.
_MAX_STEP = float(1 << 53)
_MAX_ENTRIES = 10_000_000

_HISTORY_COLUMNS = ("step", "count", "start_at", "mean_s", "min_s", "max_s")


def steps_payload(starts: Sequence[float], durations: Sequence[float], traced: Sequence[int]) -> bytes:
    """Steps in a row, one by one; ``traced`` are positions in them."""
    return _packed(start_at=starts, duration_s=durations, traced=traced)


def history_payload(history: History) -> bytes:
    entries = history.entries()
    columns = {name: [entry[i] for entry in entries] for i, name in enumerate(_HISTORY_COLUMNS)}
    return _packed(**columns, traced=list(history.traced))


def _packed(**columns: Sequence[float]) -> bytes:
    return bytes(msgpack.packb({name: np.asarray(values, "<f8").tobytes() for name, values in columns.items()}))


def read_history(records: Sequence[Record]) -> History:
    """A history from a HISTORY record and the STEPS records after it. A damaged one ends it there."""
    history = History()
    for record in records:
        columns = _columns(unpack_map(record.payload.raw()))
        if record.type == HISTORY:
            _add_history(history, columns)
        else:
            _add_steps(history, record.meta.get("first_step"), columns)
    return history


def _columns(packed: dict[str, Any]) -> dict[str, Doubles]:
    found = {}
    for name, data in packed.items():
        if not isinstance(data, bytes) or len(data) % 8 or len(data) > 8 * _MAX_ENTRIES:
            raise FormatError("A record of step times is damaged.")
        found[name] = np.nan_to_num(np.frombuffer(data, "<f8"), nan=0.0, posinf=_MAX_STEP, neginf=0.0)
    return found


def _rows(columns: dict[str, Doubles], names: Sequence[str]) -> list[list[float]]:
    empty = np.zeros(0)
    wanted = [columns.get(name, empty) for name in names]
    return np.stack([column[: min(map(len, wanted))] for column in wanted], axis=1).tolist() if wanted else []


def _add_history(history: History, columns: dict[str, Doubles]) -> None:
    for step, count, start_at, mean_s, min_s, max_s in _rows(columns, _HISTORY_COLUMNS):
        whole = int(min(max(count, 1), 1 << 31))
        history.add_entry(Entry(int(min(abs(step), _MAX_STEP)), whole, start_at, mean_s, min_s, max_s))
    history.traced.extend(int(min(abs(step), _MAX_STEP)) for step in columns.get("traced", np.zeros(0))[-1000:].tolist())


def _add_steps(history: History, first: Any, columns: dict[str, Doubles]) -> None:
    first = first if isinstance(first, int) and 0 < first < _MAX_STEP else 1
    known = history.last_step  # a rewrite of the file may have taken them into the history already
    for i, (start_at, duration_s) in enumerate(_rows(columns, ("start_at", "duration_s"))):
        if first + i > known:
            history.add(first + i, start_at, duration_s)
    traced = columns.get("traced", np.zeros(0))[-1000:]
    history.traced.extend(first + int(min(abs(position), _MAX_STEP)) for position in traced.tolist())


def step_times(run_id: int, history: History) -> StepTimes:
    entries = history.entries()
    return {
        "run_id": run_id,
        "step": _column("<f8", "f8", [entry.step for entry in entries]),
        "count": _column("<u4", "u4", [entry.steps for entry in entries]),
        "start_at": _column("<f8", "f8", [entry.start_at for entry in entries]),
        "mean_s": _column("<f4", "f4", [entry.mean_s for entry in entries]),
        "min_s": _column("<f4", "f4", [entry.min_s for entry in entries]),
        "max_s": _column("<f4", "f4", [entry.max_s for entry in entries]),
        "traced": _column("<f8", "f8", list(history.traced)),
    }


def _column(form: str, dtype: Any, values: Sequence[float]) -> Column:
    with np.errstate(over="ignore"):
        return {"dtype": dtype, "data": np.asarray(values, "<f8").astype(form).tobytes()}
