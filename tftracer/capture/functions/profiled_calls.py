"""Traces (profiles) of compiled functions: which calls are profiled, and how a profile is stored. Runs on the training threads.

A process has one profiler, and a separate thread needs up to several hundred milliseconds to collect a profile. So consecutive
steps that are to be traced share a profile, as long as it stays small. The next step waits a short time for the collection; if
the collection takes longer, that next step runs untraced, and a later one is traced. While the script uses the profiler itself,
requests wait, and the page says so.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Any

from tftracer.capture.functions.function_titles import StepName
from tftracer.capture.functions.retracing import MANY_SIGNATURES
from tftracer.capture.recorded_steps import Capture, Missed, SessionFacts, Traced
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.steps.run_registry import RunFamily
from tftracer.capture.traces.cpu_use import cpu_use, read_after, read_before
from tftracer.capture.traces.fed_values import describe_arguments
from tftracer.capture.traces.requests import Claim
from tftracer.capture.traces.shared_profiles import Profile, Profiler
from tftracer.trace.model import FedValue

#: If collecting a profile takes longer, the profile is given up.
COLLECT_S = 60.0
#: A step waits this long for the previous profile to be collected; after that it runs untraced.
WAIT_S = 0.08
COLLECTING = "TensorFlow's profiler was still collecting the profile of the previous step"
#: Maximum size of a profile that several steps share, in bytes, estimated from earlier steps.
MAX_SHARED_BYTES = 64 << 20
#: Code of the problem that requests wait because the script itself uses the profiler.
BUSY = "profiler_busy"


class ProfiledStep(Capture):
    """A step's profile that is to be stored.

    One thread collects the profile. Another thread stores it, and waits until the profile is collected.
    """

    def __init__(
        self, begun: BegunTrace, facts: SessionFacts, add_graph: Callable[[bytes], bytes], record_size: Callable[[int], None]
    ) -> None:
        super().__init__(b"", begun.claim.asked_by, "profile", False, facts)
        self._profile = begun.profile
        self._number = begun.number
        self._add_graph = add_graph
        self._record_size = record_size

    @property
    def size(self) -> int:
        """Bytes of the step's share of the profile; 0 while the profile is being collected."""
        return self._profile.size // max(self._profile.wanted_calls, 1)

    def read(self) -> bytes:
        """Return the serialized XSpace of the step, with its graph; ``b""`` if there is no profile."""
        raw = self._profile.step(self._number, COLLECT_S)
        self._record_size(len(raw))
        return self._add_graph(raw) if raw else b""

    @property
    def problem(self) -> str:
        return self._profile.problem or f"Collecting a step's profile took longer than {COLLECT_S:.0f} s."


class BegunTrace:
    """The trace of a call that is being profiled."""

    def __init__(self, function: Any, claim: Claim, profile: Profile) -> None:
        self.function = function
        self.claim = claim
        self.profile = profile
        self.number = profile.begin_step()  # number of the call in the profile
        self.before_ns = 0  # ns spent in ``FunctionTraces.begin``, mostly waiting for the previous profile or for the backlog
        self.cpu = read_before()
        self.fed: list[FedValue] | None = None  # what the script passed to the call; None: not known

    def run_key(self, concrete: Any) -> Any:
        """Return the key of this step's run: ``function`` if it is a StepName, or if the call executed no ConcreteFunction;
        else the ConcreteFunction."""
        return self.function if concrete is None or isinstance(self.function, StepName) else concrete


