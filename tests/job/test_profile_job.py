"""A folder of logs that several hosts wrote into opens as a job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import plain_protobuf

from tftracer.job.hub.hub import Hub
from tftracer.job.hub.services import JobServices
from tftracer.job.saved.profile_of_hosts import load_hosts
from tftracer.session.files.saved import open_session


def folder_of(folder: Path, **hosts: str) -> str:
    profile = folder / "plugins/profile/2026_01_01"
    profile.mkdir(parents=True)
    for host, name in hosts.items():
        (profile / f"{host}.xplane.pb").write_bytes(plain_protobuf.content(name))
    return str(folder)


def test_the_same_step_of_two_hosts_is_one_trace_of_the_job(tmp_path: Path) -> None:
    path = folder_of(tmp_path, a="two_threads_tf2.21.xplane.pb.xz", b="two_threads_tf2.15.xplane.pb.xz")
    job = JobServices(Hub("", ""))
    assert load_hosts(job, open_session(path), path)
    assert [member.info["title"] for member in job.hub.members.values()] == ["a", "b"]
    (traced,) = job.hub.traces.values()
    assert (traced.message["ready"], traced.message["missing"], traced.message["state"]) == (["1", "2"], {}, "ready")
    raw = asyncio.run(job.traces.raw(traced, "2"))
    assert raw == plain_protobuf.content("two_threads_tf2.15.xplane.pb.xz")


def test_a_step_that_one_host_lacks_is_said_to_be_missing(tmp_path: Path) -> None:
    path = folder_of(tmp_path, a="convnet_tf2.21.xplane.pb", b="convnet_tf2.15.xplane.pb")
    job = JobServices(Hub("", ""))
    assert load_hosts(job, open_session(path), path)
    titles = {traced.message["run_title"]: traced.message for traced in job.hub.traces.values()}
    assert set(titles) == {"multi_step_on_iterator", "train_function"}
    assert titles["train_function"]["missing"] == {"1": "Its profile holds no such step."}


def test_a_profile_of_one_host_is_no_job(tmp_path: Path) -> None:
    path = folder_of(tmp_path, a="convnet_tf2.21.xplane.pb")
    job = JobServices(Hub("", ""))
    assert not load_hosts(job, open_session(path), path)
    assert not load_hosts(job, open_session(path), f"{path}/plugins/profile/2026_01_01/a.xplane.pb")
    assert not job.hub.members
