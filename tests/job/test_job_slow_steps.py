"""Slow steps in a job: the hub knows how many each rank had, and asks a rank for them."""

from __future__ import annotations

from typing import Any

from fake_source import a_run, a_session, a_trace
from job_page import wait_for
from local_jobs import Jobs, Rank
from made_stalls import a_period, a_save, put

from tftracer.job.agent.heartbeat import totals
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


def test_a_rank_that_waits_tells_what_its_trace_says() -> None:
    trace, text = a_trace(7, 100), "Every 50th step: the cause is not known"
    trace["headline"] = "Communication runs for 99% of the step."
    run = a_run(1, [trace])
    run["slow_steps"] |= {"count": 3, "text": text, "trace_id": 7}
    assert totals(a_session(), [run], None)["slow_text"] == f"{text}. Trace 7, of step 2, says: {trace['headline']}"
    run["slow_steps"]["trace_id"] = None
    assert totals(a_session(), [run], None)["slow_text"] == text


def processes(hub: Rank) -> list[dict[str, Any]]:
    return list(hub.job()["processes"])


def test_a_process_of_another_version_that_does_not_tell_is_not_said_to_have_none() -> None:
    info = Hub("hub", "job").process("older", {"title": "rank 7", "steps": 5})
    assert info["slow_steps"] is None and info["slow_text"] == ""
