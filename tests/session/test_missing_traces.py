"""The message about traces that are missing."""

from __future__ import annotations

from tftracer.session.missing_traces import MissingTraces


def test_it_counts_all_and_names_ranges_of_the_first() -> None:
    missing = MissingTraces()
    missing.add("loss", [7])
    assert missing.changed
    assert missing.message() == "1 trace is missing, because the disk or the profiler did not keep up: 'loss', step 7."
    assert not missing.changed
    missing.add("loss", [8, 9, 12])
    missing.add("eval", [1])
    assert "5 traces are missing" in missing.message() and "'loss', steps 7-9, 12; 'eval', step 1." in missing.message()
    for step in range(20, 60, 2):
        missing.add("loss", [step])
    for number in range(10):
        missing.add(f"run {number}", [1])
    assert "35 traces are missing" in missing.message()
    assert "'loss', steps 7-9, 12, 20, 22, 24 and later ones" in missing.message()
    assert missing.message().endswith("; and of other runs.")
