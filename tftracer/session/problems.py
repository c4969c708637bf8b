"""Problems of the tracer itself: written to the log, and shown on the page with the session's facts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tftracer.contract.session import Problem

log = logging.getLogger("tftracer")

MAX_PROBLEMS = 100


class Guard:
    """Runs the work of one thread. An exception becomes a problem; the second in a row is also passed to ``failed``."""

    def __init__(self, problems: Problems, failed: Callable[[str, BaseException], None]) -> None:
        self._problems = problems
        self._failed = failed
        self._failures = 0

    def run(self, work: Callable[[], object]) -> None:
        try:
            work()
            self._failures = 0
        except Exception as error:
            self._failures += 1
            self._problems.add("writer", f"The tracer failed ({type(error).__name__}: {error}); training goes on.")
            if self._failures > 1:
                self._failed("writer", error)

    def run_thread(self, loop: Callable[[], None]) -> None:
        """Run a thread's loop until it ends."""
        try:
            loop()
        except Exception as error:  # the tracer cannot work without this thread
            self._failed(loop.__name__, error)


class Problems:
    """Holds one problem for each code. Any thread may call. ``changed`` is called with the list after each change."""

    def __init__(self, changed: Callable[[list[Problem]], None]) -> None:
        self._problems: dict[str, Problem] = {}
        self._changed = changed
        self._logged: set[str] = set()
        self._lock = threading.RLock()

    def add(self, code: str, message: str) -> None:
        """Add a problem, unless one with this code is there already, or there are ``MAX_PROBLEMS``."""
        with self._lock:
            if code in self._problems or len(self._problems) >= MAX_PROBLEMS:
                return
            self._problems[code] = {"code": code, "message": message, "at": time.time()}
            if code not in self._logged:  # a problem that comes and goes, like a full disk, would fill the log
                self._logged.add(code)
                log.warning("%s", message)
            self._changed(list(self._problems.values()))

    def replace(self, code: str, message: str) -> None:
        """Add a problem in the place of an older one with the same code. The log gets only the first message."""
        with self._lock:
            self._problems.pop(code, None)
            self.add(code, message)

    def update(self, code: str, message: str) -> None:
        """Add a problem, or give the problem with this code its newest message. The log gets only the first message."""
        with self._lock:
            known = self._problems.get(code)
            if known is None:
                self.add(code, message)
            elif known["message"] != message:
                self._problems[code] = {**known, "message": message}
                self._changed(list(self._problems.values()))

    def solve(self, code: str) -> None:
        with self._lock:
            if self._problems.pop(code, None):
                self._changed(list(self._problems.values()))
