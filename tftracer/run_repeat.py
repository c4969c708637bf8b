"""``tftracer run --repeat N -- a.py args... -- b.py args...``: sessions of two scripts, recorded in turns, to be compared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

FOLDER = "sessions"
SIDES = "ab"


def scripts_of(arguments: Sequence[str]) -> list[list[str]]:
    """The scripts with their arguments, which ``--`` separates."""
    scripts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--":
            scripts.append([])
        else:
            scripts[-1].append(argument)
    return scripts


def recorded_in_turns(
    scripts: Sequence[Sequence[str]], times: int, folder: Path, options: Sequence[str], say: Callable[[str], None]
) -> int:
    """a, b, a, b, ...: the exit code of the first script that fails, else 0. ``options``: of ``tftracer run``, for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, times + 1):
        for side, script in zip(SIDES, scripts):
            session = folder / f"{side}-{number}.tftrace"
            command = [sys.executable, "-m", "tftracer", "run", *options, "--output", str(session), *script]
            code = subprocess.call(command)
            if code:
                say(f"{' '.join(script)[:200]} ended with {code} in its turn {number}; the others were not recorded.")
                return code
    say(f"{times} sessions of each are in {folder}. To compare them:")
    say("  tftracer compare " + " -- ".join(f"{folder}/{side}-*.tftrace" for side in SIDES[: len(scripts)]))
    return 0
