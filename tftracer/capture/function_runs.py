"""Calls of compiled functions as steps of runs: counted, timed, and profiled if requested.

While traces are requested, the training threads call ``_families_of``, ``_family_of`` and ``_graph_adder``. Calls of functions
are counted by ``StepQueue.count_steps``, mostly on the writer's thread.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from tftracer.capture.functions.function_calls import FunctionCalls
from tftracer.capture.functions.function_definitions import concrete_function_module, function_library, is_concrete, name_of
from tftracer.capture.functions.function_titles import FunctionIdentity, StepName, identify
from tftracer.capture.functions.profiled_calls import FunctionTraces
from tftracer.capture.functions.retracing import Retracing
from tftracer.capture.loops.checkpoints_and_evaluations import Phases
from tftracer.capture.loops.eager_steps import EagerSteps
from tftracer.capture.loops.input_waits import InputWaits
from tftracer.capture.loops.keras_steps import CompiledKerasStepName, KerasSteps
from tftracer.capture.loops.python_functions import PythonFunctions
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.steps.run_registry import RunFamily
from tftracer.capture.traces import shared_profiles
from tftracer.errors import UnsupportedError
from tftracer.run_handle import RunHandle
from tftracer.trace.decode.xplane_reader import DEFINITIONS_PLANE, PARTITIONS_PLANE, with_plane


class FunctionRuns:
    """Watches the compiled functions of this process; their steps go to one queue."""

    def __init__(self, queue: StepQueue) -> None:
        self._queue = queue
        self.traces = FunctionTraces(queue, self._families_of, self._family_of, self._graph_adder)
        self.calls = FunctionCalls(queue, self.traces)
        #: Function or ConcreteFunction -> title of the Keras step that called it (``keras_step_title``) -> the family of its run.
        self._families: weakref.WeakKeyDictionary[Any, dict[str, RunFamily]] = weakref.WeakKeyDictionary()
        self._families_of_function: weakref.WeakKeyDictionary[Any, list[RunFamily]] = weakref.WeakKeyDictionary()
        self._families_of_identity: dict[FunctionIdentity, list[tuple[weakref.ref[Any], RunFamily]]] = {}
        self._named_steps: dict[str, StepName] = {}
        self._counts: Counter[str] = Counter()  # calls by the function's label, "train_step at train.py:12"
        self._retracing = Retracing()
        self._undo: list[Callable[[], None]] = []
        queue.count_call = self._count_call
        queue.request_graph = self.request_graph
        queue.live_functions = self.live_functions

    def watch(self) -> None:
        """Watch calls of functions.

        Raises AttributeError or ImportError if this TensorFlow lacks a method that must be wrapped.
        """
        self.calls.watch()
        KerasSteps(self.calls).watch()
        eager = EagerSteps(self.calls)
        eager.watch()
        InputWaits(self.calls, self._queue).watch()
        Phases(self.calls, self._queue).watch()
        PythonFunctions(self.calls, self._queue).watch()
        self._undo = [shared_profiles.install(self.traces.profiler), eager.stop, self.calls.stop]

    def stop(self) -> None:
        for undo in self._undo:
            undo()

    def set_note(self, note: str) -> None:
        """Add this note to the traces of all steps from now on."""
        self.traces.note = note

    def named_step(self, name: str) -> StepName:
        """Return the StepName of this name. It is always the same object, so all steps with one name are one run."""
        return self._named_steps.setdefault(name, StepName(name))

    def request_graph(self, handle: RunHandle) -> None:
        """Collect the optimized graph of a run's function in its next call. Raises UnsupportedError if it cannot be collected."""
        concrete_function = concrete_function_module().ConcreteFunction
        keys = [key for key, families in list(self._families.items()) for family in families.values() if family.plain is handle]
        functions = [key for key in keys if isinstance(key, concrete_function)]
        if not functions:
            raise UnsupportedError("Only compiled functions (tf.function) have a graph that can be collected.")
        self.calls.graphs.request(functions[-1], handle)

    def live_functions(self) -> list[Any]:
        """Return the ConcreteFunctions that were called and still exist. May be called from any thread."""
        return [key for reference in self._families.keyrefs() if (key := reference()) is not None and is_concrete(key)]

    def table_sizes(self) -> dict[str, int]:
        """Return name -> size of each table that grows with the number of functions. (No table may grow with the number of
        calls.)"""
        return {
            "functions": len(self._families_of_function),
            "concrete functions": len(self._families),
            "runs": len(self._queue.runs.families()),
            "runs by identity": sum(map(len, self._families_of_identity.values())),
            "places": len(self._retracing),
            "called functions": len(self.calls.graphs.called_functions),
            "partition graphs": len(self.calls.graphs),
        }

    # ---------------------------------------------------------------------------------------------- training threads

    def _families_of(self, function: Any) -> list[RunFamily]:
        return list(self._families_of_function.get(function, ()))

    def _family_of(self, function: Any, run_key: Any) -> RunFamily | None:
        return self._families.get(run_key, {}).get(keras_step_title(function))

    def _graph_adder(self, concrete: Any) -> Callable[[bytes], bytes]:
        """Return a function that adds the graphs that a step executed to the bytes of the step's profile.

        It adds the partition graphs if they were collected, else the definitions of the step's functions.
        """
        graphs = self.calls.graphs

        def add_graphs(raw: bytes) -> bytes:
            with contextlib.suppress(Exception):  # without the graph, the profile is still a useful trace
                partitions = graphs.of(concrete)
                if partitions:
                    raw = with_plane(raw, PARTITIONS_PLANE, name_of(concrete), partitions)
                else:
                    raw = with_plane(raw, DEFINITIONS_PLANE, name_of(concrete), function_library(concrete).SerializeToString())
            return raw

        return add_graphs

    # ------------------------------------------------------------------------ on the thread that counts the steps

    def _count_call(self, function: Any, concrete: Any) -> RunFamily:
        family = self._find_or_add_family(function, function if concrete is None else concrete)
        self._counts.update(family.identity.fetches)  # (the function's label,); () for the overflow run
        return family

    def _find_or_add_family(self, function: Any, key: Any) -> RunFamily:
        families_of_key = self._families.setdefault(key, {})
        family = families_of_key.get(keras_step_title(function))
        if family is None:
            self.calls.graphs.store_collected()  # the graph of a new function was just collected
            family = families_of_key[keras_step_title(function)] = self._new_family(function, key, bool(families_of_key))
            if is_concrete(key):
                family.plain.graph_on_request = not self.calls.graphs.has(key)
            families = self._families_of_function.setdefault(function, [])
            if family not in families[-1:]:
                families.append(family)
        return family

    def _new_family(self, function: Any, key: Any, is_known: bool) -> RunFamily:
        """Return the family for a function: that of a deleted function with the same identity, or a new one.

        ``key``: the executed ConcreteFunction, or ``function`` if there is none. ``is_known``: whether another Keras method has
        called ``key`` before.
        """
        identity = identify(function, key)
        name = identity.title.partition(" (")[0]
        label = f"{name} at {identity.definition}" if identity.definition else name
        changed = "" if is_known else self._difference(label, key, function)
        return self._family_of_deleted(key, identity) or self._add_family(key, identity, label, changed)

    def _family_of_deleted(self, key: Any, identity: FunctionIdentity) -> RunFamily | None:
        """Return the family of a deleted function with the same identity, and assign it to ``key``; None if there is none."""
        same_identity = self._families_of_identity.get(identity, [])
        for position, (key_reference, family) in enumerate(same_identity):
            if key_reference() is None:
                same_identity[position] = (weakref.ref(key), family)
                return family
        return None

    def _add_family(self, key: Any, identity: FunctionIdentity, label: str, changed: str) -> RunFamily:
        family = self._queue.runs.add_function(identity.title, (label,), identity.arguments, identity.origin)
        if family.plain.fetches == (label,):  # not the overflow run, which stands for all runs beyond the limit
            family.plain.changed = changed
            family.plain.has_python = not is_concrete(key)
            family.plain.tracings = self._retracing.count(label)
            self._families_of_identity.setdefault(identity, []).append((weakref.ref(key), family))
        return family

    def _difference(self, label: str, key: Any, function: Any) -> str:
        """Return how a function's new signature differs from its earlier ones, and report a function that is traced too often."""
        changed = self._retracing.add(label, key, function)
        problem = self._retracing.problem(label, self._counts[label], changed)
        if problem:
            self._queue.other_problems[f"retracing:{label}"] = problem
        return changed


def keras_step_title(function: Any) -> str:
    """Return the title of a CompiledKerasStepName; "" for other functions.

    Keras 2's ``fit`` and ``train_on_batch`` call the same function; this title tells their runs apart.
    """
    return str(function.__name__) if isinstance(function, CompiledKerasStepName) else ""
