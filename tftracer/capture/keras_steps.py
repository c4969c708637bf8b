"""Steps of Keras models that run eagerly (``run_eagerly=True``): no compiled function is called there.

Keras 2 and 3 alike hand each step to the distribution strategy, the default one included: ``Strategy.run(function, batch)``.
That method is wrapped. A call from a model's ``fit``, ``evaluate``, ``predict`` or their ``..._on_batch`` is a step; all others
pass, and so do those within a step: a compiled ``fit`` calls it while its function is traced. Getting the batch is not part of
the step, as it is not with a session that is fed.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any

from tftracer.capture.function_identity import keras_step, keras_title
from tftracer.capture.functions import FunctionCalls, NamedStep


class KerasStep(NamedStep):
    """What a model's ``fit`` does at each batch, or its ``evaluate`` or ``predict``."""

    origin = "Keras, run eagerly"


class KerasSteps:
    """Runs on the training threads; ``run`` is what stands in the place of ``Strategy.run``."""

    def __init__(self, calls: FunctionCalls) -> None:
        self._calls = calls
        self._steps: weakref.WeakKeyDictionary[Any, dict[str, KerasStep]] = weakref.WeakKeyDictionary()  # of each model

    def watch(self) -> None:
        """Raises AttributeError or ImportError on a TensorFlow without this method."""
        strategy = importlib.import_module("tensorflow.python.distribute.distribute_lib").StrategyBase
        self._calls.wrap(strategy, "run", self._run(strategy.run))

    def _run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        calls = self._calls

        def run(strategy: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
            step = None if calls.is_within_step() else calls.quietly(self._step, fn)
            if step is None:
                return original(strategy, fn, *args, **kwargs)
            with calls.step(step):
                return original(strategy, fn, *args, **kwargs)

        return run

    def _step(self, fn: Any) -> KerasStep | None:
        """The step that ``fn`` is of; None if it is no Keras model's."""
        phase, model = keras_step(fn)
        if not phase or model is None:
            return None
        steps = self._steps.setdefault(model, {})
        if phase not in steps:
            steps[phase] = KerasStep(keras_title(phase, model))
        return steps[phase]
