"""An executor whose threads end with the script, whatever they are waiting for.

Python waits at its end for the threads of every ``ThreadPoolExecutor``: a name server that does not answer would hold up the
end of a training.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from tftracer.web.worker_threads import WorkerThreads


class DaemonExecutor(ThreadPoolExecutor):
    """For ``loop.set_default_executor``, which takes nothing but a ``ThreadPoolExecutor``."""

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(1)
        self._daemons = WorkerThreads(name, threads)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._daemons.submit(partial(function, *arguments, **named))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for nothing."""
        self._daemons.stop()
