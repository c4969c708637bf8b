"""How much work something is, counted in calls: the same on a busy machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def calls_of(work: Callable[[], Any]) -> int:
    """How many calls it makes, of Python's functions and of C's."""
    calls = 0

    def count_call(frame: Any, kind: str, argument: Any) -> None:
        nonlocal calls
        calls += kind in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # a collection calls functions of its own
    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls
