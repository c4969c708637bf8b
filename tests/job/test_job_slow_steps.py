"""Slow steps in a job: the hub knows how many each rank had, and asks a rank for them."""

from __future__ import annotations

from typing import Any

from job_page import wait_for
from local_jobs import Jobs, Rank
from made_stalls import a_period, a_save, put

from tftracer.job.hub.hub import Hub


def test_the_slow_steps_of_each_rank_are_known_to_the_hub_and_asked_through_it(jobs: Jobs) -> None:
    hub, other = jobs.stepped(2)
    (live,) = other.recorder.store.live_runs.values()
    put(other.recorder, a_save(live.handle, 1), a_period(live.handle))
    wait_for(lambda: processes(hub)[1]["slow_steps"] == 1, "the rank's heartbeat")
    first, second = processes(hub)
    assert (first["slow_steps"], first["slow_text"]) == (0, "")
    assert second["slow_text"].startswith("Every 97th step: the hook CheckpointSaverHook")
    listed = hub.get(f"{second['url']}api/stalls")
    assert [stall["step"] for stall in listed["stalls"]] == [1] and listed["periods"][0]["every"] == 97
    detail = hub.get(f"{second['url']}api/stalls/{listed['stalls'][0]['id']}")
    assert detail["stacks"]["frames"]


def processes(hub: Rank) -> list[dict[str, Any]]:
    return list(hub.job()["processes"])


def test_a_process_of_another_version_that_does_not_tell_is_not_said_to_have_none() -> None:
    info = Hub("hub", "job").process("older", {"title": "rank 7", "steps": 5})
    assert info["slow_steps"] is None and info["slow_text"] == ""
