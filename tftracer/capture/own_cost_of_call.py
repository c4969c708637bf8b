"""Measures how much time the tracer adds to a call of a compiled function. The page shows it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace
from typing import Any

from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.functions.function_calls import make_eager_check
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.timer_with_cold_caches import ColdTimer

_CALLS = 9


def measure_call_cost() -> float | None:
    """Measure the seconds that the tracer adds to an untraced call of a compiled function that takes some milliseconds.

    Return None if it could not be measured. Takes some milliseconds itself.
    """
    queue, timer = StepQueue(), ColdTimer()
    call = wrapped_noop(queue)
    call(None)  # not measured: the first call on a thread takes longer
    seconds = median(timer.measure_ns(call, None) for _ in range(_CALLS)) * 1e-9
    return seconds if len(queue.events) == _CALLS + 1 else None


def wrapped_noop(queue: StepQueue) -> Callable[[Any], None]:
    """Return a function that does nothing, wrapped as the two methods of TensorFlow are (functions/function_calls.py)."""
    calls, concrete = FunctionRuns(queue).calls, KnownFunction()
    calls.graphs.called_functions[id(concrete)] = weakref.ref(concrete)  # so that no call counts as the function's first call
    context = SimpleNamespace(_context=SimpleNamespace(_thread_local_data=SimpleNamespace(is_eager=True)))
    call_flat = calls._wrap_call_flat(lambda concrete, inputs, captured: None, must_not_be_called, must_not_be_called)
    return calls._wrap_call(lambda function: call_flat(concrete, (), ()), make_eager_check(context))


class KnownFunction:
    """Stands in for a ConcreteFunction that was called before."""


def must_not_be_called(*arguments: Any) -> None:
    raise AssertionError("only the path of a known function is measured")