class FunctionTraces:
    """Decides which calls of compiled functions are profiled, and profiles them.

    ``families_of(function)`` returns the families of the function's runs so far. ``family_of(function, key)`` returns the family
    of the run with this ``run_key``; None if no step of it was counted yet. ``graph_adder_of(key)`` returns a function that adds
    the key's graph to a profile.
    """

    def __init__(
        self,
        queue: StepQueue,
        families_of: Callable[[Any], list[RunFamily]],
        family_of: Callable[[Any, Any], RunFamily | None],
        graph_adder_of: Callable[[Any], Callable[[bytes], bytes]],
    ) -> None:
        self.profiler = Profiler()
        self.wait_s = WAIT_S
        self.note = ""  # a text for the traces of all steps that end from now on
        self._queue = queue
        self._families_of = families_of
        self._family_of = family_of
        self._graph_adder_of = graph_adder_of
        self._sizes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # function -> bytes of its last profile

    def begin(self, function: Any, arguments: Any = None) -> BegunTrace | Missed | None:
        """Begin a trace. Return None if the step is not to be traced, Missed if it cannot be traced because of earlier traces.

        ``arguments``: the call's (args, kwargs).
        """
        start = perf_counter_ns()
        begun = self._begin(function)
        if isinstance(begun, BegunTrace) and arguments is not None:
            begun.fed = describe_arguments(arguments, getattr(function, "input_signature", None))
        if begun is not None:
            begun.before_ns = perf_counter_ns() - start
        return begun

    def _begin(self, function: Any) -> BegunTrace | Missed | None:
        queue = self._queue
        families = self._families_of(function)
        is_requested = queue.is_requested(families)
        if not is_requested and not queue.is_expected(families):
            return None
        if any(family.plain.graph_requested for family in families):
            return None  # this call also builds the requested graph, which takes time: the next call is traced
        if self.profiler.is_recording and not queue.requests.trace_all:
            return None  # a step of another thread is being profiled; a later step will be traced
        profile = self.profiler.resume() if is_requested else None
        if profile is None and not self.profiler.wait(self.wait_s if is_requested else 0.0):
            return queue.missed_mark(COLLECTING, queue.next_requested_family(families)) if is_requested else None
        claim = queue.claim_families(families)
        if claim is None or isinstance(claim, Missed):
            if profile is not None:
                self.profiler.undo_resume()
            return claim
        profile = profile or self.profiler.begin()
        if profile is None:
            self._restore_request(claim, self.profiler.last_refusal)
            return None
        return BegunTrace(function, claim, profile)

    def _restore_request(self, claim: Claim, why: str) -> None:
        """Restore the request, because the profiler is not available, for example while the script uses it."""
        self._queue.other_problems[BUSY] = f"Steps that are to be traced wait: {why}."
        self._queue.restore_request(claim)

    def end(self, begun: BegunTrace | Missed, concrete: Any, succeeded: bool, end_ns: int) -> Traced:
        """End a trace. ``concrete``: the last ConcreteFunction that the call executed; ``succeeded``: it raised no error."""
        if isinstance(begun, Missed):
            return begun
        cpu = read_after()
        capture = self._end(begun, concrete, succeeded)
        if capture is not None:
            capture.note, capture.fed = self.note, begun.fed
            capture.read_cpu_use = partial(cpu_use, begun.cpu, cpu)
            capture.before_ns, capture.after_ns = begun.before_ns, perf_counter_ns() - end_ns
        return capture

    def _end(self, begun: BegunTrace, concrete: Any, succeeded: bool) -> Capture | None:
        claim, profile, queue = begun.claim, begun.profile, self._queue
        family = self._family_of(begun.function, begun.run_key(concrete))
        matches_request = claim.handle is None or (family is not None and family.plain is claim.handle)
        if family is None and len(self._families_of(begun.function)) >= MANY_SIGNATURES:
            matches_request = True  # because nearly every call is a new run, so the requested run may never come again
        if not (succeeded and matches_request):  # the step failed, or its signature is not that of the requested run
            queue.restore_request(claim)
            why = "the step failed" if not succeeded else "the step belonged to another run"
            self.profiler.abandon(profile, why, self._next_step_joins(begun))
            return None
        if not self.profiler.finish(profile, self._next_step_joins(begun)):
            self._restore_request(claim, profile.problem)
            return None
        queue.other_problems.pop(BUSY, None)
        queue.requests.complete(claim)
        graph = self._graph_adder_of(begun.function if concrete is None else concrete)
        function = weakref.ref(begun.function)
        return queue.backlog.add(ProfiledStep(begun, queue.facts, graph, lambda size: self._record_size(function(), size)))

    def _next_step_joins(self, begun: BegunTrace) -> bool:
        """Return whether another step is to be traced, and would fit into the profile if it is like the earlier steps."""
        profile, size = begun.profile, self._sizes.get(begun.function, 0)
        fits = profile.used_share() * (1 + 1 / profile.begun_calls) < 1 and size * (profile.begun_calls + 1) <= MAX_SHARED_BYTES
        return fits and self._queue.requests.has_any([family.plain for family in self._families_of(begun.function)])

    def _record_size(self, function: Any, size: int) -> None:
        if function is not None:
            self._sizes[function] = size
