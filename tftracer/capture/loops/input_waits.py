"""Measures how long a loop waits for the next element of a ``tf.data`` dataset between its steps: ``for batch in dataset``.

Two methods of TensorFlow's ``OwnedIterator`` are wrapped: ``_next_internal``, for loops and ``next(iterator)``, and
``get_next_as_optional``, for distribution strategies. An element that is fetched in a step is part of the step, and shows in its
trace. The watch over input pipelines is told of each new iterator. Runs on the training threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from tftracer.capture.after_import import after_import
from tftracer.capture.functions.calls import FunctionCalls
from tftracer.capture.steps.queue import INPUT_WAIT, MAX_EVENTS, StepQueue
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames

_MODULE, _CLASS = "tensorflow.python.data.ops.iterator_ops", "OwnedIterator"
_METHODS = ("_next_internal", "get_next_as_optional")
_MAKER, _SESSIONS_CLASS = "_create_iterator", "Iterator"


class InputWaits:
    """Puts the waits of this process into the queue, each before the step that it delays."""

    def __init__(self, calls: FunctionCalls, queue: StepQueue) -> None:
        """``calls.watch()`` must have been called before."""
        self._calls = calls
        self._queue = queue

    def watch(self) -> Callable[[], None]:
        """Wrap the methods once TensorFlow is imported; return a function that cancels this. Missing methods are skipped."""
        return after_import(_MODULE, lambda: self._calls.run_safely(self._wrap))

    def _wrap(self) -> None:
        owner = getattr(sys.modules[_MODULE], _CLASS, None)
        for method in _METHODS:
            if isinstance(owner, type) and hasattr(owner, method):
                self._calls.wrap(owner, method, self.wrap_next(getattr(owner, method)))
        pipelines = self._queue.pipelines
        if isinstance(owner, type) and hasattr(owner, _MAKER):
            self._calls.wrap(owner, _MAKER, self._wrap_maker(getattr(owner, _MAKER), pipelines.add))
        sessions = getattr(sys.modules[_MODULE], _SESSIONS_CLASS, None)
        if isinstance(sessions, type) and "__init__" in vars(sessions):
            wrapper = self._wrap_maker(vars(sessions)["__init__"], lambda iterator: pipelines.add_unseen("session"))
            self._calls.wrap(sessions, "__init__", wrapper)

    def _wrap_maker(self, original: Callable[..., Any], report: Callable[[Any], None]) -> Callable[..., Any]:
        """Wrap ``original``, which makes an iterator, to call ``report`` with the iterator."""
        calls = self._calls

        @hide_in_tracebacks
        def make(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                made = original(iterator, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            if not calls.is_off():
                calls.run_safely(report, iterator)
            return made

        return make

    def wrap_next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        threads, events, now, calls = self._calls.threads, self._queue.events, perf_counter_ns, self._calls
        waiting = self._queue.activities.waiting

        @hide_in_tracebacks
        def next_element(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            state = threads.state
            start = waiting[state.thread] = now()
            try:
                return original(iterator, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            finally:
                waiting[state.thread] = 0
                within = bool(state.start_ns)  # a wait in server.step() counts; while a graph is built there is none
                if not calls.is_off() and len(events) < MAX_EVENTS and (not within or calls.is_eager()):
                    events.append((INPUT_WAIT, within, start, now(), state.thread, None))

        return next_element
