"""Runs the rounds of the writer's threads: a failure is a problem on the page, a second one in a row ends the recording."""

from __future__ import annotations

from collections.abc import Callable

from tftracer.session.problems import Problems


class Guard:
    """One for each thread."""

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
        """A thread's whole life."""
        try:
            loop()
        except Exception as error:  # without its threads the tracer is of no use
            self._failed(loop.__name__, error)
