"""Recorders and steps for the tests of what is recorded: a hook's events without TensorFlow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

from tftracer.capture.recorded_steps import Capture, SessionFacts
from tftracer.contract.live import LiveMessage
from tftracer.contract.session import AskedBy
from tftracer.session.live import Recorder

DATA = Path(__file__).parent / "data"
RAW = (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()


class Tensor:
    """Has what the tracer looks at in a tensor, a variable or an operation."""

    def __init__(self, name: str) -> None:
        self.name = name


LOSS, TRAIN, X = Tensor("loss:0"), Tensor("train"), Tensor("x:0")


@contextmanager
def recording(folder: Path, **options: Any) -> Iterator[Recorder]:
    recorder = Recorder(spool_dir=folder, **options).start()
    try:
        yield recorder
    finally:
        recorder.close()


def step(
    recorder: Recorder,
    number: int,
    fetches: Any = (TRAIN, LOSS),
    feeds: Any = (X,),
    raw: bytes = b"",
    asked_by: AskedBy = "global",
) -> None:
    """One finished step, a millisecond long, at ``number`` times two milliseconds."""
    capture = captured(recorder, raw, asked_by) if raw else None
    start = number * 2_000_000
    recorder.queue.add((fetches, feeds, None, start, start + 1_000_000, get_ident(), capture))


def captured(recorder: Recorder, raw: bytes, asked_by: AskedBy = "global") -> Capture:
    return recorder.queue.backlog.add(Capture(raw, asked_by, "SOFTWARE_TRACE", True, SessionFacts(0, False)))


def steps(recorder: Recorder, count: int, traced: dict[int, bytes] | None = None, asked_by: AskedBy = "global") -> None:
    """``count`` steps from number 1, counted and written; some of them with a trace."""
    for number in range(1, count + 1):
        step(recorder, number, raw=(traced or {}).get(number, b""), asked_by=asked_by)
    assert recorder.flush()


def killed_before_analysis(folder: Path, raw: bytes = RAW) -> Path:
    """A session with a trace that was announced, and no more."""
    copied = folder / "killed.tftrace"

    def copy(message: LiveMessage) -> None:
        if message["type"] == "trace" and not copied.exists():
            shutil.copyfile(recorder.session()["file"], copied)

    with recording(folder) as recorder:
        recorder.subscribe(copy)
        steps(recorder, 2, traced={2: raw})
    return copied
