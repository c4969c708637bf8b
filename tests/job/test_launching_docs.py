"""The lines of docs/launching do what their pages say: parsed, held against the code, given to ranks as launchers would."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import textwrap
from pathlib import Path

import pytest

from tftracer.job.agent.discovery import Plan, make_plan
from tftracer.server import TracingServer
from tftracer.session.process.launcher import detect_launcher

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/launching"
PAGES = sorted(FOLDER.glob("*.rst"))
#: The second rank of a job on two hosts, as its launcher leaves it.
SECOND = {
    "horovod": {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.9"},
    "openmpi": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "5"},
    "ddl": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "5"},
    "mpich": {"PMI_RANK": "1", "PMI_SIZE": "2"},
    "slurm": {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "node[1-2]"},
    "parameter-server": {},
}


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page, without their margin."""
    texts = re.findall(rf"^\.\. code-block:: {language}\n\n((?:(?: .*)?\n)+)", page.read_text(), re.MULTILINE)
    return [textwrap.dedent(block).strip() for block in texts]


def settings(line: str) -> dict[str, str]:
    """The TFTRACER variables that a shell line sets, in any of the launchers' ways: ``A=b``, ``-genv A b``."""
    words = shlex.split(line.replace('"', " ").replace("$(openssl rand -hex 16)", "0123"))
    variables = dict(word.split("=", 1) for word in words if word.startswith("TFTRACER_") and "=" in word)
    variables.update((name, value) for flag, name, value in zip(words, words[1:], words[2:]) if flag == "-genv")
    return variables


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_listed_and_says_what_it_takes(page: Path) -> None:
    index = (ROOT / "docs/launching.rst").read_text()
    assert f"   launching/{page.stem}\n" in index and f":doc:`launching/{page.stem}`" in index
    assert blocks(page, "python") + blocks(page, "sh")
    assert all(len(block.splitlines()) <= 3 for block in blocks(page, "python") + blocks(page, "sh"))


def test_the_index_lists_no_page_that_is_not_there() -> None:
    listed = re.findall(r"^   launching/(\S+)$", (ROOT / "docs/launching.rst").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.stem for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    code = "\n".join(path.read_text() for path in (ROOT / "tftracer").rglob("*.py"))
    assert all(f'"{name}"' in code for name in re.findall(r"TFTRACER_[A-Z_]+[A-Z]", text))
    assert all((ROOT / name).exists() for name in re.findall(r"examples/\w+\.py", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_lines_of_python_are_right(page: Path) -> None:
    parameters = set(inspect.signature(TracingServer).parameters)
    for block in blocks(page, "python"):
        complete = block + "\n    pass" if block.endswith(":") else block
        calls = [node for node in ast.walk(ast.parse(complete)) if isinstance(node, ast.Call)]
        made = [call for call in calls if ast.unparse(call.func) in ("tftracer.TracingServer", "tftracer.hook_inject")]
        assert {keyword.arg for call in made for keyword in call.keywords} <= parameters
        assert made or "server.hook" in block


@pytest.mark.parametrize("launcher", SECOND)
def test_a_rank_on_another_host_finds_the_hub_by_the_pages_line(launcher: str) -> None:
    lines = [settings(line) for block in blocks(FOLDER / f"{launcher}.rst", "sh") for line in block.splitlines()]
    (given,) = [line for line in lines if "TFTRACER_TOKEN" in line]
    environ = {**SECOND[launcher], **given}
    plan: Plan = make_plan(detect_launcher(environ, {}), environ, shared_token=bool(given["TFTRACER_TOKEN"]))
    assert (plan.targets()[0].host, plan.targets()[0].port) == ("node1", 9999)
