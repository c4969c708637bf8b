"""Step times as columns: in the file's STEPS and HISTORY records, and in the answers to the page."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np

from tftracer.contract.session import StepTimes
from tftracer.errors import FormatError
from tftracer.session.steps.history import COLUMNS, History
from tftracer.session.steps.percentile_sketch import Sketch, SketchedSteps
from tftracer.storage.tftrace_format import HISTORY, Record
from tftracer.storage.tftrace_reader import unpack_map
from tftracer.trace.arrays.columns import column
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Float64

log = logging.getLogger("tftracer")

#: Step numbers, the times of a HISTORY record, and infinite times of a STEPS record are clipped to this. A STEPS record whose
#: first step is not smaller than this is read as if it began with step 1.
_MAX_STEP = float(1 << 53)
#: A record with a column of more entries is rejected.
_MAX_ENTRIES = 10_000_000
#: Larger numbers in the columns of sketches are clipped to this.
_MAX_COUNT = float(1 << 36)


def steps_payload(starts: Float64, durations: Float64, traced: Sequence[int]) -> bytes:
    """Pack consecutive steps, which are not aggregated. ``traced``: positions of the traced steps among them."""
    return _packed(start_at=starts, duration_s=durations, traced=np.array(traced, float))


def history_payload(history: History) -> bytes:
    columns = dict(zip(COLUMNS, history.entries().T))
    return _packed(**columns, traced=np.array(history.traced, float), **_sketch_columns(history.sketched))


def _sketch_columns(sketched: SketchedSteps) -> dict[str, Float64]:
    """Return columns with a row for each counter: the number of its sketch, its bucket, its count."""
    counters = [each.counters() for each in sketched.sketches]
    numbers = np.repeat(np.arange(len(counters)), [len(buckets) for buckets, _ in counters])
    buckets, counts = (np.concatenate([each[i] for each in counters]) if counters else np.zeros(0) for i in (0, 1))
    return {
        "sketch_steps": np.array([sketched.first_step, sketched.length], float),
        "sketch_number": numbers.astype(float),
        "sketch_bucket": buckets.astype(float),
        "sketch_count": counts.astype(float),
    }


def _packed(**columns: Float64) -> bytes:
    return bytes(msgpack.packb({name: values.astype("<f8").tobytes() for name, values in columns.items()}))


def read_history(records: Sequence[Record]) -> History:
    """Read a history from a HISTORY record and the STEPS records after it. The steps of a damaged record are missing."""
    history = History()
    for record in records:
        try:
            columns = _columns(unpack_map(record.payload.raw()))
        except FormatError as error:
            log.warning("%s Its step times are missing.", error)
            continue
        if record.type == HISTORY:
            _add_history(history, columns)
        else:
            _add_steps(history, record.meta.get("first_step"), columns)
    return history


def _columns(packed: dict[str, Any]) -> dict[str, Float64]:
    arrays = {}
    for name, data in packed.items():
        if not isinstance(data, bytes) or len(data) % 8 or len(data) > 8 * _MAX_ENTRIES:
            raise FormatError("A record of step times is damaged.")
        arrays[name] = np.nan_to_num(np.frombuffer(data, "<f8"), nan=0.0, posinf=_MAX_STEP, neginf=0.0)
    return arrays


def _rows(columns: dict[str, Float64], names: Sequence[str]) -> Float64:
    """Return the named columns as [n, names], cut to the shortest of them. A missing column is empty."""
    wanted = [columns.get(name, np.zeros(0)) for name in names]
    return np.stack([column[: min(map(len, wanted))] for column in wanted], axis=1)


def _add_history(history: History, columns: dict[str, Float64]) -> None:
    rows = np.clip(_rows(columns, COLUMNS), 0.0, _MAX_STEP)
    rows[:, 1] = np.clip(np.floor(rows[:, 1]), 1, 1 << 31)
    history.add_entries(rows)
    history.traced.extend(np.clip(columns.get("traced", np.zeros(0))[-1000:], 0, _MAX_STEP).astype(np.int64).tolist())
    history.sketched = _read_sketched(columns)


def _read_sketched(columns: dict[str, Float64]) -> SketchedSteps:
    """Read the sketches of a file; none if an older version wrote it. Numbers are clipped, to limit the memory."""
    steps = columns.get("sketch_steps", np.zeros(0))
    if len(steps) != 2:
        return SketchedSteps()
    first, length = np.clip(steps, 1, _MAX_STEP).astype(np.int64).tolist()
    rows = np.clip(_rows(columns, ("sketch_number", "sketch_bucket", "sketch_count")), 0, _MAX_COUNT).astype(np.int64)
    rows = rows[rows[:, 0] < SketchedSteps.MAX_SKETCHES]
    sketches = [Sketch.of_counters(*rows[rows[:, 0] == number, 1:].T) for number in range(int(rows[:, 0].max(initial=-1)) + 1)]
    return SketchedSteps(first, length, sketches)


def _add_steps(history: History, first: Any, columns: dict[str, Float64]) -> None:
    """Add the steps of a STEPS record that the history does not have yet. ``first``: number of the record's first step."""
    first = first if isinstance(first, int) and 0 < first < _MAX_STEP else 1
    rows = _rows(columns, ("start_at", "duration_s"))
    repeated = min(max(0, history.last_step + 1 - first), len(rows))  # how many of these steps the history has already
    traced = distinct(np.clip(columns.get("traced", np.zeros(0)), 0, _MAX_STEP).astype(np.int64)) - repeated
    traced = traced[(traced >= 0) & (traced < len(rows) - repeated)]
    history.add(first + repeated, rows[repeated:, 0], rows[repeated:, 1], traced.tolist())


def step_times(run_id: int, history: History) -> StepTimes:
    step, count, start_at, mean_s, min_s, max_s = history.entries().T
    with np.errstate(over="ignore"):
        return {
            "run_id": run_id,
            "step": column(step),
            "count": column(count.astype(np.uint32)),
            "start_at": column(start_at),
            "mean_s": column(mean_s.astype(np.float32)),
            "min_s": column(min_s.astype(np.float32)),
            "max_s": column(max_s.astype(np.float32)),
            "traced": column(np.array(history.traced, float)),
        }
