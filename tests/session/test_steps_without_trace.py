"""The message about traces that are missing."""

from __future__ import annotations

from tftracer.session.traces.steps_without_trace import MissingTraces


def test_it_counts_all_and_names_ranges_of_the_first() -> None:
    missing = MissingTraces()
    missing.add("loss", 7, "the disk is slow")
    assert missing.changed
    assert missing.message() == "1 trace is missing, because the disk is slow: 'loss', step 7."
    assert not missing.changed
    for step in (8, 9, 12):
        missing.add("loss", step, "the disk is slow")
    missing.add("eval", 1, "the profiler was busy")
    assert "because the disk is slow, or the profiler was busy: " in missing.message()
    assert "5 traces are missing" in missing.message() and "'loss', steps 7-9, 12; 'eval', step 1." in missing.message()
    for step in range(20, 60, 2):
        missing.add("loss", step, "the disk is slow")
    for number in range(10):
        missing.add(f"run {number}", 1, "the disk is slow")
    assert "35 traces are missing" in missing.message()
    assert "'loss', steps 7-9, 12, 20, 22, 24 and later ones" in missing.message()
    assert missing.message().endswith("; and of other runs.")
