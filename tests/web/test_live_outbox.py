"""The outbox joins and bounds waiting messages; the rate never exceeds ten messages a second."""

from __future__ import annotations

from functools import partial
from typing import Any

from fake_source import a_run, a_session, a_trace
from hypothesis import given
from hypothesis import strategies as st

from tftracer.contract.live import LiveMessage
from tftracer.web.live_feed import MAX_TRACES, MESSAGES_PER_S, PRIORITIES, MessageRate, Outbox, Priority


def run_update(number: int, count: int) -> LiveMessage:
    payload: Any = {**a_run(number, []), "steps": count}
    del payload["traces"]
    return {"type": "run", "payload": payload}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.floats(0, 0.3), st.sampled_from(PRIORITIES)), max_size=300), st.integers(1, 300))
def test_never_more_than_ten_in_any_second(waits: list[tuple[float, Priority]], clients: int) -> None:
    clock = Clock()
    rate = MessageRate(clock)
    sent: list[float] = []
    for wait, priority in waits:
        clock.now += wait
        if rate.allows(priority, clients):
            rate.count(priority)
            sent.append(clock.now)
    for first in sent:
        assert sum(first <= at <= first + 1.0 for at in sent) <= MESSAGES_PER_S


def test_progress_leaves_room_for_urgent_messages() -> None:
    clock = Clock()
    rate = MessageRate(clock)
    for tick in range(100):
        clock.now = tick / 20
        assert rate.allows("urgent", 1)
        if rate.allows("progress", 1):
            rate.count("progress")


def test_a_hundred_browsers_get_progress_less_often() -> None:
    clock = Clock()
    rate = MessageRate(clock)
    rate.count("progress")
    clock.now = 0.4
    assert rate.allows("progress", 1)
    assert not rate.allows("progress", 100)


def test_changes_of_the_job_are_joined_and_replaced_by_the_whole_job() -> None:
    def rows(*steps: tuple[str, int]) -> LiveMessage:
        processes: Any = [{"id": who, "steps": count} for who, count in steps]
        return {"type": "job_changes", "payload": {"processes": processes, "traces": []}}

    job: Any = {"type": "job", "payload": {"name": "j"}}
    outbox = Outbox()
    outbox.put(rows(("a", 1), ("b", 1)))
    outbox.put(rows(("a", 2), ("c", 1)))
    sent: Any = outbox.take("urgent")
    assert {p["id"]: p["steps"] for p in sent["payload"]["processes"]} == {"a": 2, "b": 1, "c": 1}
    for message in (rows(("a", 3)), job, rows(("b", 4))):
        outbox.put(message)
    assert [outbox.take("urgent"), outbox.take("urgent"), outbox.take("urgent")] == [job, rows(("b", 4)), None]


def test_the_outbox_is_bounded_by_the_number_of_subjects() -> None:
    outbox = Outbox()
    for count in range(1000):
        outbox.put(run_update(count % 3, count))
        outbox.put({"type": "session", "payload": a_session()})
        outbox.put({"type": "trace", "payload": a_trace(count % 4, 1)})
    taken = [message for priority in PRIORITIES for message in iter(partial(outbox.take, priority), None)]
    assert len(taken) == 3 + 1 + 4


def test_a_removed_trace_replaces_its_update() -> None:
    outbox = Outbox()
    outbox.put({"type": "trace", "payload": a_trace(1, 1)})
    outbox.put({"type": "trace_removed", "payload": a_trace(1, 1)})
    last = outbox.take("urgent")
    assert last is not None
    assert last["type"] == "trace_removed" and outbox.take("urgent") is None


def test_too_many_traces_become_one_snapshot() -> None:
    outbox = Outbox()
    outbox.put({"type": "session", "payload": a_session()})
    for number in range(1, 2 * MAX_TRACES):
        outbox.put({"type": "trace", "payload": a_trace(number, 1)})
    assert outbox.take_snapshot_request()
    assert not outbox.take_snapshot_request()
    first = outbox.take("urgent")
    assert first is not None
    assert first["type"] == "session"
    assert outbox.take("urgent") is None
