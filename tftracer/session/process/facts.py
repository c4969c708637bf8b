"""The facts of this process when its session starts."""

from __future__ import annotations

import os
import platform
import secrets
import shlex
import socket
import sys
import time

from tftracer.contract.session import Session
from tftracer.session.files.reading import new_facts
from tftracer.session.process.launcher import detect_launcher
from tftracer.session.process.processor import processor
from tftracer.storage import untrusted
from tftracer.storage.roof_file import saved_roof
from tftracer.version import __version__


def process_facts() -> Session:
    """A live session's facts."""
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
