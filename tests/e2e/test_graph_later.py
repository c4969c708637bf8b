"""*Trace with its graph*, on the page of a live script whose function was called before the tracer came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.rig import ROOT, TENSORFLOW, Process, picture
from e2e.tracepage import LONG
from playwright.sync_api import Page, expect


@pytest.fixture
def training(tmp_path: Path) -> Iterator[str]:
    """The page's URL."""
    command = [str(TENSORFLOW), str(ROOT / "tests/e2e/graph_later.py")]
    process = Process(command, tmp_path, TFTRACER_SPOOL_DIR=str(tmp_path / "spool"), PYTHONPATH=str(ROOT))
    yield process.word("URL")
    process.kill()


def test_the_graph_that_runs_comes_with_a_trace_when_it_is_asked_for(page: Page, training: str) -> None:
    page.goto(training)
    page.get_by_role("article").first.get_by_role("heading").get_by_role("link").click()
    ask = page.get_by_role("button", name="Trace with its graph")
    expect(ask).to_be_visible(timeout=LONG)
    traces = page.get_by_role("link", name=re.compile("^Open the trace of step"))
    ask.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("takes longer by that, once")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    expect(traces).to_have_count(0)
    ask.click()
    picture(page, "trace-with-its-graph")
    dialog.get_by_role("button", name="Trace with its graph").click()
    expect(traces.first).to_be_visible(timeout=LONG)
    expect(ask).to_be_hidden(timeout=LONG)  # it is known now
    traces.first.click()
    page.get_by_role("tab", name="Critical path").click()
    path = page.get_by_role("tabpanel")
    expect(path).to_contain_text("the partition graphs that the runtime executed", timeout=LONG)
    expect(path.get_by_text("MatMul").first).to_be_visible()
