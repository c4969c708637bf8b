"""The public workflow: it calls targets of the Makefile, on all versions that are promised, and one gate waits for all jobs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def local() -> Any:
    """.ci/workflow.py, which runs the workflow on one machine."""
    spec = importlib.util.spec_from_file_location("workflow", ROOT / ".ci/workflow.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(local: Any, jobs: dict[str, Any]) -> list[tuple[str, str]]:
    """(job, command) of every step on every machine, without the gate's."""
    return [
        (name, local.filled(step["run"], values))
        for name, job in jobs.items() if name != "gate"
        for values in local.variants(job) for step in job["steps"] if "run" in step
    ]  # fmt: skip


def test_every_step_is_a_target_of_the_makefile(local: Any) -> None:
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    steps = commands(local, local.workflow()["jobs"])
    assert len(steps) > 15
    for _, command in steps:
        make, *named = command.split()
        assert make == "make" and named and set(named) <= targets, command


def test_all_promised_versions_are_tried(local: Any) -> None:
    jobs = local.workflow()["jobs"]
    promised = set(re.findall(r"Python :: (3\.\d+)", PROJECT))
    for job in ("unit", "distributions"):
        assert {values["python"] for values in local.variants(jobs[job])} == promised
    targets = [command.split()[1] for job, command in commands(local, jobs) if job == "tensorflow"]
    recipes = dict(re.findall(r"^([\w-]+):(.*)$", MAKEFILE, re.MULTILINE))
    assert {version for target in targets for version in re.findall(r"\.envs/tf(\d+)", recipes[target])} == {
        "212",
        "215",
        "218",
        "221",
    }
    assert {"test-lowest", "test-e2e", "lint", "frontend-check", "docs"} <= {
        command.split()[1] for _, command in commands(local, jobs)
    }


def test_the_gate_waits_for_every_job_and_is_green_only_with_all(local: Any) -> None:
    jobs = local.workflow()["jobs"]
    gate = jobs["gate"]
    assert set(gate["needs"]) == set(jobs) - {"gate"} and gate["if"] == "always()"
    (step,) = gate["steps"]
    assert all(f"contains(needs.*.result, '{result}')" in step["run"] for result in ("failure", "cancelled", "skipped"))


@pytest.mark.parametrize(("code", "passes"), [("true", True), ("false", False), ("echo a; exit 3; true", False)])
def test_a_local_job_passes_only_with_all_its_commands(local: Any, tmp_path: Path, code: str, passes: bool) -> None:
    steps = [
        {"uses": "actions/checkout@v4"},
        {"run": "test ${{ matrix.word }} = yes"},
        {"run": code},
        {"run": "test -f Makefile"},
    ]
    job = {"strategy": {"matrix": {"word": ["yes"]}}, "steps": steps}
    (values,) = local.variants(job)
    assert local.run("tried", job, values, tmp_path) is passes
