"""Calls of compiled functions as steps of runs: counted, timed, and profiled when asked for.

The training threads come to ``_ask`` and ``_settle_claim`` alone; all else runs on the writer's.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import weakref
from collections import Counter
from typing import Any

from tftracer.capture import profiler
from tftracer.capture.function_identity import FunctionIdentity, identify
from tftracer.capture.functions import FunctionCall, FunctionCalls, NamedStep
from tftracer.capture.profiler import Profile
from tftracer.capture.run_registry import MAX_RUNS
from tftracer.capture.slow_steps import FUNCTIONS
from tftracer.capture.step_queue import StepQueue
from tftracer.capture.thread_time import ThreadTime
from tftracer.capture.trace_requests import Claim
from tftracer.session.recorded_steps import Capture, RunHandle, SessionFacts
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.profile_steps import first_step
from tftracer.trace.decode.xplane import with_graph

#: A profile that takes longer to be collected is given up.
COLLECT_S = 60.0
#: So many signatures of one function, in so many calls for each, are retracing.
RETRACED, CALLS_EACH = 4, 5
MAX_FUNCTIONS = 1000  # whose definitions go with a trace


class ProfiledStep(Capture):
    """A profile on its way to the disk: collected by another thread, waited for by the one that stores it."""

    def __init__(self, profile: Profile, asked_by: Any, concrete: Any, facts: SessionFacts) -> None:
        super().__init__(b"", asked_by, "profile", False, facts)
        self._profile = profile
        self._concrete = concrete

    @property
    def content(self) -> bytes:
        """The step's XSpace and the functions that it ran; ``b""`` where there is none."""
        raw = self._profile.raw(COLLECT_S)
        if not raw:
            return b""
        raw = first_step(raw)
        with contextlib.suppress(Exception):  # the graph is an addition
            raw = with_graph(raw, *function_library(self._concrete))
        return raw

    @property
    def problem(self) -> str:
        return self._profile.problem


def function_library(concrete: Any) -> tuple[str, bytes]:
    """(name, serialized FunctionDefLibrary) of a function and those that it calls, as TensorFlow runs them."""
    context = importlib.import_module("tensorflow.python.eager.context").context()
    name = concrete.name
    root = name.decode() if isinstance(name, bytes) else str(name)
    library, left, seen = message_class("FunctionDefLibrary")(), [root], {root}
    while left and len(seen) < MAX_FUNCTIONS:
        definition = library.function.add()
        definition.ParseFromString(context.get_function_def(left.pop()).SerializeToString())
        for node in definition.node_def:
            for value in node.attr.values():
                called = value.func.name if value.HasField("func") else ""
                if called and called not in seen and context.has_function(called):
                    seen.add(called)
                    left.append(called)
    return root, library.SerializeToString()


class FunctionRuns:
    """The compiled functions of this process, for one queue."""

    def __init__(self, queue: StepQueue) -> None:
        self._queue = queue
        requests = queue.requests
        self.calls = FunctionCalls(requests, self._ask, self._settle_claim, queue.failed, queue.under_way)
        self._handles: weakref.WeakKeyDictionary[Any, RunHandle] = weakref.WeakKeyDictionary()  # ConcreteFunction -> its run
        self._of_function: weakref.WeakKeyDictionary[Any, list[RunHandle]] = weakref.WeakKeyDictionary()
        self._settling = threading.Lock()
        self._named: dict[str, NamedStep] = {}
        self._counts: Counter[str] = Counter()  # calls by function name
        self._time = ThreadTime(0)
        self._signatures: dict[str, list[FunctionIdentity]] = {}
        self._titles: Counter[str] = Counter()

    def watch(self) -> None:
        """Raises what an unknown TensorFlow makes of it; nothing is watched then."""
        self.calls.watch()
        profiler.install(self.calls.profiler)
        self._queue.sources.append(self.settle)

    def stop(self) -> None:
        self.calls.stop()

    def named(self, name: str) -> NamedStep:
        """The same for the same name: steps of one name are one run."""
        return self._named.setdefault(name, NamedStep(name))

    # ---------------------------------------------------------------------------------------------- training threads

    def _ask(self, function: Any) -> Claim | None:
        if self._queue.off:
            self.calls.off = True
            return None
        return self._queue.requests.claim(list(self._of_function.get(function, ())))

    def _settle_claim(self, claim: Claim, done: bool) -> None:
        if done:
            self._queue.requests.complete(claim)
        else:
            self._queue.requests.restore(claim)

    # ---------------------------------------------------------------------------------------------- the writer's thread

    def settle(self) -> None:
        """Hand the finished calls over as steps."""
        if not self._settling.acquire(blocking=False):
            return  # another thread is at it
        try:
            self._settle_all()
        finally:
            self._settling.release()

    def _settle_all(self) -> None:
        events = self.calls.events
        for _ in range(len(events)):
            call = FunctionCall(*events.popleft())
            capture = self._capture(call)
            handle, start, end = self._handle(call), call.start_ns, call.end_ns
            outside = self._time.outside_before(handle, FUNCTIONS, start, end, capture)
            self._queue.add_settled((handle, start, end, outside, capture))

    def _capture(self, call: FunctionCall) -> Capture | None:
        if call.profile is None:
            return None
        return self._queue.backlog.add(ProfiledStep(call.profile, call.asked_by or "user", call.concrete, self._queue.facts))

    def _handle(self, call: FunctionCall) -> RunHandle:
        key = call.concrete if call.concrete is not None else call.function
        handle = self._handles.get(key)
        if handle is None:
            handle = self._handles[key] = self._new_handle(call)
            self._of_function.setdefault(call.function if call.function is not None else key, []).append(handle)
        self._counts[handle.fetches[0]] += 1
        return handle

    def _new_handle(self, call: FunctionCall) -> RunHandle:
        identity = identify(call.function, call.concrete)
        name = identity.title.partition(" (")[0]
        place = f"{name} at {identity.definition}" if identity.definition else name
        self._retracing(place, identity)
        if sum(self._titles.values()) >= MAX_RUNS:
            return self._queue.runs.rest()
        self._titles[identity.title] += 1
        number = self._titles[identity.title]
        title = identity.title if number == 1 else f"{identity.title} ({number})"
        return RunHandle(title, (place,), identity.arguments, "")

    def _retracing(self, place: str, identity: FunctionIdentity) -> None:
        """The commonest mistake: a function that is traced anew for each shape or Python value that it is given."""
        signatures = self._signatures.setdefault(place, [])
        if len(signatures) < 100:
            signatures.append(identity)
        count = len(signatures)
        if count >= RETRACED and self._counts[place] < CALLS_EACH * count:
            self._queue.other_problems[f"retracing:{place}"] = (
                f"{place} was traced {count} times in {self._counts[place] + 1} calls: {changed(*signatures[-2:])}. Each tracing "
                "builds the graph again. Pass tensors of one shape and type, or give the function an input_signature."
            )


def changed(before: FunctionIdentity, after: FunctionIdentity) -> str:
    """Which argument of a function differs between two signatures."""
    for number, (one, other) in enumerate(zip(before.arguments, after.arguments)):
        if one != other:
            return f"argument {number + 1} changed from {one} to {other}"
    if len(before.arguments) != len(after.arguments):
        return f"it was called with {len(before.arguments)} and with {len(after.arguments)} tensors"
    return "its tensors have the same shapes and types, so a Python value among its arguments changed (or it was made anew)"
