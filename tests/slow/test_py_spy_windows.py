"""Windows of py-spy's samples: what counts, and what is said where it fails."""

from __future__ import annotations

import pytest

from tftracer.slow.watch.py_spy_windows import count_samples, has_root, is_whole, reason

DENIED = """Error: Failed to get process executable name. Check that the process is running.

Caused by:
    0: Permission denied (os error 13)
    1: Permission denied (os error 13)
"""
BACKTRACE = """
Stack backtrace:
   0: <E as anyhow::context::ext::StdError>::ext_context
  10: main
"""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (DENIED, "Permission denied (os error 13)"),
        (DENIED + BACKTRACE, "Permission denied (os error 13)"),
        ("Error: No such process\n", "No such process"),
        ("", "it says nothing"),
    ],
)
def test_its_own_reason_is_said_without_number_or_backtrace(output: str, said: str) -> None:
    assert reason(output) == said


def test_a_stack_counts_only_where_a_sample_was_taken() -> None:
    """A stall of 0.2 s was seen once, and the next sample came late: what passed before that is of the usual steps after it."""
    sampled = [0, 250, 520, 770]
    assert count_samples(sampled, 250, 520, [(0, 240), (460, 900)]) == 0
    assert count_samples(sampled, 0, 800, [(0, 240), (460, 900)]) == 3


def test_a_stack_that_was_read_while_its_memory_got_another_use_does_not_count() -> None:
    assert is_whole([("train.py", 12, "main"), ("", 0, "ioctl")])
    assert not is_whole([("train.py", 12, "main"), ("__doc__", 369_754_113, "__package__")])


def test_a_stack_that_lost_its_outer_frames_is_told_from_a_whole_one() -> None:
    """Between the steps of a loop three samples of four named a line of TensorFlow's alone."""
    assert has_root((("<frozen runpy>", 198, "_run_module_as_main"), ("train.py", 12, "main")))
    assert has_root((("train.py", 40, "<module>"),)) and has_root((("threading.py", 1002, "_bootstrap"),))
    assert not has_root((("ops/gen_array_ops.py", 10_699, "squeeze"),))
