"""A session in memory that answers as a SessionSource, for the web layer's tests: no training, no files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tftracer.contract.basics import Column
from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Loaded, Run, Session, StepTimes, TraceRecord
from tftracer.contract.stalls import GapProfile, RunStalls, Stall, StallDetail, StallList
from tftracer.errors import StorageError, UnknownError, UnsupportedError
from tftracer.ledger import parts_of_wall_time as ledger_answer
from tftracer.session.answers import SessionSource
from tftracer.session.publisher import Listener
from tftracer.slow.answer.messages import no_gaps
from tftracer.trace.model import TraceContext

DATA = Path(__file__).parent / "data"
PLACE: Any = {"rank": None, "size": None, "local_rank": None, "role": "", "task": None, "launcher": ""}


def a_session() -> Session:
    return {
        "id": "feedc0de",
        "host": "somewhere",
        "pid": 4711,
        "rank": None,
        "place": PLACE,
        "tensorflow": "2.15.1",
        "tftracer": "2.0.0",
        "python": "3.11.7",
        "command": "train.py --steps 100",
        "processor": "",
        "gpus": 0,
        "gpu_devices": [],
        "measured_roof": None,
        "started_at": 1_700_000_000.0,
        "ended_at": None,
        "active": True,
        "trace_all": False,
        "live": True,
        "file": "",
        "no_steps": "",
        "steps_lost": 0,
        "slow_watch": "on",
        "hook_cost_s": 2e-6,
        "call_cost_s": 1e-6,
        "problems": [],
        "cut": "",
        "damage": "",
    }


def a_run(run_id: int, traces: list[TraceRecord]) -> Run:
    return {
        "id": run_id,
        "title": "train_op",
        "origin": "",
        "fetches": ["train_op"],
        "feeds": ["x"],
        "options": "",
        "definition": "",
        "steps": 3,
        "mean_s": 0.02,
        "p50_s": 0.02,
        "p95_s": 0.03,
        "p99_s": 0.03,
        "min_s": 0.01,
        "max_s": 0.03,
        "last_s": 0.02,
        "first_run_at": 1_700_000_001.0,
        "last_run_at": 1_700_000_002.0,
        "graph_on_request": False,
        "pending_traces": 0,
        "slow_steps": {
            "count": 0,
            "longest_s": None,
            "lost_s": 0.0,
            "last_at": None,
            "text": "",
            "trace_id": None,
            "gaps_at": None,
        },
        "between_steps_s": 0.001,
        "traced_overhead_s": None,
        "recent_s": [0.01, 0.02, 0.03],
        "traces": traces,
    }


def a_stall_message(stall_id: int) -> Stall:
    return {
        "id": stall_id,
        "run_id": 1,
        "step": 2,
        "call": 2,
        "step_text": "step 2",
        "where": "between",
        "started_at": 1_700_000_001.5,
        "duration_s": 0.3,
        "expected_s": 0.02,
        "cause": "python",
        "without_cpu": "",
        "place": "load_batch() (train.py:88)",
        "text": "Python code at load_batch() (train.py:88)",
        "evidence": [],
        "uncertainty": "",
        "lines": [],
        "other_lines": [],
        "parts": [],
        "samples": 60,
        "others": [],
        "trace_id": None,
        "every": None,
    }


def a_trace(trace_id: int, size: int) -> TraceRecord:
    return {
        "id": trace_id,
        "run_id": 1,
        "step": 2,
        "started_at": 1_700_000_001.5,
        "duration_s": 0.03,
        "median_s": 0.02,
        "nodes": 8009,
        "bytes": size,
        "stored_bytes": size // 10,
        "devices": ["CPU:0"],
        "asked_by": "user",
        "findings": [],
        "headline": "",
        "note": "",
        "bookmarks": [],
        "state": "ready",
    }


def column(values: list[float], dtype: Any) -> Column:
    return {"dtype": dtype, "data": np.asarray(values, f"<{dtype}").tobytes()}


class FakeSource(SessionSource):
    """One run with one trace, which is a real one; it notes what it was asked to do."""

    def __init__(self, raw: bytes | None = None, live: bool = True) -> None:
        self.raw = (DATA / "conv_costgraph_tf2.21_cpu.pb").read_bytes() if raw is None else raw
        self.live = live
        self.asked: list[tuple[str, Any]] = []
        self.listeners: list[Listener] = []
        self.traces = [a_trace(1, len(self.raw))]
        self.reads = 0
        self.save_chunks: list[Any] = [b"saved ", b"session"]
        self.loaded: list[bytes] = []

    def session(self) -> Session:
        return {**a_session(), "live": self.live}

    def runs(self) -> list[Run]:
        return [self.run(1)]

    def run(self, run_id: int) -> Run:
        if run_id != 1:
            raise UnknownError(f"There is no run {run_id}.")
        return a_run(1, list(self.traces))

    def step_times(self, run_id: int) -> StepTimes:
        self.run(run_id)
        return {
            "run_id": 1,
            "step": column([1, 2, 3], "f8"),
            "count": column([1, 1, 1], "u4"),
            "start_at": column([0, 1, 2], "f8"),
            "mean_s": column([0.01, 0.02, 0.03], "f4"),
            "min_s": column([0.01, 0.02, 0.03], "f4"),
            "max_s": column([0.01, 0.02, 0.03], "f4"),
            "traced": column([2], "f8"),
        }

    def run_stalls(self, run_id: int) -> RunStalls:
        self.run(run_id)
        return {
            "run_id": 1,
            "stalls": [a_stall_message(1)],
            "count": 1,
            "groups": [],
            "periods": [],
            "marks": [],
            "changes": [],
            "drift": None,
            "median_s": 0.02,
            "p99_s": 0.03,
            "max_s": 0.03,
        }

    def input_pipelines(self) -> InputPipelines:
        return {"pipelines": [], "text": ""}

    def memory_growth(self) -> ProcessMemory:
        return {"at": [], "low": [], "high": [], "growths": [], "growth_rate": None, "text": ""}

    def ledger(self) -> Ledger:
        return ledger_answer.ledger(None, [], lambda run_id: None)

    def all_stalls(self) -> StallList:
        return {"stalls": [a_stall_message(1)], "count": 1, "groups": [], "periods": []}

    def stall(self, stall_id: int) -> StallDetail:
        if stall_id != 1:
            raise UnknownError(f"There is no slow step {stall_id}.")
        empty: Any = {"frames": [], "parent": [], "frame": [], "seconds": [], "samples": [], "samples_left_out": 0}
        return {"stall": a_stall_message(1), "stacks": empty}

    def gaps(self, run_id: int) -> GapProfile:
        self.run(run_id)
        return no_gaps(run_id, "none", "Not sampled.")

    def sample_gaps(self, run_id: int) -> None:
        if not self.live:
            raise UnsupportedError("A reopened session has no training to sample.")
        self.run(run_id)
        self.asked.append(("gaps", run_id))

    def trace_record(self, trace_id: int) -> TraceRecord:
        for record in self.traces:
            if record["id"] == trace_id:
                return record
        raise UnknownError(f"There is no trace {trace_id}.")

    def trace_context(self, trace_id: int) -> TraceContext:
        return TraceContext(step=2, title="train_op")

    def trace_bytes(self, trace_id: int) -> bytes:
        self.trace_record(trace_id)
        self.reads += 1
        return self.raw

    def set_trace_facts(self, trace_id: int, **facts: Any) -> TraceRecord:
        record = self.trace_record(trace_id)
        record.update(facts)  # type: ignore[typeddict-item]
        return record

    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False) -> None:
        if not self.live:
            raise UnsupportedError("A reopened session has no training to trace.")
        if run_id is not None:
            self.run(run_id)
        self.asked.append(("trace with graph" if with_graph else "trace", (run_id, steps)))

    def set_trace_all(self, on: bool) -> None:
        self.asked.append(("all", on))

    def save(self, path: str) -> None:
        Path(path).write_bytes(b"".join(self.save_chunks))

    def saved_bytes(self) -> Iterator[bytes]:
        for chunk in self.save_chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def load(self, path: str, name: str = "") -> Loaded:
        data = Path(path).read_bytes()
        if data == b"full":
            raise StorageError(f"{path}: the disk is full. Make room.")
        self.loaded.append(data)
        return {"ok": True, "runs": 1, "traces": 2, "cut": "", "damage": ""}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def close(self) -> None:
        pass
