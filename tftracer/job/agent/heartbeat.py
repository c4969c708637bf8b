"""What a process sends its hub about itself: its identity once, and its totals in every heartbeat."""

from __future__ import annotations

import functools
import hashlib
import time
from pathlib import Path

from tftracer.contract.session import Run, Session
from tftracer.job.wire.protocol import Message
from tftracer.session.live import Recorder
from tftracer.session.process.launcher import process_title
from tftracer.session.steps.statistics import total_s
from tftracer.slow.answer.texts import trace_text

LEDGER_S = 5.0  # seconds between two computations of the ledger


def identity(session: Session) -> Message:
    """Return the process's identity. It may change: Horovod's rank is known only after Horovod is initialized."""
    return {
        "id": session["id"],
        "title": process_title(session["place"], session["pid"]),
        "host": session["host"],
        "pid": session["pid"],
        "place": dict(session["place"]),
        "clock": machine_clock(session["host"]),
    }


@functools.lru_cache(maxsize=4)
def machine_clock(host: str) -> str:
    """Return an id of this machine's clock, the same for all its processes until a reboot; "" if not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(f"{host} {boot}".encode()).hexdigest()[:16]


def totals(session: Session, runs: list[Run], steps_per_s: float | None) -> Message:
    """Return totals over all runs, so that the size of a heartbeat does not depend on the number of runs."""
    steps = sum(run["steps"] for run in runs)
    step_time_s = sum(map(total_s, runs))
    between = [(run["steps"], run["between_steps_s"]) for run in runs if run["between_steps_s"] is not None]
    known_steps = sum(count for count, _ in between)
    problem = session["problems"][-1]["message"] if session["problems"] else ""
    return {
        "steps": steps,
        "steps_per_s": steps_per_s,
        "mean_s": step_time_s / steps if steps else None,
        "between_steps_s": sum(count * between_s for count, between_s in between) / known_steps if known_steps else None,
        "traces": sum(len(run["traces"]) for run in runs),
        "slow_steps": sum(run["slow_steps"]["count"] for run in runs),
        "slow_text": _slow_text(max(runs, key=lambda run: run["slow_steps"]["count"]))[:300] if runs else "",
        "problem": problem[:500],
    }


def _slow_text(run: Run) -> str:
    """Return a run's text about slow steps, with the headline of the trace that explains them."""
    text, trace_id = run["slow_steps"]["text"], run["slow_steps"]["trace_id"]
    trace = next((trace for trace in run["traces"] if trace["id"] == trace_id), None)
    return f"{text}. {trace_text(trace['id'], trace['step'], trace['headline'])}" if trace and trace["headline"] else text


class TimeSpent:
    """The ledger of the process's wall time, computed again every few seconds."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = {}
        self._next = 0.0

    def update(self, source: Recorder) -> dict[str, float]:
        """Return the seconds of each part of the ledger; empty if nothing is known."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LEDGER_S
            self._parts = {part["kind"]: part["duration_s"] for part in source.ledger()["parts"]}
        return self._parts


class StepRate:
    """Computes steps per second since the last call."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def update(self, runs: list[Run]) -> float | None:
        """Return steps per second; None at the first call."""
        steps, now, last = sum(run["steps"] for run in runs), time.monotonic(), self._last
        self._last = (now, steps)
        return (steps - last[1]) / (now - last[0]) if last is not None and now > last[0] else None
