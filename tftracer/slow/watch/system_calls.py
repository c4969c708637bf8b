"""Finds what a thread waits for, from the system call that it is in (/proc/PID/task/TID/syscall)."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable

#: Type of the machine -> kind of system call -> the numbers of these calls.
_NUMBERS = {
    "x86_64": {
        "futex": (202,),
        "sleep": (35, 230),
        "process": (61, 247),
        "descriptor": (0, 1, 17, 18, 19, 20),
        "file": (74, 75),
        "socket": (42, 43, 44, 45, 46, 47, 288),
        "file_lock": (72, 73),
        "poll": (7, 271),
        "select": (23, 270),
        "epoll": (232, 281),
    },
    "aarch64": {
        "futex": (98,),
        "sleep": (101, 115),
        "process": (95, 260),
        "descriptor": (63, 64, 65, 66, 67, 68),
        "file": (82, 83),
        "socket": (202, 203, 206, 207, 211, 212, 242),
        "file_lock": (25, 32),
        "poll": (73,),
        "select": (72,),
        "epoll": (22,),
    },
}
#: What a thread waits for -> the words for it in a text, after "waited".
WAITS = {
    "sleep": "in a sleep",
    "thread": "for a lock or another thread",
    "process": "for another process to end",
    "pipe": "for a pipe",
    "socket": "for a socket",
    "input": "for a pipe, a socket or a timer",
    "file": "for a file",
    "file_lock": "for a lock on a file",
}
#: At least this share, and this number, of the readings of a waiting thread must agree.
MIN_SHARE, MIN_READINGS = 0.75, 2
#: Number of a system call on this machine -> its kind.
_KIND = {number: kind for kind, numbers in _NUMBERS.get(platform.machine(), {}).items() for number in numbers}


def waits_for(call: list[bytes], pid: int) -> str:
    """Return the key of ``WAITS`` for a system call of the process ``pid``; "" if not known.

    ``call``: the number and the arguments of the system call, as in /proc.
    """
    if len(call) < 3:  # "running"
        return ""
    kind, first, second = _KIND.get(int(call[0]), ""), int(call[1], 16), int(call[2], 16)
    if kind == "futex":
        return "thread"
    if kind == "descriptor":
        return _kind_of_descriptor(pid, first)
    if kind in ("poll", "select", "epoll"):
        has_no_files = (kind == "poll" and not second) or (kind == "select" and not first)
        return "sleep" if has_no_files else "input"
    return kind


def most_common(waits: Iterable[str]) -> str:
    """Return what most readings of a waiting thread show; "" if there are too few, or if they differ."""
    counts = Counter(waits)
    wait, times = max(counts.items(), key=lambda each: each[1], default=("", 0))
    return wait if times >= max(MIN_READINGS, MIN_SHARE * sum(counts.values())) else ""


def _kind_of_descriptor(pid: int, descriptor: int) -> str:
    try:
        name = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115  a pipe is no path
    except OSError:
        return ""
    kind = name.partition(":")[0]
    return kind if kind in ("pipe", "socket") else "file" if name.startswith("/") and not name.startswith("/dev/") else ""
