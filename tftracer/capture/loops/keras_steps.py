"""Records Keras steps that do not call a compiled function, and titles the steps of methods such as ``train_on_batch``.

For a compiled ``fit`` see functions/function_calls.py.

*Models that run eagerly* (``run_eagerly=True``) call no compiled function. Keras 2 and 3 pass each step to the distribution
strategy, even to the default strategy: ``Strategy.run(function, batch)``. That method is wrapped. A call from a model's ``fit``,
``evaluate``, ``predict`` or their ``..._on_batch`` is a step. Other calls are not steps, and neither are calls within a step,
because a compiled ``fit`` also calls the method while its graph is built. Getting the batch is not part of the step.

``train_on_batch``, ``test_on_batch`` and ``predict_on_batch`` call the functions of ``fit``, ``evaluate`` and ``predict``.
These methods are wrapped, too: each stores its name in the thread's state, and the step within it takes its title from there.
"""

from __future__ import annotations

import contextlib
import importlib
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from tftracer.capture.functions.function_calls import FunctionCalls
from tftracer.capture.functions.function_titles import StepName, keras_loop_and_model, keras_title
from tftracer.capture.hook import tensorflow
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames

#: Module -> the class in it that has the methods of ``_METHODS``: Keras 3, Keras 2, the Keras of TensorFlow 2.12, tf_keras.
_OWNERS = {
    "keras.src.backend.tensorflow.trainer": "TensorFlowTrainer",
    "keras.src.engine.training": "Model",
    "keras.engine.training": "Model",
    "tf_keras.src.engine.training": "Model",
}
#: Method -> the loop whose functions it calls.
_METHODS = {"train_on_batch": "fit", "test_on_batch": "evaluate", "predict_on_batch": "predict"}


def make_callback(set_note: Callable[[str], None]) -> Any:
    """Make a callback for this TensorFlow's Keras. It calls ``set_note`` with "epoch 3" (for example), and with "" at the end."""

    class EpochCallback(tensorflow().keras.callbacks.Callback):  # type: ignore[misc]
        """Adds the epoch to the traces. Pass it to ``fit(callbacks=[...])``."""

        async_safe = True

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            with contextlib.suppress(Exception):
                set_note(f"epoch {epoch + 1}")

        def on_train_end(self, logs: Any = None) -> None:
            with contextlib.suppress(Exception):
                set_note("")

    return EpochCallback()


class EagerKerasStepName(StepName):
    """The name of the steps of a model that runs eagerly. Each batch is one step."""

    origin = "Keras, run eagerly"


class CompiledKerasStepName:
    """The name of the compiled steps of a model's ``train_on_batch``, ``test_on_batch`` or ``predict_on_batch``.

    Each signature of the compiled function is a run of its own.
    """

    origin = "Keras"

    def __init__(self, name: str) -> None:
        self.__name__ = name


class KerasSteps:
    """Wraps ``Strategy.run`` and the methods of ``_METHODS``. The wrappers run on the training threads."""

    def __init__(self, calls: FunctionCalls) -> None:
        self._calls = calls
        #: Model -> (class, loop or method) -> the name of the model's steps of that kind.
        self._steps: weakref.WeakKeyDictionary[Any, dict[tuple[type[Any], str], Any]] = weakref.WeakKeyDictionary()
        #: Function that was called within one of ``_METHODS`` -> (loop, weak reference to the model).
        self._functions: weakref.WeakKeyDictionary[Any, tuple[str, Callable[[], Any]]] = weakref.WeakKeyDictionary()

    def watch(self) -> None:
        """Wrap the methods. Raises AttributeError or ImportError if this TensorFlow lacks ``Strategy.run``."""
        strategy = importlib.import_module("tensorflow.python.distribute.distribute_lib").StrategyBase
        self._calls.wrap(strategy, "run", self._wrap_run(strategy.run))
        self._calls.step_of_method = self._step_of_method
        for module, owner in _OWNERS.items():
            for name in _METHODS:  # if it cannot be wrapped, the step is titled "fit"
                self._calls.wrap_when_imported(module, owner, name, partial(self._wrap_on_batch, name=name))

    def _wrap_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        calls = self._calls

        @hide_in_tracebacks
        def run(strategy: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
            step = None if calls.is_within_step_or_off() else calls.run_safely(self._eager_step_name, fn)
            try:
                if step is None:
                    return original(strategy, fn, *args, **kwargs)
                with calls.step(step):
                    return original(strategy, fn, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise

        return run

    def _wrap_on_batch(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        threads = self._calls.threads

        @hide_in_tracebacks
        def on_batch(model: Any, *args: Any, **kwargs: Any) -> Any:
            state = threads.state
            before = state.method
            try:
                state.method = name
                return original(model, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            finally:
                state.method = before

        return on_batch

    def _eager_step_name(self, fn: Any) -> EagerKerasStepName | None:
        """Return the name of the steps of the eager Keras model that ``fn`` belongs to; None if it belongs to none."""
        loop, model = keras_loop_and_model(fn)
        if not loop or model is None:
            return None
        method = self._calls.threads.state.method
        name = method if _METHODS.get(method) == loop else loop
        step: EagerKerasStepName = self._step_of_model(model, EagerKerasStepName, name)
        return step

    def _step_of_method(self, function: Any, method: str) -> Any:
        """Return the name of a step that calls ``function`` within ``method``; ``function`` itself if no Keras model owns it."""
        if isinstance(function, StepName):
            return function
        if function not in self._functions:
            loop, model = keras_loop_and_model(function)
            self._functions[function] = loop, (weakref.ref(model) if model is not None else lambda: None)
        loop, model_of = self._functions[function]
        model = model_of()
        if model is None or _METHODS[method] != loop:
            return function
        return self._step_of_model(model, CompiledKerasStepName, method)

    def _step_of_model(self, model: Any, kind: type[Any], name: str) -> Any:
        """Return the name of the model's steps; for the same ``kind`` and ``name`` it is always the same object."""
        steps = self._steps.setdefault(model, {})
        if (kind, name) not in steps:
            steps[kind, name] = kind(keras_title(name, model))
        return steps[kind, name]
