"""Measures the time of what a training does besides its steps: checkpoints, summaries, evaluations, and TensorFlow's tracing of
functions; one such activity is called a phase. Some methods of TensorFlow and Keras are wrapped for this. The ledger shows the
times. Phases are rare, and most steps call no wrapper.

Runs on the training threads. A phase within a phase of the same kind is not counted separately.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.capture.functions.function_calls import FunctionCalls
from tftracer.capture.steps.queue import PHASE, StepQueue
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames
from tftracer.ledger.activity import BUILDING, CHECKPOINTS, EVALUATION

_MODEL_METHODS = ("save", "save_weights", "load_weights", "export")
_LIBRARY_FUNCTIONS = ("save_model", "load_model", "save_weights_only", "load_weights_only")
_CALLBACK_METHODS = ("on_epoch_end", "_save_model")
_EVALUATION_METHODS = ("evaluate", "predict")
#: Module, class in it ("": none), methods, kind in the ledger. For Keras 3, Keras 2, the Keras of TensorFlow 2.12, and tf_keras.
_WRAPPED: list[tuple[str, str, tuple[str, ...], int]] = [
    ("tensorflow.python.framework.func_graph", "", ("func_graph_from_py_func",), BUILDING),
    ("tensorflow.python.training.saver", "Saver", ("save", "restore"), CHECKPOINTS),
    ("tensorflow.python.training.basic_session_run_hooks", "CheckpointSaverHook", ("_save",), CHECKPOINTS),
    ("tensorflow.python.checkpoint.checkpoint", "TrackableSaver", ("save", "restore"), CHECKPOINTS),
    ("tensorflow.python.checkpoint.checkpoint", "Checkpoint", ("save", "write", "restore", "read"), CHECKPOINTS),
    ("tensorflow.python.checkpoint.checkpoint_management", "CheckpointManager", ("save",), CHECKPOINTS),
    ("tensorflow.python.saved_model.builder_impl", "_SavedModelBuilder", ("save",), CHECKPOINTS),
    ("tensorflow.python.ops.summary_ops_v2", "_ResourceSummaryWriter", ("flush", "close"), CHECKPOINTS),
    ("tensorflow.python.saved_model.save", "", ("save_and_return_nodes",), CHECKPOINTS),
    ("tensorflow.python.saved_model.load", "", ("load_partial",), CHECKPOINTS),
    ("tensorflow.python.summary.writer.writer", "FileWriter", ("add_summary", "flush"), CHECKPOINTS),
    ("tensorflow_estimator.python.estimator.estimator", "Estimator", ("_call_model_fn",), BUILDING),
    ("tensorflow_estimator.python.estimator.estimator", "Estimator", _EVALUATION_METHODS, EVALUATION),
    ("tensorflow_estimator.python.estimator.estimator", "Estimator", ("export_saved_model",), CHECKPOINTS),
    ("keras.src.models.model", "Model", _MODEL_METHODS, CHECKPOINTS),
    ("keras.src.saving.saving_lib", "", _LIBRARY_FUNCTIONS, CHECKPOINTS),
    ("keras.src.saving.legacy.save", "", ("load_model",), CHECKPOINTS),
    ("keras.src.legacy.saving.legacy_h5_format", "", ("save_model_to_hdf5", "load_model_from_hdf5"), CHECKPOINTS),
    ("keras.src.backend.tensorflow.trainer", "TensorFlowTrainer", _EVALUATION_METHODS, EVALUATION),
    ("keras.src.callbacks.model_checkpoint", "ModelCheckpoint", _CALLBACK_METHODS, CHECKPOINTS),
    *(
        entry
        for package in ("keras.src", "keras", "tf_keras.src")
        for entry in (
            (f"{package}.engine.training", "Model", _MODEL_METHODS, CHECKPOINTS),
            (f"{package}.engine.training", "Model", _EVALUATION_METHODS, EVALUATION),
            (f"{package}.callbacks", "ModelCheckpoint", _CALLBACK_METHODS, CHECKPOINTS),
        )
    ),
]


#: Minimum duration of a phase of a method that yields (Estimator.predict). A value that comes faster was ready before, such as a
#: row of a batch.
MIN_NS = 50_000


class BegunPhase(NamedTuple):
    thread: int
    kind: int
    name: str
    start_ns: int


class Phases:
    """Wraps the methods in ``_WRAPPED``, so that each call is recorded as a phase."""

    def __init__(self, calls: FunctionCalls, queue: StepQueue) -> None:
        """Requires that ``calls.watch()`` was called before."""
        self._calls = calls
        self._queue = queue

    def watch(self) -> None:
        """Wrap the methods of each module as soon as it is imported, until ``FunctionCalls.stop``. Skip missing methods."""
        for module, owner, methods, kind in _WRAPPED:
            for method in methods:
                label = f"{owner}.{method}" if owner else method
                self._calls.wrap_when_imported(module, owner, method, partial(self._wrap, kind=kind, label=label))

    def _wrap(self, original: Callable[..., Any], kind: int, label: str) -> Callable[..., Any]:
        wrap = self.wrap_generator if inspect.isgeneratorfunction(original) else self.wrap_method
        return wrap(original, kind, label)

    def wrap_method(self, original: Callable[..., Any], kind: int, label: str) -> Callable[..., Any]:
        """Wrap a method: each call is a phase. ``label``: such as "Saver.save"."""
        calls, begin, end = self._calls, self._begin, self._end

        @hide_in_tracebacks
        def phase(*args: Any, **kwargs: Any) -> Any:
            begun = calls.run_safely(begin, kind, label, args)
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            finally:
                if begun is not None:
                    calls.run_safely(end, begun)

        return phase

    def wrap_generator(self, original: Callable[..., Any], kind: int, label: str) -> Callable[..., Any]:
        """Wrap a method that yields: each computation of its next value is a phase."""
        calls, begin, end = self._calls, self._begin, self._end

        @hide_in_tracebacks
        def phase(*args: Any, **kwargs: Any) -> Iterator[Any]:
            values = original(*args, **kwargs)
            try:
                while True:
                    begun = calls.run_safely(begin, kind, label, args)
                    try:
                        value = next(values)
                    except StopIteration:
                        return
                    except BaseException as error:
                        remove_our_frames(error)
                        raise
                    finally:
                        if begun is not None:
                            calls.run_safely(end, begun, MIN_NS)
                    yield value
            finally:
                values.close()

        return phase

    def _begin(self, kind: int, label: str, args: tuple[Any, ...]) -> BegunPhase | None:
        thread, under_way = get_ident(), self._queue.activities.under_way
        if self._queue.off or (thread, kind) in under_way:
            return None
        begun = BegunPhase(thread, kind, phase_name(kind, label, args), perf_counter_ns())
        under_way[thread, kind] = begun.name, begun.start_ns
        self._queue.thread_clocks.read(thread, begun.start_ns)
        return begun

    def _end(self, begun: BegunPhase, min_ns: int = 0) -> None:
        end = perf_counter_ns()
        self._queue.activities.under_way.pop((begun.thread, begun.kind), None)
        self._queue.thread_clocks.read(begun.thread, end)
        if end - begun.start_ns >= min_ns:
            self._queue.add((PHASE, (begun.kind, begun.name), begun.start_ns, end, begun.thread, None))


def phase_name(kind: int, label: str, args: tuple[Any, ...]) -> str:
    """Return the name of a phase: "tracing train_step", "evaluate: convnet", "Saver.save"."""
    if label == "func_graph_from_py_func":
        return f"tracing {args[0]}" if args and isinstance(args[0], str) else "tracing"
    name = getattr(args[0], "name", None) if kind == EVALUATION and args else None
    return f"{label.rpartition('.')[2]}: {name}" if isinstance(name, str) else label.strip(".").replace("._", ".")
