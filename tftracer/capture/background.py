"""A thread that runs jobs for training threads. Submitting a job does not block if the thread is running.

``Thread.start`` blocks until the new thread gets a CPU, which took up to 0.3 s on a busy machine. So the thread is started before
the first step.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

log = logging.getLogger("tftracer")

Job = Callable[[], object]
#: Maximum number of seconds that ``stop`` waits for the thread to end.
END_S = 1.0


class BackgroundThread:
    """Runs jobs one after another. A job that raises does not stop the next one. When the object is deleted, its thread ends.

    Methods may be called from any thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: Thread | None = None
        weakref.finalize(self, self._jobs.put, None).atexit = False  # None ends the thread (``_work``)

    def start(self) -> None:
        """Start the thread if it is not running. Blocks until the thread has begun, so do not call it during a step."""
        if self._thread is None or not self._thread.is_alive():  # a forked child does not have the parent's thread
            self._thread = Thread(target=_work, args=[self._jobs], name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Let the thread finish its jobs and end; wait for it at most ``END_S`` seconds."""
        thread = self._thread  # ``start``, on another thread, may replace it meanwhile
        if thread is not None and thread.is_alive():
            self._jobs.put(None)
            thread.join(END_S)

    def submit(self, job: Job) -> None:
        self.start()
        self._jobs.put(job)


def _work(jobs: SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except Exception:  # if the thread ended here, the jobs after this one would be lost
            log.warning("tftracer: work on a background thread failed.", exc_info=True)
        del job
