"""Steps of compiled functions: each call of a ``tf.function`` from Python is one, Keras's fit, evaluate and predict included.

Two methods of TensorFlow are wrapped, none of the script's objects: ``Function.__call__``, through which nearly everything
compiled goes, and ``ConcreteFunction._call_flat``, which tells the signature. An untraced call costs two clock reads and an
append. Calls within a call (a function that calls functions while it is traced) are no steps. The wrappers run on the training
threads: nothing of ours leaves them, and they call what they wrap in any case.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.capture.function_modules import concrete_functions
from tftracer.capture.profiler import Profile, Profiler

#: More calls than these are not kept where nobody counts them.
MAX_EVENTS = 1 << 16
#: Of a call that was not profiled: (profile, who asked for it).
NOTHING: tuple[Any, str] = (None, "")


class FunctionCall(NamedTuple):
    """One finished call."""

    function: Any  # tf.function, a ConcreteFunction that was called by itself, or a NamedStep
    concrete: Any  # what was executed, None where the function ran eagerly
    start_ns: int  # perf_counter
    end_ns: int
    profile: Profile | None
    asked_by: str  # of a profiled call


class NamedStep:
    """What ``server.step("train")`` is a step of; one for each name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


def _always() -> bool:
    return True


class _State(threading.local):
    """What a thread is doing."""

    depth = 0
    concrete: Any = None


class FunctionCalls:
    """Watches the compiled functions of this process.

    ``ask(function)``, before each call while ``requests.slow_path`` is set: the request that it serves, or None.
    ``settle(request, done)``, after it: whether there is a profile of it.
    """

    def __init__(
        self,
        requests: Any,
        ask: Callable[[Any], Any],
        settle: Callable[[Any, bool], None],
        failed: Callable[[str, BaseException], None],
        under_way: dict[int, int],
    ) -> None:
        self.events: deque[tuple[Any, Any, int, int, Profile | None, str]] = deque(maxlen=MAX_EVENTS)
        self.off = False
        self.profiler = Profiler()
        self._state = _State()
        self._requests = requests
        self._ask = ask
        self._settle = settle
        self._failed = failed
        self._under_way = under_way  # thread -> when its step began, or, negative, when its last one ended (StepQueue)
        self._undo: list[Callable[[], None]] = []

    # --------------------------------------------------------------------------------------------- watching and not

    def watch(self) -> None:
        """Wrap TensorFlow's two methods. Raises AttributeError or ImportError on a TensorFlow that has others."""
        functions = importlib.import_module("tensorflow.python.eager.polymorphic_function.polymorphic_function")
        concrete = concrete_functions()
        eagerly = importlib.import_module("tensorflow.python.eager.context").executing_eagerly
        self._wrap(concrete.ConcreteFunction, "_call_flat", self._flat(concrete.ConcreteFunction._call_flat, eagerly))
        self._wrap(functions.Function, "__call__", self._call(functions.Function.__call__, eagerly))

    def _wrap(self, owner: type, name: str, wrapper: Callable[..., Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(wrapper))

        def undo() -> None:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)

        self._undo.append(undo)

    def stop(self) -> None:
        """Wrappers that others have wrapped again stay, and pass everything on."""
        self.off = True
        for undo in self._undo:
            undo()
        self._undo.clear()

    # --------------------------------------------------------------------------------------------------- the wrappers

    def _call(self, original: Callable[..., Any], eagerly: Callable[[], bool]) -> Callable[..., Any]:
        state, events, requests, under_way = self._state, self.events, self._requests, self._under_way

        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            if state.depth or self.off:
                return original(function, *args, **kwargs)
            request = self._quietly(self._begin, function, eagerly) if requests.slow_path else None
            state.depth, state.concrete = 1, None
            thread = get_ident()
            start = under_way[thread] = perf_counter_ns()
            try:
                result = original(function, *args, **kwargs)
            except BaseException:
                state.depth = 0
                under_way[thread] = -perf_counter_ns()
                if request is not None:
                    self._quietly(self._end, request, False)
                raise
            end = perf_counter_ns()
            under_way[thread] = -end
            state.depth = 0
            profile, asked_by = self._quietly(self._end, request, True) or NOTHING if request is not None else NOTHING
            if eagerly():  # else it became a part of a graph
                events.append((function, state.concrete, start, end, profile, asked_by))  # a FunctionCall, in half the time
            return result

        return call

    def _flat(self, original: Callable[..., Any], eagerly: Callable[[], bool]) -> Callable[..., Any]:
        state = self._state

        def call_flat(concrete: Any, *args: Any, **kwargs: Any) -> Any:
            if state.depth:
                state.concrete = concrete
                return original(concrete, *args, **kwargs)
            if self.off or not eagerly():
                return original(concrete, *args, **kwargs)
            return by_itself(concrete, *args, **kwargs)

        by_itself = self._call(original, eagerly)  # a ConcreteFunction that is called without its tf.function
        return call_flat

    @contextlib.contextmanager
    def step(self, named: NamedStep) -> Iterator[None]:
        """A step of the script's own: what is called in it is no step by itself."""
        state = self._state
        if state.depth or self.off:
            yield
            return
        request = self._quietly(self._begin, named, _always) if self._requests.slow_path else None
        state.depth = 1
        done, thread = False, get_ident()
        start = self._under_way[thread] = perf_counter_ns()
        try:
            yield
            done = True
        finally:
            end = perf_counter_ns()
            self._under_way[thread] = -end
            state.depth = 0
            profile, asked_by = self._quietly(self._end, request, done) or NOTHING if request is not None else NOTHING
            if done:
                self.events.append((named, None, start, end, profile, asked_by))

    def _quietly(self, action: Callable[..., Any], *arguments: Any) -> Any:
        """What ``action`` returns; None if it fails, and functions are watched no more."""
        try:
            return action(*arguments)
        except Exception as error:
            self.off = True
            with contextlib.suppress(Exception):
                self._failed("a compiled function", error)
            return None

    def _begin(self, function: Any, eagerly: Callable[[], bool]) -> tuple[Any, Profile] | None:
        """The request that this call serves, and its profile, which has begun; None if the call is not profiled."""
        ticket = self._ask(function) if eagerly() else None
        if ticket is None:
            return None
        profile = self.profiler.begin()
        if profile is None:
            self._settle(ticket, False)
            return None
        return ticket, profile

    def _end(self, request: tuple[Any, Profile], done: bool) -> tuple[Profile | None, str]:
        """(the profile, who asked for it) of a call that ended well."""
        ticket, profile = request
        if done:
            self.profiler.finish(profile)
        else:
            self.profiler.abandon(profile)
        self._settle(ticket, done)
        return profile, ticket.asked_by
