"""Processes in the other virtual environments, which must not see this tree: the original is named ``tftracer`` too."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def environment(*, ours: bool) -> dict[str, str]:
    """The environment of a process that imports this tree's ``tftracer``, or whichever its interpreter has installed."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**variables, "PYTHONPATH": str(ROOT)} if ours else variables
