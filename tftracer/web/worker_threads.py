"""Worker threads for blocking work: analyses, disk access, compression.

They are daemon threads, so that a script's exit does not wait for an unfinished analysis.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple["Future[Any]", Callable[[], Any]]


def lower_priority(nice: int) -> None:
    """Lower the priority of the calling thread, on Linux, which has a nice value per thread. Elsewhere do nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


class WorkerThreads:
    """A fixed number of threads that run submitted functions in order."""

    def __init__(self, name: str, threads: int, nice: int = 0) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopped = False
        self._nice = nice
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Submit a function. Call ``submit`` on the same thread as ``stop``; after ``stop``, the future is cancelled at once."""
        future: Future[T] = Future()
        if self._stopped:
            future.cancel()
        else:
            self._jobs.put((future, lambda: function(*arguments)))
        return future

    def stop(self) -> None:
        """End each thread after its current job. Waiting jobs are cancelled."""
        self._stopped = True
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job[0].cancel()
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        lower_priority(self._nice)
        while True:
            job = self._jobs.get()
            if job is None:
                return
            self._do(*job)
            del job  # its result may be large

    @staticmethod
    def _do(future: Future[Any], function: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as problem:
            future.set_exception(problem)
        else:
            future.set_result(result)
