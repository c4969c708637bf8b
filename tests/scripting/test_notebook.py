"""What sessions, traces and comparisons show in a notebook, whatever they hold."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from recording import RAW, recording, steps

import tftracer
from tftracer.errors import UnknownError
from tftracer.importers.open_any import open_bytes
from tftracer.scripting.notebook_display import as_html
from tftracer.scripting.session import Session
from tftracer.session.files.imported import model_of
from tftracer.session.files.saved import SavedSession

DATA = Path(__file__).parents[1] / "data"
FILES = ["gpu_timeline_tf1.json", "while_loop_tf2.15_cpu.pb", "versions/2-spool.tftrace", "xspace/convnet_tf2.21.xplane.pb"]


@pytest.mark.parametrize(
    "file", [*FILES, *(str(path.relative_to(DATA)) for path in sorted((DATA / "xspace").glob("*.pb.gz"))[:3])]
)
def test_whatever_was_opened_shows_itself(file: str) -> None:
    with tftracer.open(DATA / file) as session:
        shown, trace = session._repr_html_(), session.trace()
        assert "cannot be" not in shown + trace._repr_html_()
        assert "The newest trace" in shown and session.runs()["title"][0] in html.unescape(shown)
        assert all(sentence for sentence in trace.sentences())
        assert "<iframe" in trace.view()._repr_html_() and trace.number in session.trace_ids()


def test_a_session_without_a_trace_says_so(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 3)
        recorder.save(str(tmp_path / "plain.tftrace"))
    with tftracer.open(tmp_path / "plain.tftrace") as session:
        assert "No step was traced" in session._repr_html_()
        for ask in (session.trace, session.view):
            with pytest.raises(UnknownError, match="holds no trace"):
                ask()
        with pytest.raises(UnknownError):
            session.trace(7)


def test_a_trace_without_a_node_shows_itself() -> None:
    session = Session(SavedSession(model_of(open_bytes(b"\n\x00"))), "empty")
    assert "cannot be" not in session._repr_html_()
    assert "<iframe" in session.view().html


def test_a_cut_file_says_so_and_the_newest_readable_trace_is_shown(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 5, traced={3: RAW, 5: b"\xff\xff\xff"})
        recorder.save(str(tmp_path / "session.tftrace"))
    path = tmp_path / "cut.tftrace"
    path.write_bytes((tmp_path / "session.tftrace").read_bytes()[:-30])
    with tftracer.open(path) as session:
        assert session.facts["cut"] and session.facts["cut"][:30] in session._repr_html_()
        assert session.trace().record["step"] == 3
        assert "This trace cannot be read" in session.trace(2)._repr_html_()
        assert "This trace cannot be read" in session.view(2).html


def test_a_job_names_its_processes() -> None:
    session = tftracer.open(DATA / "horovod_rank0_tf2.15_cpu.pb")
    shown = as_html("job", session.facts, session.run_messages(), [f"rank {rank}" for rank in range(20)], None)
    assert "20 processes: rank 0, rank 1," in shown and "rank 15, and 4 more" in shown


def test_a_comparison_of_sessions_without_traces(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with recording(tmp_path / name) as recorder:
            steps(recorder, 3)
            recorder.save(str(tmp_path / f"{name}.tftrace"))
    before, after = (tftracer.open(tmp_path / f"{name}.tftrace") for name in ("a", "b"))
    shown = before.compare(after)._repr_html_()
    assert "Ops are not compared" in shown and "cannot be shown" not in shown


def test_a_trace_is_saved_as_one_page(tmp_path: Path) -> None:
    with tftracer.open(DATA / "versions/2-saved.tftrace") as session:
        session.trace(3).save(tmp_path / "page.html")
        with pytest.raises(OSError, match="cannot be written"):
            session.trace(3).save(tmp_path / "no folder" / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "tftracer-script" in page and "GradientDescent" in page
