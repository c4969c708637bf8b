"""Ctrl-C while the tracer works at the end of the script."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import logging, os, signal
from tftracer.session.ctrl_c_at_end import at_end

def press():
    os.kill(os.getpid(), signal.SIGINT)

class PressedAgain(logging.Handler):
    def emit(self, record):
        press()
        print("logged")

logging.getLogger("tftracer").addHandler(PressedAgain())
at_end(lambda: (press(), print("the work goes on")))
at_end(lambda: print("more work"))
"""


def test_ctrl_c_while_the_first_one_is_logged_waits_for_the_log_line_and_then_ends_the_work() -> None:
    """An exception within logging could leave a lock taken for which other threads then wait for ever."""
    script = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert (script.returncode, script.stdout, script.stderr) == (0, "logged\n", "")
