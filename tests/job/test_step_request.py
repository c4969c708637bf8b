"""Which step is chosen: the same for ranks in lockstep, each its own for processes that run at different speeds."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tftracer.contract.job import JobTrace
from tftracer.job.hub.hub import Hub, Member
from tftracer.job.hub.replies import Reply
from tftracer.job.hub.step_request import TRIES, StepRequests, select_steps

STATE = st.fixed_dictionaries({"begun": st.integers(0, 10**9), "steps_per_s": st.none() | st.floats(0, 1e5)})


@given(st.dictionaries(st.text(min_size=1), STATE, min_size=1), st.floats(0.1, 10))
def test_the_step_lies_ahead_of_everybody(states: dict[str, dict[str, object]], ahead_s: float) -> None:
    steps, step = select_steps(states, True, ahead_s)
    assert set(steps.values()) == {step} and set(steps) == set(states)
    for state in states.values():
        assert step >= int(state["begun"]) + 2 + float(state["steps_per_s"] or 0.0) * ahead_s  # type: ignore[call-overload, arg-type]


@given(st.dictionaries(st.text(min_size=1), STATE, min_size=1))
def test_each_has_its_own_where_they_run_at_their_own_pace(states: dict[str, dict[str, object]]) -> None:
    steps, step = select_steps(states, False, 0.3)
    assert step is None
    assert all(steps[p] >= int(state["begun"]) + 2 for p, state in states.items())  # type: ignore[call-overload]


class FakeProcess:
    """Answers as a process does. The first ``late`` requests come too late; then it traces the step."""

    def __init__(self, requests: StepRequests, late: int = 0) -> None:
        self.requests, self.late, self.begun = requests, late, 10
        self.member: Member

    def post(self, kind: str, **fields: Any) -> None:
        if kind == "prepare":
            self.begun += 10
            self.say("steps", fields, run_title="train_op", begun=self.begun)
        elif kind == "trace" and self.late:
            self.late -= 1
            self.say("late", fields)
        elif kind == "trace":
            self.say("armed", fields)
            self.say("traced", fields, step=fields["step"], record={"id": 1, "step": fields["step"]})

    def say(self, kind: str, asked: dict[str, Any], **fields: Any) -> None:
        message = {"t": kind, "job_trace": asked["job_trace"], **fields}
        asyncio.get_running_loop().call_soon(self.requests.handle, self.member, message)

    def ask(self, kind: str, **fields: Any) -> AbstractAsyncContextManager[Reply]:
        raise AssertionError(kind)

    def drop(self, reason: str) -> None:
        raise AssertionError(reason)


def traced_by(*late: int) -> tuple[JobTrace, list[int]]:
    """The result of a request to ranks that are late so many times each, and the steps that were traced."""

    async def play() -> tuple[JobTrace, list[int]]:
        hub = Hub("p0", "job")
        requests = StepRequests(hub)
        for rank, times in enumerate(late):
            place = {"rank": rank, "size": len(late), "local_rank": rank, "role": "worker", "task": None, "launcher": "horovod"}
            process = FakeProcess(requests, times)
            member = hub.join({"id": f"p{rank}", "title": f"rank {rank}", "place": place}, process)
            assert member is not None
            process.member = member
        number = requests.start(None, "")["id"]
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        await asyncio.sleep(0)
        traced = hub.trace(number)
        return traced.message, [record["step"] for record in traced.records.values()]

    return asyncio.run(play())


def test_all_trace_the_later_step_that_is_chosen_because_one_was_late() -> None:
    message, steps = traced_by(0, 1, 0)
    assert message["state"] == "ready" and message["ready"] == ["p0", "p1", "p2"]
    assert set(steps) == {message["step"]} and message["steps"] == dict.fromkeys(message["ready"], message["step"])


def test_a_process_that_is_always_late_is_missing() -> None:
    message, steps = traced_by(0, TRIES)
    assert (message["state"], message["ready"]) == ("partial", ["p0"]) and steps == [message["step"]]
    assert message["missing"] == {"p1": "Its step had begun before the request came."}


class Silent:
    """A connection on which nothing is answered."""

    def post(self, kind: str, **fields: Any) -> None: ...

    def ask(self, kind: str, **fields: Any) -> AbstractAsyncContextManager[Reply]:
        raise AssertionError(kind)

    def drop(self, reason: str) -> None: ...


def test_an_old_connection_that_closes_late_does_not_affect_the_new_one() -> None:
    async def play() -> list[dict[str, str]]:
        hub = Hub("p0", "job")
        requests = StepRequests(hub)
        process = {"id": "p0", "title": "rank 0"}
        old = hub.join(process, Silent())
        before = hub.trace(requests.start(None, "")["id"])
        assert old is not None and hub.join(process, Silent())
        requests.reconnected(old)
        after = hub.trace(requests.start(None, "")["id"])
        requests.gone(old)
        return [before.message["missing"], after.message["missing"]]

    assert asyncio.run(play()) == [{"p0": "Its connection broke before it had traced the step."}, {}]
