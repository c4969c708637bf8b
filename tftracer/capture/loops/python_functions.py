"""Measures the calls of Python functions by TensorFlow: ``tf.py_function``, ``tf.numpy_function``, generators of ``tf.data``.

All these calls go through one method of TensorFlow's registry of such functions, which is wrapped. Runs on TensorFlow's threads.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from types import CodeType
from typing import Any

from tftracer.capture.functions.function_calls import FunctionCalls
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames
from tftracer.slow.cause.frame_names import code_of, is_library

#: Maximum number of functions whose code is remembered. A script that has more registers functions again and again.
MAX_FUNCTIONS = 4096


class PythonFunctions:
    """Puts the times of the calls into ``StepQueue.function_times``."""

    def __init__(self, calls: FunctionCalls, queue: StepQueue) -> None:
        """Requires that ``calls.watch()`` was called before."""
        self._calls = calls
        self._times = queue.function_times
        self._codes: dict[Any, CodeType | None] = {}  # key of a function in TensorFlow's registry -> its code

    def watch(self) -> None:
        """Wrap the method as soon as TensorFlow is imported. If it is missing, nothing is measured."""
        self._calls.wrap_when_imported("tensorflow.python.ops.script_ops", "FuncRegistry", "__call__", self.wrap)

    def wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        calls, times = self._calls, self._times
        times.start()

        @hide_in_tracebacks
        def call_function(registry: Any, token: Any, *args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            is_inner = calls.requests.off or times.is_running(thread)
            if not is_inner:
                calls.run_safely(self._begin, thread, registry, token)
            try:
                return original(registry, token, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            finally:
                if not is_inner:
                    calls.run_safely(times.end, thread)

        return call_function

    def _begin(self, thread: int, registry: Any, token: Any) -> None:
        if token not in self._codes:
            if len(self._codes) >= MAX_FUNCTIONS:
                self._codes.clear()
            function = registry.get(token)
            code = code_of(getattr(function, "_func", function))
            self._codes[token] = None if code is None or is_library(code.co_filename) else code
        self._times.begin(thread, self._codes[token])
