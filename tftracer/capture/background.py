"""A thread that does what training threads leave to it. Leaving something to it waits for nobody.

``Thread.start`` does wait: until the new thread has got a CPU, which took up to 0.3 s on a busy machine. So the thread is started
before there are steps.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

log = logging.getLogger("tftracer")

Job = Callable[[], object]
#: How long its end is waited for.
END_S = 1.0


class Background:
    """Does jobs one after another, also after one that fails. Its thread ends with it. Methods may be called from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: Thread | None = None
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def start(self) -> None:
        """Does nothing while the thread is there. It waits until a new one has begun: not to be called around a step."""
        if self._thread is None or not self._thread.is_alive():  # a forked child has no thread of its parent's
            self._thread = Thread(target=_work, args=[self._jobs], name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Its thread ends after the jobs that it has; that is waited for, for a short time."""
        if self._thread is not None and self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join(END_S)

    def do(self, job: Job) -> None:
        self.start()
        self._jobs.put(job)


def _work(jobs: SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except Exception:  # the thread's end would lose the jobs that are put meanwhile
            log.warning("tftracer: what was left to a thread failed.", exc_info=True)
        del job
