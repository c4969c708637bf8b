"""Pages in frames: inside the notebook, or in a file beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.display.iframe import file_name, framed

PAGE = '<!doctype html><p title="a">\'&amp;</p>'


def test_a_small_page_is_inside_the_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = framed(PAGE, 'step "1" <b>', height=300)
    assert 'srcdoc="&lt;!doctype html&gt;&lt;p title=&quot;a&quot;&gt;&#x27;&amp;amp;&lt;/p&gt;"' in frame.html
    assert 'sandbox="allow-scripts allow-downloads"' in frame.html and "height: 300px" in frame.html
    assert 'title="step &quot;1&quot; &lt;b&gt;"' in frame.html
    assert frame.file == "" and list(tmp_path.iterdir()) == []


def test_a_large_page_is_a_file_that_the_frame_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE + "x" * 2_000_000
    frame = framed(page, "../train & <step>")
    (file,) = tmp_path.iterdir()
    assert re.fullmatch(r"tftracer-train-step-[0-9a-f]{16}\.html", file.name)
    assert file.read_text() == page and frame.file == str(file)
    assert f'src="{file.name}"' in frame.html and str(file) in frame.html and "2.0 MB" in frame.html
    framed(page, "../train & <step>")
    framed(page + "y", "../train & <step>")
    assert len(list(tmp_path.iterdir())) == 2, "the same page is one file, another page is another"


def test_where_no_file_can_be_written_the_page_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    page = PAGE + "x" * 1_000_001
    (folder / file_name("t", page.encode())).mkdir()  # nobody can write a file of that name, not even root
    frame = framed(page, "t")
    assert "srcdoc=" in frame.html and "inside this notebook" in frame.html and "cannot be written" in frame.html


@given(st.text(), st.binary(max_size=20))
def test_a_file_s_name_is_safe(title: str, content: bytes) -> None:
    assert re.fullmatch(r"tftracer-[A-Za-z0-9][A-Za-z0-9-]{0,59}-[0-9a-f]{16}\.html", file_name(title, content))


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (-5, 100), (10**9, 10_000), (250.7, 250)])
def test_heights_have_bounds(asked: float, given: int) -> None:
    assert f"height: {given}px" in framed(PAGE, "t", height=asked).html  # type: ignore[arg-type]
