"""What a training thread is doing: since when its step is under way, and what it has come to."""

from __future__ import annotations

import threading
from typing import Any


class ThreadStep:
    """The step under way on one thread. It has slots: an untraced step touches little else."""

    __slots__ = ("concrete", "method", "start_ns", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.start_ns = 0  # perf_counter; 0: none is under way
        self.concrete: Any = None  # the ConcreteFunction that the call has come to
        self.method = ""  # of Keras, that the steps are titled by: "train_on_batch"; "": by their function


class ThreadSteps(threading.local):
    """``here``: the calling thread's."""

    def __init__(self) -> None:
        self.here = ThreadStep()
