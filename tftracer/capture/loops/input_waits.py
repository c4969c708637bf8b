"""The time in which a loop waits for the next element of a ``tf.data`` dataset between its steps: ``for batch in dataset``.

``OwnedIterator._next_internal`` of TensorFlow is wrapped, to which loops and ``next(iterator)`` come. What is asked for within a
step is part of the step, and shows in its trace. As iterators are made, what looks into their pipelines is told. Runs on the
training threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from tftracer.capture.after_import import after_import
from tftracer.capture.functions.calls import FunctionCalls
from tftracer.capture.steps.queue import INPUT_WAIT, MAX_EVENTS, StepQueue
from tftracer.capture.tracebacks import as_tensorflows, without_ours

_MODULE, _CLASS, _METHOD = "tensorflow.python.data.ops.iterator_ops", "OwnedIterator", "_next_internal"
_MAKER, _SESSIONS_CLASS = "_create_iterator", "Iterator"


class InputWaits:
    """The waits of this process go to the queue, each before the step that it delays."""

    def __init__(self, calls: FunctionCalls, queue: StepQueue) -> None:
        """``calls`` are watched already."""
        self._calls = calls
        self._queue = queue

    def watch(self) -> Callable[[], None]:
        """Returns what ends it, where TensorFlow has not been imported yet. A TensorFlow without that method is left as it is."""
        return after_import(_MODULE, lambda: self._calls.quietly(self._wrap))

    def _wrap(self) -> None:
        owner = getattr(sys.modules[_MODULE], _CLASS, None)
        if isinstance(owner, type) and hasattr(owner, _METHOD):
            self._calls.wrap(owner, _METHOD, self.watched(getattr(owner, _METHOD)))
        pipelines = self._queue.pipelines
        if isinstance(owner, type) and hasattr(owner, _MAKER):
            self._calls.wrap(owner, _MAKER, self._told(getattr(owner, _MAKER), pipelines.add))
        sessions = getattr(sys.modules[_MODULE], _SESSIONS_CLASS, None)
        if isinstance(sessions, type) and "__init__" in vars(sessions):
            told = self._told(vars(sessions)["__init__"], lambda iterator: pipelines.add_unseen("session"))
            self._calls.wrap(sessions, "__init__", told)

    def _told(self, original: Callable[..., Any], tell: Callable[[Any], None]) -> Callable[..., Any]:
        calls = self._calls

        @as_tensorflows
        def make(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                made = original(iterator, *args, **kwargs)
            except BaseException as error:
                without_ours(error)
                raise
            if not calls.is_off():
                calls.quietly(tell, iterator)
            return made

        return make

    def watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        threads, events, now, calls = self._calls.threads, self._queue.events, perf_counter_ns, self._calls
        waiting = self._queue.activities.waiting

        @as_tensorflows
        def next_element(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            here = threads.here
            start = waiting[here.thread] = now()
            try:
                return original(iterator, *args, **kwargs)
            except BaseException as error:
                without_ours(error)
                raise
            finally:
                waiting[here.thread] = 0
                within = bool(here.start_ns)  # a step of server.step(); a function that is being traced waits for nothing
                if not calls.is_off() and len(events) < MAX_EVENTS and (not within or calls.is_eager()):
                    events.append((INPUT_WAIT, within, start, now(), here.thread, None))

        return next_element
