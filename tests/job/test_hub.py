"""What the hub keeps of its processes, and what it sends to pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tftracer.contract.live import JobChangesUpdate, JobUpdate
from tftracer.job.hub.hub import Hub, Member
from tftracer.job.hub.replies import Reply
from tftracer.job.hub.services import PageUpdates
from tftracer.job.wire.protocol import Message

PLACE = {"rank": 0, "size": 3, "local_rank": 0, "role": "worker", "task": None, "launcher": "horovod"}


class NoConnection:
    """Nothing may be sent on it."""

    def post(self, kind: str, **fields: Any) -> None:
        raise AssertionError(f"sent {kind}")

    def ask(self, kind: str, **fields: Any) -> AbstractAsyncContextManager[Reply]:
        raise AssertionError(f"asked {kind}")

    def drop(self, reason: str) -> None:
        raise AssertionError(f"dropped: {reason}")


def fields(rank: int, **changes: Any) -> Message:
    return {"id": f"p{rank}", "title": f"rank {rank}", "host": "h", "pid": 7, "place": {**PLACE, "rank": rank}, **changes}


def hub_of(count: int) -> tuple[Hub, list[Member]]:
    hub = Hub("p0", "job")
    members = [hub.join(fields(rank), NoConnection()) for rank in reversed(range(count))]
    assert hub.take_update()["type"] == "job" and all(members)
    return hub, [hub.members[f"p{rank}"] for rank in range(count)]


def rows(news: JobUpdate | JobChangesUpdate) -> list[tuple[str, int]]:
    assert news["type"] == "job_changes"
    return sorted((p["id"], p["steps"]) for p in news["payload"]["processes"])


def test_pages_are_sent_the_rows_that_changed() -> None:
    hub, members = hub_of(3)
    hub.heartbeat(members[1], {"t": "beat", "steps": 5, "mean_s": 0.5})
    hub.heartbeat(members[1], {"t": "beat", "steps": 6, "mean_s": 0.5})
    hub.leave(members[2], "ended")
    assert rows(hub.take_update()) == [("p1", 6), ("p2", 0)]
    assert rows(hub.take_update()) == []
    assert members[1].info["title"] == "rank 1" and members[2].info["state"] == "ended"


def test_a_process_that_has_ended_has_no_rate() -> None:
    hub, members = hub_of(2)
    hub.heartbeat(members[1], {"t": "beat", "steps": 5, "steps_per_s": 2.5, "mean_s": 0.5})
    assert members[1].info["steps_per_s"] == 2.5
    hub.leave(members[1], "lost")
    assert members[1].info["steps_per_s"] is None and members[1].info["mean_s"] == 0.5


def test_a_new_process_or_title_changes_the_whole_job() -> None:
    hub, members = hub_of(2)
    hub.heartbeat(members[0], {"t": "beat", "process": {**fields(0), "title": "chief/0", "steps": 3}})
    news = hub.take_update()
    assert news["type"] == "job" and [p["title"] for p in news["payload"]["processes"]] == ["chief/0", "rank 1"]
    hub.join(fields(2), NoConnection())
    assert hub.take_update()["type"] == "job"


def test_a_trace_is_updated_as_records_come_in() -> None:
    hub, members = hub_of(3)
    traced = hub.new_trace(["p2", "p0", "p1"], "")
    record: Any = {"id": 1, "step": 4}
    hub.add_record(traced, "p2", record)
    hub.add_record(traced, "p0", record)
    hub.add_record(traced, "p0", record)
    news = hub.take_update()
    assert news["type"] == "job_changes"
    (trace,) = news["payload"]["traces"]
    assert (trace["state"], trace["ready"]) == ("pending", ["p2", "p0"])
    hub.add_missing(traced, {"p1": "It was lost.", "p9": "It is no rank of this one."})
    (trace,) = hub.take_update()["payload"]["traces"]
    assert (trace["state"], trace["ready"], trace["missing"]) == ("partial", ["p0", "p2"], {"p1": "It was lost."})
    hub.add_record(traced, "p1", record)
    (trace,) = hub.take_update()["payload"]["traces"]
    assert (trace["state"], trace["ready"], trace["missing"]) == ("ready", ["p0", "p1", "p2"], {})
    assert len(members) == 3


def in_a_loop(play: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return play()

    return asyncio.run(run())


@pytest.mark.parametrize("watched", [False, True])
def test_no_update_is_scheduled_without_viewers(watched: bool) -> None:
    hub, members = hub_of(2)
    updates = PageUpdates(hub, lambda message: None, lambda: watched)

    def beats() -> bool:
        for _ in range(10):
            hub.heartbeat(members[0], {"t": "beat", "steps": 5})
        return updates.is_scheduled

    assert in_a_loop(beats) is watched


def test_beats_come_less_often_in_a_large_job() -> None:
    hub = Hub("p0", "job")
    paces = []
    for rank in range(1200):
        hub.join(fields(rank), NoConnection())
        paces.append(hub.interval_s)
    assert paces[0] == 1.0 and paces == sorted(paces) and paces[-1] == pytest.approx(20.0)
