"""What real launchers leave in the environment of the two ranks that they start (tests/data/launchers.json), read and joined."""

from __future__ import annotations

import json

import pytest
from local_jobs import DATA, Jobs

from tftracer.contract.session import LauncherInfo
from tftracer.job.agent.discovery import make_plan
from tftracer.session.process.launcher import Environment, detect_launcher

LAUNCHERS: dict[str, list[dict[str, str]]] = json.loads((DATA / "launchers.json").read_text())


def detected(environ: Environment) -> LauncherInfo:
    return detect_launcher(environ, {})


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_each_rank_knows_its_rank(launcher: str) -> None:
    places = [detected(environ) for environ in LAUNCHERS[launcher]]
    assert [(p["rank"], p["size"], p["local_rank"], p["role"]) for p in places] == [(0, 2, 0, "worker"), (1, 2, 1, "worker")]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_ranks_agree_on_the_job_and_on_who_leads_it(launcher: str) -> None:
    first, second = (make_plan(detected(environ), environ) for environ in LAUNCHERS[launcher])
    assert first.job == second.job != ""
    assert (first.is_hub, second.is_hub) == (True, False)


@pytest.mark.parametrize("launcher", [name for name in LAUNCHERS if name.startswith("SLURM")])
def test_slurm_tells_where_the_hub_is(launcher: str, jobs: Jobs) -> None:
    environ = LAUNCHERS[launcher][1]
    assert make_plan(detected(environ), environ, shared_token=True).targets()[0].host == "node1"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_its_ranks_meet_on_one_page(launcher: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = []
    for environ in LAUNCHERS[launcher]:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        ranks.append(jobs.by_hand(server_port=0))
    job = ranks[0].joined(2)
    assert [p["title"] for p in job["processes"]] == ["rank 0", "rank 1"]
    assert job["is_hub"] and job["name"].partition("-")[0] in ("horovod", "openmpi", "mpich", "slurm")
