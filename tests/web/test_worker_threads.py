"""The worker threads."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import CancelledError

import pytest

from tftracer.web.worker_threads import WorkerThreads


def test_results_and_errors_come_back() -> None:
    workers = WorkerThreads("test", 2)
    assert workers.submit(divmod, 7, 2).result(60) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        workers.submit(divmod, 7, 0).result(60)
    workers.stop()


def test_jobs_that_wait_when_it_stops_are_cancelled() -> None:
    workers = WorkerThreads("test", 1)
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return go_on.wait(60)

    running = workers.submit(wait)
    assert begun.wait(60)
    waiting = workers.submit(int)
    workers.stop()
    go_on.set()
    assert running.result(60) is True
    too_late = workers.submit(int)  # of a request that ends with the server: nobody will do it
    for job in (waiting, too_late):
        with pytest.raises(CancelledError):
            job.result(60)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
def test_low_priority_is_the_threads_own() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    workers = WorkerThreads("test", 1, nice=5)
    nice = workers.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())).result(60)
    workers.stop()
    assert nice == 5
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
