"""Windows of py-spy's samples: what is said where it fails."""

from __future__ import annotations

import pytest

from tftracer.slow.watch.windows import reason

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
