"""A job of several processes in a real browser: its page, one step traced on all of them, a process that is killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.jobs import LONG, SIZE, Job, painted, row, trace_on_all
from e2e.rig import picture, start_viewer
from playwright.sync_api import Page, expect

from tftracer.job.saved.job import JOB_TRACE
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.tftrace_reader import Reader


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    started = Job(tmp_path)
    yield started
    started.kill()


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


def test_a_step_is_traced_on_those_that_are_ticked(job: Job, page: Page) -> None:
    job.open(page)
    for title in ("rank 0", "rank 2"):
        page.get_by_role("checkbox", name=f"Trace a step on {title}").check()
    link = trace_on_all(page, "2 ranks", 2)
    expect(row(page, "rank 1").get_by_role("gridcell").nth(8)).to_have_text("0")
    link.click()
    painted(page)
    expect(page.get_by_test_id("group-rank 2")).to_have_count(1)
    expect(page.get_by_test_id("group-rank 1")).to_have_count(0)


def test_the_job_is_saved_as_one_file_and_reopened(job: Job, page: Page, tmp_path: Path) -> None:
    job.open(page)
    trace_on_all(page)
    with page.expect_download() as started:
        page.get_by_role("button", name="Save the job").click()
    assert started.value.suggested_filename.endswith(".tftrace")
    saved = tmp_path / "job.tftrace"
    started.value.save_as(saved)
    parts = [record.meta["job_trace"] for record in Reader(FileBytes(saved)) if record.type == JOB_TRACE]
    assert parts.count(max(parts)) == SIZE
    job.kill()
    viewer, url = start_viewer(tmp_path, saved)
    try:
        page.goto(url)  # opens as a job
        expect(page).to_have_url(re.compile("/job$"), timeout=LONG)
        expect(page.get_by_text("Ended", exact=True)).to_have_count(SIZE, timeout=LONG)
        page.get_by_role("link", name=re.compile(r"^Step \d+$")).first.click()
        painted(page)
        expect(page.get_by_test_id(f"group-rank {SIZE - 1}")).to_have_count(1)
    finally:
        viewer.kill()


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
