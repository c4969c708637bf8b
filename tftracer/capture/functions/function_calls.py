"""Steps of compiled functions: each call of a ``tf.function`` from Python is a step, including the calls by Keras's loops.

Only two methods of TensorFlow are wrapped; the script's objects are not changed. Nearly all calls of compiled functions use
``Function.__call__``. ``_call_flat`` is a method of the ConcreteFunction that is executed, so it shows the signature. An untraced
call costs two clock reads and an append. A call within another call (from a function whose graph is being built) is not a step.
The wrappers run on the training threads. Errors of the tracer never leave them, and they always call the original method.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Any

from tftracer.capture.after_import import after_import
from tftracer.capture.functions.function_definitions import concrete_function_module, function_module
from tftracer.capture.functions.function_titles import StepName
from tftracer.capture.functions.partition_graphs import PartitionGraphs
from tftracer.capture.functions.profiled_calls import FunctionTraces
from tftracer.capture.recorded_steps import Traced
from tftracer.capture.steps.queue import MAX_EVENTS, StepQueue
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames


class FunctionCalls:
    """Watches the compiled functions of this process, and puts finished calls into the queue as FunctionEvents.

    The function of an event is a tf.function, a ConcreteFunction that was called directly, a StepName or a Keras step
    (keras_steps.py). The ConcreteFunction of an event is the one that was executed; None if the function ran eagerly.
    """

    def __init__(self, queue: StepQueue, tracing: FunctionTraces) -> None:
        self.under_way = queue.under_way
        self.thread_clocks = queue.thread_clocks
        self._queue = queue
        self.threads = ThreadStates()
        #: Takes a called function and ``ThreadState.method``; returns the StepName for a call made by that Keras method, or the
        #: function itself (keras_steps.py).
        self.step_of_method: Callable[[Any, str], Any] = lambda function, method: function
        self.requests = queue.requests
        self._tracing = tracing
        self.graphs = PartitionGraphs(queue.requests)
        self.is_eager: Callable[[], bool] = lambda: False  # whether the calling thread runs eagerly (True) or builds a graph
        self._undo: list[Callable[[], None]] = []
        self._wrappers: set[Any] = set()

    def watch(self) -> None:
        """Wrap TensorFlow's two methods. Raises AttributeError or ImportError if this TensorFlow lacks them."""
        is_eager = self.is_eager = make_eager_check(importlib.import_module("tensorflow.python.eager.context"))
        function, concrete = function_module().Function, concrete_function_module().ConcreteFunction
        call_flat, call = concrete._call_flat, function.__call__
        first = self.graphs.wrap_call_flat(call_flat)
        self.wrap(concrete, "_call_flat", self._wrap_call_flat(call_flat, first, self._wrap_call(first, is_eager)))
        self.wrap(function, "__call__", self._wrap_call(call, is_eager))
        self.graphs.watch(self.wrap, is_eager)

    def wrap(self, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
        """Put ``wrapper`` in the place of a method until ``stop``."""
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(wrapper))
        self._wrappers.add(wrapper)

        def undo() -> None:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)

        self._undo.append(undo)

    def wrap_when_imported(
        self, module: str, owner: str, name: str, make_wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        """Wrap a method of the class ``owner`` ("": a function of the module) once the module is imported; not after ``stop``.

        Skips a method that is missing, and one that is wrapped already: several modules may have the same class.
        """

        def wrap() -> None:
            holder = getattr(sys.modules[module], owner, None) if owner else sys.modules[module]
            original = getattr(holder, name, None) if holder is not None else None
            if callable(original) and original not in self._wrappers:
                self.wrap(holder, name, make_wrapper(original))

        self._undo.append(after_import(module, functools.partial(self.run_safely, wrap)))

    def stop(self) -> None:
        """Restore the methods. A wrapper that other code has wrapped again stays; it passes every call on."""
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _wrap_call(self, original: Callable[..., Any], is_eager: Callable[[], bool]) -> Callable[..., Any]:
        threads, events, requests = self.threads, self._queue.events, self.requests
        under_way, next_reading, read_clock = self.under_way, self.thread_clocks.next_ns, self.thread_clocks.read
        # Local names, because after a long step the module's globals are no longer in the CPU's cache.
        now, max_events = perf_counter_ns, MAX_EVENTS

        @hide_in_tracebacks
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            state = threads.state
            if state.start_ns or requests.slow_path or state.method or len(events) >= max_events:
                try:
                    if state.start_ns or not is_eager():  # within another step, or while a graph is built
                        return original(function, *args, **kwargs)
                    with self.step(function, (args, kwargs)):
                        return original(function, *args, **kwargs)
                except BaseException as error:
                    remove_our_frames(error)
                    raise
            thread = state.thread
            try:
                state.start_ns = under_way[thread] = start = now()
                if start >= next_reading.get(thread, 0):
                    read_clock(thread, start)
                result = original(function, *args, **kwargs)
                end = now()
                if is_eager():  # a call while a graph is built is not a step
                    events.append((function, state.concrete, start, end, thread, None))
            except BaseException as error:
                end = now()
                remove_our_frames(error)
                raise
            finally:
                under_way[thread] = -end  # minus the end: no step is under way
                state.start_ns = 0
                state.concrete = None
                if end >= next_reading.get(thread, 0):
                    read_clock(thread, end)
            return result

        return call

    def _wrap_call_flat(
        self, original: Callable[..., Any], first: Callable[..., Any], direct: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Wrap ``_call_flat``.

        ``first`` makes the first call of a ConcreteFunction; ``direct`` makes a call by the script itself, without a tf.function.
        """
        threads, called_ids = self.threads, self.graphs.called_functions

        @hide_in_tracebacks
        def call_flat(concrete: Any, inputs: Any, captured_inputs: Any, *more_args: Any, **kwargs: Any) -> Any:
            state = threads.state
            try:
                if not state.start_ns:
                    return direct(concrete, inputs, captured_inputs, *more_args, **kwargs)
                state.concrete = concrete
                if id(concrete) not in called_ids:
                    return first(concrete, inputs, captured_inputs, *more_args, **kwargs)
                if more_args or kwargs:  # an older TensorFlow passes more arguments
                    return original(concrete, inputs, captured_inputs, *more_args, **kwargs)
                return original(concrete, inputs, captured_inputs)
            except BaseException as error:
                remove_our_frames(error)
                raise

        return call_flat

    def step(self, function: Any, arguments: Any = None) -> Step:
        """Return a Step for a StepName, a step of an eager Keras model, or a call of a compiled function.

        A call of a compiled function gets a Step only while ``slow_path`` is set, within a method of Keras such as
        ``train_on_batch``, or while the queue is full. All other calls are timed within ``_wrap_call``, without a Step.
        """
        method = self.threads.state.method
        if method:
            function = self.run_safely(self.step_of_method, function, method) or function
        return Step(self, function, arguments)

    def is_within_step_or_off(self) -> bool:
        """Return whether this thread is within a step, or the tracer is off."""
        return bool(self.threads.state.start_ns) or self.requests.off

    def begin_step(self, function: Any, arguments: Any = None) -> tuple[ThreadState | None, Any]:
        """Return (the thread's state, the begun trace or None); (None, None) within another step, or if the tracer is off."""
        if self.is_within_step_or_off():
            return None, None
        state = self.threads.state
        begun = self.run_safely(self._tracing.begin, function, arguments) if self.requests.slow_path else None
        return state, begun

    def end_step(self, begun: Any, concrete: Any, succeeded: bool, end_ns: int) -> Traced:
        return self.run_safely(self._tracing.end, begun, concrete, succeeded, end_ns) if begun is not None else None

    def record(self, function: Any, concrete: Any, start_ns: int, end_ns: int, thread: int, traced: Traced) -> None:
        self.run_safely(self._queue.add, (function, concrete, start_ns, end_ns, thread, traced))

    def run_safely(self, action: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``action`` returns. If it raises, switch the tracer off and return None."""
        return self._queue.run_safely("a compiled function", action, *arguments)


class Step:
    """A context manager: everything inside the block counts as one step; calls inside it are not steps of their own."""

    __slots__ = ("_arguments", "_begun", "_calls", "_function", "_state")

    def __init__(self, calls: FunctionCalls, function: Any, arguments: Any = None) -> None:
        self._calls = calls
        self._function = function
        self._arguments = arguments  # (args, kwargs) of a function's call
        self._state: ThreadState | None = None  # None before the block, and if the block is not a step
        self._begun: Any = None

    def __enter__(self) -> None:
        self._state, self._begun = state, _ = self._calls.begin_step(self._function, self._arguments)
        if state is not None:
            state.start_ns = self._calls.under_way[state.thread] = perf_counter_ns()
            self._calls.thread_clocks.read_if_due(state.thread, state.start_ns)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        end, state = perf_counter_ns(), self._state
        if state is None:
            return
        start, concrete, succeeded, self._state = state.start_ns, state.concrete, kind is None, None
        self._calls.under_way[state.thread] = -end  # minus the end: no step is under way
        self._calls.thread_clocks.read_if_due(state.thread, end)
        state.start_ns, state.concrete = 0, None
        traced = self._calls.end_step(self._begun, concrete, succeeded, end)
        if succeeded:
            executed = None if isinstance(self._function, StepName) else concrete
            self._calls.record(self._function, executed, start, end, state.thread, traced)


def make_eager_check(context: Any) -> Callable[[], bool]:
    """Return a function that returns whether the calling thread runs eagerly (True) or builds a graph.

    ``context``: TensorFlow's module.

    The function reads TensorFlow's own flag, which takes a third of the time of ``executing_eagerly``. It does not create the
    context, because the script may still want to configure it.
    """

    def is_eager() -> bool:
        try:
            return bool(context._context._thread_local_data.is_eager)
        except AttributeError:  # no context yet, or this TensorFlow keeps the flag elsewhere
            return bool(context.executing_eagerly())

    return is_eager


class ThreadState:
    """What the wrappers know about one thread, such as its current step. Every step reads it; ``__slots__`` makes that faster."""

    __slots__ = ("concrete", "method", "start_ns", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.start_ns = 0  # when the current step began (perf_counter); 0: there is none
        self.concrete: Any = None  # the last ConcreteFunction that the current call has executed
        self.method = ""  # the Keras method that names the steps, such as "train_on_batch"; "": the function names them


class ThreadStates(threading.local):
    """The states of all threads. ``state``: the state of the calling thread."""

    def __init__(self) -> None:
        self.state = ThreadState()
