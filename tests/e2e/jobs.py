"""Jobs of several processes for the browser tests: ranks on this host that find each other as Horovod's do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from e2e.rig import ROOT, Process
from job_page import LATE
from playwright.sync_api import Locator, Page, expect

SIZE = 3
LONG = 60_000
REQUESTS = 20


class Job:
    """``urls``: of each rank's page; the first is the job's."""

    traced = ""  # the number of a step that was traced on all

    def __init__(self, folder: Path, size: int = SIZE) -> None:
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

    def kill(self) -> None:
        for process in self.ranks:
            process.kill()


def row(page: Page, title: str) -> Locator:
    return page.get_by_role("grid", name="Processes").get_by_role("row").filter(has_text=title)


def trace_on_all(page: Page, whom: str = "all ranks", size: int = SIZE) -> Locator:
    """The link to a step that was traced on all of them, which has opened by itself. On a busy machine a request may be late:
    then another."""
    view = page.get_by_test_id("trace-view")
    traces = page.get_by_role("region", name="Steps traced together").get_by_role("listitem")
    newest = traces.first
    for _ in range(REQUESTS):
        earlier = traces.count()
        page.get_by_role("button", name=f"Trace a step on {whom}").click()
        expect(view.or_(traces.nth(earlier))).to_be_visible()
        late = newest.filter(has_text=re.compile("|".join(LATE)))
        expect(view.or_(late)).to_be_visible(timeout=LONG)
        if view.is_visible():
            break
    page.go_back()
    expect(newest).to_contain_text(f"{size} of {size} ranks")
    return newest.get_by_role("link", name=re.compile(r"^Step \d+$"))


def painted(page: Page) -> None:
    expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
