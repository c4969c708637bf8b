"""How long a step of an eager loop lasts, whose ops are few and whose Python is long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

MS = 1_000_000


@pytest.mark.parametrize(
    ("fastest_s", "whole_ms"),
    [(None, 20), (0.09, 20), (0.021, 100)],
    ids=("one trace", "all traces are slow", "others are usual"),
)
def test_an_eager_step_lasts_from_its_begin_to_its_end_without_what_tracing_may_take(
    fastest_s: float | None, whole_ms: float
) -> None:
    """Its ops took 2 ms; Python prepared them."""
    raw = (Path(__file__).parents[2] / "data" / "xspace" / "eager_tf2.21.xplane.pb").read_bytes()
    context = TraceContext(step_s=0.1, median_s=0.02, fastest_traced_s=fastest_s, trace_level="profile")
    found = Answers(raw, context).verdict()
    assert found["whole_ns"] == whole_ms * MS
    assert found["sentences"][0]["text"].startswith(f"Of the {whole_ms} ms of this step, {whole_ms - 2} ms (")


def test_the_lines_that_were_sampled_in_eager_steps_say_what_their_python_does() -> None:
    raw = (Path(__file__).parents[2] / "data" / "xspace" / "eager_tf2.21.xplane.pb").read_bytes()
    context = TraceContext(step_s=0.02, median_s=0.02, trace_level="profile", turn_lines="features() (a.py:5) 81%")
    found = Answers(raw, context).verdict()["sentences"][0]["text"]
    assert found.endswith(" Sampled over whole steps, the time between them included: features() (a.py:5) 81%."), found
