"""Which traces a process reports to its hub, from the request to the trace's summary."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from fake_source import a_run

from tftracer.contract.session import Run, TraceRecord
from tftracer.job.agent import requested_traces
from tftracer.job.agent.requested_traces import StepWatch
from tftracer.session.live import Recorder


class Source:
    """One run at its fifth step; ``say`` announces a trace as the recorder does."""

    def __init__(self) -> None:
        self.say: Callable[[Any], None] = print
        self.begun = self.counted = 5

    def runs(self) -> list[Run]:
        return [{**a_run(1, []), "steps": self.counted}]

    def finished_steps(self) -> dict[str, int]:
        return {"train_op": self.begun}

    def request_trace_at(self, title: str, step: int) -> bool:
        return True

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        self.say = listener
        return lambda: None


def stored(trace: int, step: int, nodes: int = 0, asked_by: str = "user") -> dict[str, Any]:
    state = "ready" if nodes else "pending"
    record = {"id": trace, "run_id": 1, "step": step, "nodes": nodes, "findings": [], "state": state, "asked_by": asked_by}
    return {"type": "trace", "payload": cast("TraceRecord", record)}


def wanted(job_trace: int, step: int) -> dict[str, Any]:
    return {"t": "trace", "job_trace": job_trace, "run_title": "train_op", "step": step}


def messages_after(*happens: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(the job's trace, step, nodes) of all that the hub is sent, if these requests and traces come in this order."""
    sent: list[tuple[int, int, int]] = []

    def tell(kind: str, **fields: Any) -> None:
        if kind == "traced":
            sent.append((fields["job_trace"], fields["step"], fields["record"]["nodes"]))

    async def play() -> None:
        source = Source()
        watch = StepWatch(cast("Recorder", source), tell)
        watch.subscribe()
        for each in happens:
            watch.handle(each) if "t" in each else source.say(each)
            await asyncio.sleep(0)

    asyncio.run(play())
    return sent


def test_a_trace_is_told_when_it_is_stored_and_when_it_is_summed_up() -> None:
    messages = messages_after(wanted(1, 6), stored(7, 6), stored(7, 6, nodes=3), stored(7, 6, nodes=3))
    assert messages == [(1, 6, 0), (1, 6, 3)]
    assert messages_after(wanted(1, 6), stored(7, 6, nodes=3), stored(7, 6, nodes=3)) == [(1, 6, 3)]


def test_the_summary_of_a_step_is_not_taken_for_the_next_step() -> None:
    messages = messages_after(wanted(1, 6), stored(7, 6), wanted(2, 7), stored(7, 6, nodes=3), stored(8, 7))
    assert messages == [(1, 6, 0), (1, 6, 3), (2, 7, 0)]
    assert messages_after(stored(7, 6), wanted(1, 7), stored(7, 6, nodes=3), stored(8, 7)) == [(1, 7, 0)], "the user's own trace"


def test_other_traces_are_not_told() -> None:
    assert messages_after(stored(6, 6), wanted(1, 6), stored(7, 3), stored(8, 9), stored(9, 9, nodes=3)) == []


def test_the_step_before_is_not_taken_for_the_wanted_one() -> None:
    users = [wanted(1, 9), stored(7, 8, nodes=3), stored(8, 9, nodes=4)]
    assert messages_after(*users) == [(1, 9, 4)], "the user's own request"
    every = [stored(step, step, nodes=step, asked_by="global") for step in (7, 8, 10)]
    assert messages_after(wanted(1, 9), *every, stored(9, 9, nodes=9)) == [(1, 9, 9)], "every step is traced"


@pytest.mark.parametrize(("counted", "expected"), [(7, [7]), (9, [])])
def test_a_run_of_which_some_steps_count_for_another(monkeypatch: pytest.MonkeyPatch, counted: int, expected: list[int]) -> None:
    """Those with RunOptions of their own: the traced step has a lower number. Else a lower number is the user's own trace."""
    monkeypatch.setattr(requested_traces, "LOWER_NUMBER_AFTER_S", -1.0)
    sent: list[int] = []

    def tell(kind: str, **fields: Any) -> None:
        if kind == "traced":
            sent.append(fields["record"]["step"])

    async def play() -> None:
        source, trace = Source(), stored(4, 7)
        source.begun, source.counted = 5, 3
        watch = StepWatch(cast("Recorder", source), tell)
        watch.subscribe()
        watch.handle(wanted(1, 9))
        source.say(trace)
        await asyncio.sleep(0)
        source.begun, source.counted = 9, counted
        watch.check([{**source.runs()[0], "traces": [trace["payload"]]}])

    asyncio.run(play())
    assert sent == expected


def test_a_trace_that_is_stored_after_the_end_is_nobodys() -> None:
    source = Source()

    async def listen() -> None:
        StepWatch(cast("Recorder", source), print).subscribe()

    asyncio.run(listen())
    source.say(stored(7, 6))
