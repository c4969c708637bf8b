"""Which of its traces a process tells its job's hub of, from the request to the trace that is summed up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from fake_source import a_run

from tftracer.cluster.agent import JobSource
from tftracer.cluster.armed import Armed
from tftracer.web.messages import Run, TraceRecord


class Source:
    """One run at its fifth step; ``say`` announces a trace as the recorder does."""

    def __init__(self) -> None:
        self.say: Callable[[Any], None] = print

    def runs(self) -> list[Run]:
        return [{**a_run(1, []), "steps": 5}]  # type: ignore[typeddict-item]

    def steps_begun(self) -> dict[str, int]:
        return {"train_op": 5}

    def request_trace_at(self, title: str, step: int) -> bool:
        return True

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        self.say = listener
        return lambda: None


def stored(trace: int, step: int, nodes: int = 0) -> dict[str, Any]:
    record = {"id": trace, "run_id": 1, "step": step, "nodes": nodes, "findings": [], "headline": "It waits." if nodes else ""}
    return {"type": "trace", "payload": cast("TraceRecord", record)}


def wanted(job_trace: int, step: int) -> dict[str, Any]:
    return {"t": "trace", "job_trace": job_trace, "run_title": "train_op", "step": step}


def told_of(*happens: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(the job's trace, step, nodes) of all that the hub is told, when steps are wanted and traces announced in this order."""
    told: list[tuple[int, int, int]] = []

    def tell(kind: str, **fields: Any) -> None:
        if kind == "traced":
            told.append((fields["job_trace"], fields["step"], fields["record"]["nodes"]))

    async def play() -> None:
        source = Source()
        armed = Armed(cast("JobSource", source), tell)
        armed.listen()
        for each in happens:
            armed.take(each) if "t" in each else source.say(each)
            await asyncio.sleep(0)

    asyncio.run(play())
    return told


def test_a_trace_is_told_when_it_is_stored_and_when_it_is_summed_up() -> None:
    found = told_of(wanted(1, 6), stored(7, 6), stored(7, 6, nodes=3), stored(7, 6, nodes=3))
    assert found == [(1, 6, 0), (1, 6, 3)]
    assert told_of(wanted(1, 6), stored(7, 6, nodes=3), stored(7, 6, nodes=3)) == [(1, 6, 3)]


def test_the_summary_of_a_step_is_not_taken_for_the_next_step() -> None:
    found = told_of(wanted(1, 6), stored(7, 6), wanted(2, 7), stored(7, 6, nodes=3), stored(8, 7))
    assert found == [(1, 6, 0), (1, 6, 3), (2, 7, 0)]
    assert told_of(stored(7, 6), wanted(1, 7), stored(7, 6, nodes=3), stored(8, 7)) == [(1, 7, 0)], "the user's own trace"


def test_other_traces_are_not_told() -> None:
    assert told_of(stored(6, 6), wanted(1, 6), stored(7, 3), stored(8, 9), stored(9, 9, nodes=3)) == []
