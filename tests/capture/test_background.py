"""The thread that does what training threads leave to it."""

from __future__ import annotations

import threading

from tftracer.capture.background import BackgroundThread


def test_a_job_that_fails_loses_none_of_the_next_and_keeps_the_thread() -> None:
    background, done, threads = BackgroundThread("tftracer-test"), threading.Event(), []

    def fails() -> None:
        threads.append(threading.current_thread())
        raise OSError("planted")

    background.submit(fails)
    background.submit(lambda: threads.append(threading.current_thread()))
    background.submit(done.set)
    assert done.wait(60)
    background.stop()
    assert threads[0] is threads[1]
