"""Where the time of a job's processes went: each tells the hub, in parts that add up to its wall time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from job_page import wait_for
from local_jobs import Jobs, Rank

from tftracer.job.agent import heartbeat
from tftracer.job.hub.hub import Hub


def test_each_rank_tells_the_hub_where_its_time_went(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "LEDGER_S", 0.1)
    hub, other = jobs.stepped(2)
    own = other.recorder.ledger()
    assert own["started_at"] is not None
    wait_for(lambda: all("steps" in process["time_s"] for process in processes(hub)), "the ranks' heartbeats")
    told = processes(hub)[1]["time_s"]
    assert own["duration_s"] <= sum(told.values()) <= time.time() - own["started_at"]


@pytest.mark.parametrize("given", [None, 7, {"steps": "many", "start": -1, "else": 3.0}, {"steps": float("nan")}])
def test_what_a_process_tells_is_believed_as_far_as_types_go(given: Any) -> None:
    info = Hub("hub", "job").process("p", {"title": "rank 7", "time_s": given})
    assert info["time_s"] == {}
    assert Hub("hub", "job").process("p", {"time_s": {"steps": 3.5, "else": 1.0}})["time_s"] == {"steps": 3.5}


def processes(hub: Rank) -> list[dict[str, Any]]:
    return list(hub.job()["processes"])
