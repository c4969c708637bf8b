"""What watching compiled functions costs, as the page shows it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace
from typing import Any

from tftracer.capture.cold_time import ColdTimer
from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.functions.calls import eager_test
from tftracer.capture.steps.queue import StepQueue

_CALLS = 9


def measure_call_cost() -> float | None:
    """Seconds that the tracer adds to an untraced call of a compiled function that takes some milliseconds.

    None if it could not be measured. Takes some milliseconds itself.
    """
    queue, timer = StepQueue(), ColdTimer()
    call = watched_nothing(queue)
    call(None)  # what is made once in a thread
    seconds = median(timer.ns(call, None) for _ in range(_CALLS)) * 1e-9
    return seconds if len(queue.events) == _CALLS + 1 else None


def watched_nothing(queue: StepQueue) -> Callable[[Any], None]:
    """A function that does nothing, within the wrappers of both of TensorFlow's methods."""
    calls, concrete = FunctionRuns(queue).calls, KnownFunction()
    calls.graphs.called[id(concrete)] = weakref.ref(concrete)  # not its first call
    context = SimpleNamespace(_context=SimpleNamespace(_thread_local_data=SimpleNamespace(is_eager=True)))
    call_flat = calls._flat(lambda concrete, inputs, captured: None, unused, unused)
    return calls._call(lambda function: call_flat(concrete, (), ()), eager_test(context))


class KnownFunction:
    """Stands for a ConcreteFunction."""


def unused(*arguments: Any) -> None:
    raise AssertionError("only the path of a known function is measured")
