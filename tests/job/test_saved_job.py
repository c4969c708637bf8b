"""The job's file: what the hub shows, shown again by a viewer, after all of its processes are gone."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import msgpack
import pytest
from local_jobs import Jobs

from tftracer.job.membership import saved_job_pages
from tftracer.job.saved.job import JOB, JOB_TRACE
from tftracer.session.files.saved import open_session
from tftracer.storage import tftrace_format as tftrace_format
from tftracer.web.app import Options, WebServer


class Viewer:
    def __init__(self, path: Path) -> None:
        self.source = open_session(str(path))
        pages = saved_job_pages(str(path), self.source)
        self.found = bool(pages.routes)
        self.web = WebServer(self.source, Options(0), pages)
        self.web.start()

    def ask(self, path: str) -> bytes:
        url = self.web.url.partition("?")[0] + path
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.web.token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def get(self, path: str) -> Any:
        return json.loads(self.ask(path))

    def close(self) -> None:
        self.web.stop()
        self.source.close()


def test_a_saved_job_is_shown_again(jobs: Jobs, tmp_path: Path) -> None:
    first, _ = jobs.start(2)
    traced = first.trace()
    number = traced["id"]
    first.summed_up(number)
    before = first.job()
    timeline = msgpack.unpackb(first.ask(f"api/job/traces/{number}/timeline"))
    path = tmp_path / "job.tftrace"
    path.write_bytes(first.ask("api/job/file"))
    jobs.close()

    viewer = Viewer(path)
    try:
        job = viewer.get("api/job")
        assert viewer.found and job["name"] == before["name"]
        assert [(p["id"], p["title"]) for p in job["processes"]] == [(p["id"], p["title"]) for p in before["processes"]]
        assert {p["state"] for p in job["processes"]} == {"ended"}
        assert job["traces"][-1] == traced
        assert msgpack.unpackb(viewer.ask(f"api/job/traces/{number}/timeline")) == timeline
        assert len(viewer.get(f"api/job/traces/{number}/analysis")["collectives"]) == 30
        assert viewer.get("api/session")["runs"][0]["traces"], "the hub's own session is in it too"
        assert timeline["nodes"] == 616
        assert viewer.ask("api/job/file")
    finally:
        viewer.close()


def test_a_plain_session_holds_no_job(tmp_path: Path) -> None:
    path = tmp_path / "plain.tftrace"
    path.write_bytes(tftrace_format.header() + tftrace_format.record("session", {"id": "x"}))
    viewer = Viewer(path)
    viewer.close()
    assert not viewer.found


@pytest.mark.parametrize(
    "job",
    [
        {"processes": 7, "traces": [3, {"id": -1}, {"id": "x"}]},
        {
            "processes": [{"id": 3}, {"id": "a", "place": 7, "title": ["x"]}],
            "traces": [{"id": 1, "missing": 7, "steps": {"a": "x"}}],
        },
        {},
    ],
)
def test_a_job_that_makes_no_sense_is_passed_over(tmp_path: Path, job: dict[str, Any]) -> None:
    path = tmp_path / "odd.tftrace"
    part = tftrace_format.record(JOB_TRACE, {"job_trace": 1, "process": "a", "record": {"id": "x"}}, b"no RunMetadata")
    path.write_bytes(
        tftrace_format.header() + tftrace_format.record("session", {"id": "x"}) + tftrace_format.record(JOB, job) + part
    )
    viewer = Viewer(path)
    try:
        assert viewer.get("api/session")["session"]["id"] == "x"
    finally:
        viewer.close()
