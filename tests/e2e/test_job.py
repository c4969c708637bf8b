"""A job of several processes in a real browser: its page, one step traced on all of them, a process that is killed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from rig import ROOT, Process, picture

SIZE = 3
LONG = 60_000


class Job:
    """Ranks on this host that find each other as Horovod's do."""

    def __init__(self, folder: Path, size: int) -> None:
        self.ranks = [self._start(folder / f"rank{rank}", rank, size) for rank in range(size)]
        self.urls = [process.word("URL") for process in self.ranks]

    @staticmethod
    def _start(folder: Path, rank: int, size: int) -> Process:
        folder.mkdir()
        horovod = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "GLOO_RENDEZVOUS_PORT": 4321}
        places = {f"HOROVOD_{name}": str(value) for name, value in horovod.items()}
        places["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = "127.0.0.1"
        files = {"TFTRACER_HUB_DIR": str(folder.parent / "hubs"), "TFTRACER_SPOOL_DIR": str(folder)}
        return Process([sys.executable, str(ROOT / "tests/e2e/rank.py"), str(rank)], folder, **places, **files)

    def open(self, page: Page) -> None:
        """The job's page, when all have joined."""
        base, _, token = self.urls[0].partition("?")
        page.goto(f"{base}job?{token}")
        expect(page.get_by_text("Running", exact=True)).to_have_count(len(self.ranks), timeout=LONG)
        expect(row(page, "rank 0").get_by_role("gridcell").nth(4)).not_to_have_text("0", timeout=LONG)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    started = Job(tmp_path, SIZE)
    yield started
    for process in started.ranks:
        process.kill()


def row(page: Page, title: str) -> Locator:
    return page.get_by_role("grid", name="Processes").get_by_role("row").filter(has_text=title)


def trace_on_all(page: Page) -> Locator:
    """The link to a step that was traced on all ranks."""
    page.get_by_role("button", name="Trace a step on all ranks").click()
    expect(page.get_by_text(f"{SIZE} of {SIZE} ranks")).to_be_visible(timeout=LONG)
    return page.get_by_role("link", name=re.compile(r"^Step \d+$"))


def painted(page: Page) -> None:
    expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)


def test_the_jobs_page_lists_its_processes_live(job: Job, page: Page) -> None:
    job.open(page)
    for rank in range(SIZE):
        expect(row(page, f"rank {rank}")).to_be_visible()
    steps = row(page, "rank 1").get_by_role("gridcell").nth(4)
    expect(steps).not_to_have_text(steps.inner_text(), timeout=LONG)  # it counts
    picture(page, "job")


def test_a_step_traced_on_all_ranks_opens_as_one_timeline(job: Job, page: Page) -> None:
    job.open(page)
    trace_on_all(page).click()
    painted(page)
    for rank in range(SIZE):
        expect(page.get_by_test_id(f"group-rank {rank}")).to_have_count(1)
    fold = page.get_by_test_id("group-rank 0")
    expect(fold).to_have_attribute("aria-expanded", "true")
    fold.click()
    expect(fold).to_have_attribute("aria-expanded", "false")
    page.get_by_test_id("tab-ranks").click()
    for rank in range(SIZE):
        expect(page.get_by_test_id(f"straggler-rank {rank}")).to_contain_text(f"rank {rank}", timeout=LONG)
    collectives = page.get_by_role("grid", name="Collectives")
    expect(collectives).to_have_attribute("aria-rowcount", "31")  # 30 and the head
    expect(page.get_by_role("grid", name="Clocks").get_by_role("row")).to_have_count(1 + SIZE)
    picture(page, "job-trace")
    page.reload()
    painted(page)
    expect(page.get_by_test_id("tab-ranks")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("group-rank 0")).to_have_attribute("aria-expanded", "false")


def test_an_op_of_the_jobs_timeline_has_its_details(job: Job, page: Page) -> None:
    job.open(page)
    trace_on_all(page).click()
    painted(page)
    page.goto(page.url.split("?")[0] + "?node=400")
    expect(page.get_by_test_id("details")).to_contain_text("rank 1 CPU:0", timeout=LONG)
    page.get_by_test_id("tab-ops").click()
    expect(page.get_by_role("tabpanel").get_by_text("HorovodAllreduce").first).to_be_visible(timeout=LONG)


def test_each_process_has_its_own_page_behind_the_hub(job: Job, page: Page) -> None:
    job.open(page)
    trace_on_all(page)
    row(page, "rank 1").get_by_role("link").click()
    page.wait_for_url(re.compile(r"/job/processes/[^/]+/$"), timeout=LONG)
    page.get_by_role("link", name=re.compile("Open the trace of step")).first.click()
    painted(page)
    expect(page).to_have_url(re.compile(r"/job/processes/[^/]+/traces/\d+"))
    page.reload()
    painted(page)


def test_a_process_that_is_killed_is_lost(job: Job, page: Page) -> None:
    job.open(page)
    job.ranks[2].kill()
    gone = row(page, "rank 2")
    expect(gone).to_contain_text("Lost", timeout=LONG)
    expect(gone.get_by_role("link")).to_have_count(0)
    expect(page.get_by_text("Running", exact=True)).to_have_count(SIZE - 1)
