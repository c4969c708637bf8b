"""The facts of this process when its session starts, such as the model of its processor."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shlex
import socket
import sys
import time
from pathlib import Path

from tftracer.contract.session import Session
from tftracer.session.files.reading import new_facts
from tftracer.session.process.launcher import detect_launcher
from tftracer.storage import untrusted
from tftracer.storage.roof_file import saved_roof
from tftracer.version import __version__

_CPUINFO = Path("/proc/cpuinfo")


def processor() -> str:
    """Return the model, such as "AMD EPYC 7B13", or the architecture ("aarch64") if the model is not known."""
    with contextlib.suppress(OSError), _CPUINFO.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()[:100]
    return (platform.processor() or platform.machine())[:100]


def process_facts() -> Session:
    """Return the facts of a new live session."""
    facts = new_facts()
    facts["id"] = secrets.token_hex(8)
    facts["host"] = socket.gethostname()
    facts["pid"] = os.getpid()
    facts["place"] = detect_launcher()
    facts["rank"] = facts["place"]["rank"]
    facts["tftracer"] = __version__
    facts["python"] = platform.python_version()
    facts["command"] = untrusted.text(shlex.join(sys.argv), 2000)
    facts["processor"] = processor()
    facts["measured_roof"] = saved_roof(facts["host"], facts["processor"])
    facts["started_at"] = time.time()
    facts["live"] = True
    return facts
