"""A Keras script under ``tftracer run``, unchanged: its page lists fit, and the next step opens op by op."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.rig import ROOT, TENSORFLOW, picture
from e2e.tracepage import LONG
from playwright.sync_api import Page, expect


@pytest.fixture
def keras(tmp_path: Path) -> Iterator[str]:
    """The page's URL of examples/keras_fit.py, which trains until it is killed."""
    command = [
        str(TENSORFLOW),
        "-m",
        "tftracer",
        "run",
        "--port",
        "0",
        str(ROOT / "examples/keras_fit.py"),
        "--epochs",
        "1000000",
    ]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TFTRACER_SPOOL_DIR": str(tmp_path / "spool")}
    output = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    yield next(line.split()[-1] for line in process.stderr if "watch and trace this training at" in line)
    process.kill()
    process.communicate()


def test_a_step_of_fit_is_listed_traced_and_opened(page: Page, keras: str) -> None:
    page.goto(keras)
    card = page.get_by_role("article").first
    expect(card.get_by_role("heading", name="fit: convnet")).to_be_visible(timeout=LONG)
    expect(card.get_by_text("Keras", exact=True)).to_be_visible()
    expect(page.get_by_text("Training", exact=True)).to_be_visible(timeout=LONG)
    card.get_by_role("button", name="Trace next step").click()
    link = card.get_by_role("link", name=re.compile("^Open the trace of step")).first
    expect(link).to_be_visible(timeout=LONG)
    picture(page, "keras-overview")
    link.click()
    expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
    expect(page.locator(".sentence").first).to_be_visible(timeout=LONG)
    expect(page.get_by_text("tf.data", exact=True).first).to_be_visible()
    picture(page, "keras")
    page.get_by_role("tab", name="Ops").click()
    expect(page.get_by_role("tabpanel").get_by_text(re.compile("Conv2D")).first).to_be_visible(timeout=LONG)
