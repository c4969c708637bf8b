"""A script with hundreds of runs: the overview holds the cards in sight, finds any run, and tells long names apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from e2e.rig import start_viewer
from e2e.tracepage import LONG
from playwright.sync_api import Page, expect
from recording import Tensor, recording

RUNS = 862
SCOPE = "model/tower_with_a_long_name/encoder/layer_of_the_encoder"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a viewer of a session of 862 runs."""
    folder = tmp_path_factory.mktemp("many")
    with recording(folder) as recorder:
        for number in range(RUNS):
            fetches, feeds = (Tensor(f"train_{number}"),), (Tensor(f"{SCOPE}/batch_{number}:0"),)
            start = number * 20_000_000
            recorder.queue.add((fetches, feeds, None, start, start + 9_000_000, threading.get_ident(), None))
        assert recorder.flush()
        recorder.save(str(folder / "many.tftrace"))
    viewer, url = start_viewer(folder, folder / "many.tftrace")
    yield url
    viewer.kill()


def test_only_the_cards_near_the_window_are_in_the_page(page: Page, many: str) -> None:
    page.goto(many)
    expect(page.get_by_role("article").first).to_be_visible(timeout=LONG)
    expect(page.get_by_text(f"{RUNS} runs")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < 6_000
    last = page.get_by_role("article", name=f"train_{RUNS - 1}", exact=True)
    expect(last).to_have_count(0)
    page.keyboard.press("End")
    expect(last).to_be_in_viewport(timeout=LONG)
    assert page.get_by_role("article").count() < 100


def test_a_run_is_found_by_a_name_in_it(page: Page, many: str) -> None:
    page.goto(many)
    page.get_by_role("searchbox", name="Search runs").fill("batch_777")
    expect(page.get_by_role("article")).to_have_count(1, timeout=LONG)
    expect(page.get_by_role("article")).to_contain_text("train_777")


def test_the_end_of_a_long_name_is_seen(page: Page, many: str) -> None:
    page.goto(many)
    card = page.get_by_role("article").first
    last = card.get_by_text("batch_0", exact=True)
    expect(last).to_be_visible(timeout=LONG)
    assert last.evaluate("part => part.scrollWidth <= part.clientWidth")
    scope = card.get_by_text(f"{SCOPE}/", exact=True)
    assert scope.evaluate("part => part.scrollWidth > part.clientWidth")
