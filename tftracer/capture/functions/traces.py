"""Traces of compiled functions: which calls are profiled, and what becomes of a profile. Runs on the training threads.

A process has one profiler, and another thread needs a few to some hundred milliseconds to collect a profile. So consecutive steps
that are to be traced share a profile, as long as it stays small. The next step waits a short time for the collection; if that
takes longer, this step runs untraced, and a later one is traced. While the script uses the profiler itself, requests wait, and
the page says so.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Any

from tftracer.capture.functions.calls import NamedStep
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.steps.run_registry import CallSite
from tftracer.capture.traces.cpu_use import cpu_use, read_after, read_before
from tftracer.capture.traces.fed_values import describe_arguments
from tftracer.capture.traces.profiler import Profile, Profiler
from tftracer.capture.traces.requests import Claim
from tftracer.session.recorded_steps import Capture, Missed, SessionFacts, Traced
from tftracer.trace.model import FedValue

#: If collecting a profile takes longer, the profile is given up.
COLLECT_S = 60.0
#: A step waits this long for the previous profile to be collected; after that it runs untraced.
WAIT_S = 0.08
COLLECTING = "TensorFlow's profiler was still collecting the step before"
#: Maximum size of the steps in one profile, estimated from earlier steps.
MAX_SHARED_BYTES = 64 << 20
#: From this many signatures on, each new one is a sign that the function is traced again and again.
MANY_SIGNATURES = 4
#: The problem of requests that wait for the script's own profiler.
BUSY = "profiler_busy"


class ProfiledStep(Capture):
    """A step's profile on its way to the disk. Another thread collects it; the thread that stores it waits for that."""

    def __init__(
        self, begun: BegunTrace, facts: SessionFacts, add_graph: Callable[[bytes], bytes], note_size: Callable[[int], None]
    ) -> None:
        super().__init__(b"", begun.claim.asked_by, "profile", False, facts)
        self._profile = begun.profile
        self._number = begun.number
        self._add_graph = add_graph
        self._note_size = note_size

    @property
    def size(self) -> int:
        """0 while the profile is being collected; then the step's share of it."""
        return self._profile.size // max(self._profile.wanted_calls, 1)

    def read(self) -> bytes:
        """Return the step's XSpace with its graph; ``b""`` if there is none."""
        raw = self._profile.step(self._number, COLLECT_S)
        self._note_size(len(raw))
        return self._add_graph(raw) if raw else b""

    @property
    def problem(self) -> str:
        return self._profile.problem or f"Collecting a step's profile took longer than {COLLECT_S:.0f} s."


class BegunTrace:
    """A call that is being profiled."""

    def __init__(self, function: Any, claim: Claim, profile: Profile) -> None:
        self.function = function
        self.claim = claim
        self.profile = profile
        self.number = profile.begin_step()
        self.before_ns = 0  # time in ``begin``: waiting for the previous profile, or for room in the backlog
        self.cpu = read_before()
        self.fed: list[FedValue] | None = None

    def run_key(self, concrete: Any) -> Any:
        """Return the key of this step's run."""
        return self.function if concrete is None or isinstance(self.function, NamedStep) else concrete


class FunctionTraces:
    """``sites_of``: returns the call sites of a function so far; ``site_of``: that of a function and the ConcreteFunction that it
    executed, None if that is new; ``graph_adder_of``: a function that adds a ConcreteFunction's graph to a profile."""

    def __init__(
        self,
        queue: StepQueue,
        sites_of: Callable[[Any], list[CallSite]],
        site_of: Callable[[Any, Any], CallSite | None],
        graph_adder_of: Callable[[Any], Callable[[bytes], bytes]],
    ) -> None:
        self.profiler = Profiler()
        self.wait_s = WAIT_S
        self.note = ""  # for the traces of steps that end from now on
        self._queue = queue
        self._sites_of = sites_of
        self._site_of = site_of
        self._graph_adder_of = graph_adder_of
        self._sizes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # bytes of each function's last profile

    def begin(self, function: Any, arguments: Any = None) -> BegunTrace | Missed | None:
        """Begin a trace. None: the step is not to be traced; Missed: it cannot be, because of earlier traces."""
        start = perf_counter_ns()
        begun = self._begin(function)
        if isinstance(begun, BegunTrace) and arguments is not None:
            begun.fed = describe_arguments(arguments, getattr(function, "input_signature", None))
        if begun is not None:
            begun.before_ns = perf_counter_ns() - start
        return begun

    def _begin(self, function: Any) -> BegunTrace | Missed | None:
        queue = self._queue
        sites = self._sites_of(function)
        is_requested = queue.is_requested(sites)
        if not is_requested and not queue.is_expected(sites):
            return None
        if any(site.plain.graph_requested for site in sites):
            return None  # this call also builds the requested graph, which takes time: the next call is traced
        if self.profiler.is_recording and not queue.requests.trace_all:
            return None  # a step of another thread is being profiled; a later step will be traced
        profile = self.profiler.resume() if is_requested else None
        if profile is None and not self.profiler.wait(self.wait_s if is_requested else 0.0):
            return queue.missed_mark(COLLECTING, queue.next_requested_site(sites)) if is_requested else None
        claim = queue.claim_sites(sites)
        if claim is None or isinstance(claim, Missed):
            if profile is not None:
                self.profiler.undo_resume(profile)
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

    def end(self, begun: BegunTrace | Missed, concrete: Any, done: bool, end_ns: int) -> Traced:
        if isinstance(begun, Missed):
            return begun
        cpu = read_after()
        capture = self._end(begun, concrete, done)
        if capture is not None:
            capture.note, capture.fed = self.note, begun.fed
            capture.read_cpu_use = partial(cpu_use, begun.cpu, cpu)
            capture.before_ns, capture.after_ns = begun.before_ns, perf_counter_ns() - end_ns
        return capture

    def _end(self, begun: BegunTrace, concrete: Any, done: bool) -> Capture | None:
        claim, profile, queue = begun.claim, begun.profile, self._queue
        site = self._site_of(begun.function, begun.run_key(concrete))
        matches_request = claim.handle is None or (site is not None and site.plain is claim.handle)
        if site is None and len(self._sites_of(begun.function)) >= MANY_SIGNATURES:
            matches_request = True  # nearly every call is a new run: the requested run may never come again
        if not (done and matches_request):  # it failed, or has another signature than the requested run
            queue.restore_request(claim)
            why = "the step failed" if not done else "the step belonged to another run"
            self.profiler.abandon(profile, why, self._next_step_joins(begun))
            return None
        if not self.profiler.finish(profile, self._next_step_joins(begun)):
            self._restore_request(claim, profile.problem)
            return None
        queue.other_problems.pop(BUSY, None)
        queue.requests.complete(claim)
        graph = self._graph_adder_of(begun.function if concrete is None else concrete)
        function = weakref.ref(begun.function)
        return queue.backlog.add(ProfiledStep(begun, queue.facts, graph, lambda size: self._note_size(function(), size)))

    def _next_step_joins(self, begun: BegunTrace) -> bool:
        """Return whether another step is to be traced and fits into the profile."""
        profile, size = begun.profile, self._sizes.get(begun.function, 0)
        fits = profile.used_share() * (1 + 1 / profile.begun_calls) < 1 and size * (profile.begun_calls + 1) <= MAX_SHARED_BYTES
        return fits and self._queue.requests.has_any([site.plain for site in self._sites_of(begun.function)])

    def _note_size(self, function: Any, size: int) -> None:
        if function is not None:
            self._sizes[function] = size
