"""Measures how long a loop waits for the next element of a ``tf.data`` dataset between its steps: ``for batch in dataset``.

To measure the waits, two methods of TensorFlow's ``OwnedIterator`` are wrapped: ``_next_internal``, for loops and
``next(iterator)``, and ``get_next_as_optional``, for distribution strategies. A wait within a step is part of the step. It is
also recorded as a wait if the step runs eagerly (``server.step``). ``_create_iterator`` and the constructor of sessions'
iterators are wrapped, too: their wrappers report each new iterator to the part of the tracer that watches input pipelines
(``StepQueue.pipelines``). Runs on the training threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Any

from tftracer.capture.functions.function_calls import FunctionCalls
from tftracer.capture.steps.queue import INPUT_WAIT, MAX_EVENTS, StepQueue
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class InputWaits:
    """Puts the waits of this process into the queue, each before the step that it delays."""

    def __init__(self, calls: FunctionCalls, queue: StepQueue) -> None:
        """Requires that ``calls.watch()`` was called before."""
        self._calls = calls
        self._queue = queue

    def watch(self) -> None:
        """Wrap the methods as soon as TensorFlow is imported. Missing methods are skipped."""
        pipelines = self._queue.pipelines
        wrappers: list[tuple[str, str, Wrap]] = [
            ("OwnedIterator", "_next_internal", self.wrap_next),
            ("OwnedIterator", "get_next_as_optional", self.wrap_next),
            ("OwnedIterator", "_create_iterator", partial(self._wrap_creation, report=pipelines.add)),
            # the iterators of sessions, in graph mode
            ("Iterator", "__init__", partial(self._wrap_creation, report=lambda iterator: pipelines.add_unseen("session"))),
        ]
        for owner, method, wrap in wrappers:
            self._calls.wrap_when_imported("tensorflow.python.data.ops.iterator_ops", owner, method, wrap)

    def _wrap_creation(self, original: Callable[..., Any], report: Callable[[Any], None]) -> Callable[..., Any]:
        """Wrap ``original``, a method that creates an iterator. The wrapper then calls ``report`` with the iterator."""
        calls = self._calls

        @hide_in_tracebacks
        def create(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(iterator, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            if not calls.requests.off:
                calls.run_safely(report, iterator)
            return result

        return create

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
                is_in_step = bool(state.start_ns)
                # While TensorFlow builds a compiled function's graph, this method only adds an op and does not wait. So within
                # a step, waits are recorded only if it runs eagerly (server.step).
                if not calls.requests.off and len(events) < MAX_EVENTS and (not is_in_step or calls.is_eager()):
                    events.append((INPUT_WAIT, is_in_step, start, now(), state.thread, None))

        return next_element
