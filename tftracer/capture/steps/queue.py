"""StepQueue: takes the finished steps from the training threads (at most MAX_EVENTS), and knows which steps are to be traced.

Nothing here writes a file, imports TensorFlow, or waits for a lock that another thread holds for long. A step that is to be
traced may wait until other traces are stored, for a limited time (traces/backlog.py).
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Optional, Union

from tftracer.capture.own_errors import OwnErrors
from tftracer.capture.recorded_steps import Capture, CountedStep, Missed, SessionFacts, Traced, tracer_ns
from tftracer.capture.steps.run_identity import DEBUG_WATCHES, REFUSALS
from tftracer.capture.steps.run_registry import RunFamily, RunRegistry
from tftracer.capture.steps.thread_time import ThreadTimes
from tftracer.capture.traces.backlog import TraceBacklog
from tftracer.capture.traces.requests import Claim, TraceRequests
from tftracer.contract.session import AskedBy
from tftracer.errors import UnsupportedError
from tftracer.input_pipelines.watch import Pipelines
from tftracer.ledger.activity import CHECKPOINTS, INPUT, NEXT_ELEMENT, TRACER, Activities, kind_of_step
from tftracer.run_handle import RunHandle
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.function_times import FunctionTimes
from tftracer.slow.watch.thread_clocks import ThreadClocks
from tftracer.slow.watch_results import SlowRecords

#: Maximum number of steps that wait for the writer; further steps are counted as lost. A step takes some 130 bytes.
MAX_EVENTS = 1 << 16
#: Maximum number of steps counted at a time under the lock, because a training thread may wait for it.
COUNTED_AT_ONCE = 200
#: Why a step that should have been traced was not.
STORING = "traces came faster than they could be compressed and written to disk"
#: A script that calls compiled functions counts as training until this many nanoseconds after its last step.
ACTIVE_NS = 10 * 10**9

_mark_numbers = itertools.count()


def level_of(options: Any) -> tuple[str, bool]:
    """Return the name of the trace level in RunOptions, and whether partition graphs are requested; ``("", False)`` for None."""
    if options is None:
        return "", False
    return options.TraceLevel.Name(options.trace_level), bool(options.output_partition_graphs)


#: Stands in place of the function in an event that is not a step: the thread waited for an element of a dataset (input_waits.py).
INPUT_WAIT = object()
#: Stands in place of the function in the event of a phase (checkpoints_and_evaluations.py): a checkpoint, an evaluation,
#: TensorFlow's tracing of a function.
PHASE = object()

#: A finished step: what was executed, start, end (perf_counter nanoseconds), thread, its trace. What was executed: fetches, feed
#: keys and RunOptions of a session, or a function and its ConcreteFunction. Both kinds are in one queue, so a thread's steps stay
#: in order.
#: The writer finds out which run the step belongs to: on the training thread it took 3 µs, because just after a step the caches
#: hold other data.
SessionEvent = tuple[Any, Optional[tuple[Any, ...]], Any, int, int, int, Traced]
FunctionEvent = tuple[Any, Any, int, int, int, Traced]
Event = Union[SessionEvent, FunctionEvent]


class StepQueue(OwnErrors):
    """The steps of one process, shared by all of its hooks and sessions. Methods may be called from any thread."""

    def __init__(self) -> None:
        super().__init__()
        # All hooks of a session set the same mark on a traced step's run context, so two hooks in one loop trace a step once.
        self.mark = f"_tftracer_{next(_mark_numbers)}"
        self.events: deque[Event] = deque()  # steps, waits and phases that have ended and are not counted yet
        self.counted: deque[CountedStep] = deque()  # counted steps that wait for the writer
        self.lost = 0  # number of steps that were dropped because the queue was full
        self.runs = RunRegistry()
        self.requests = TraceRequests()
        self.requests.count_steps = self.count_steps
        self.backlog = TraceBacklog()
        self.facts = SessionFacts()  # facts about the session that was opened last
        self.failed_claims: deque[Claim] = deque()  # claims of steps that failed while they were traced
        self.open_sessions: list[weakref.ref[Any]] = []
        self.arrived = threading.Event()  # set to wake the writer at once
        self.sees_all_sessions = False  # True: all sessions are recorded, also those without the hook (``hook_inject()``)
        #: Takes (function, ConcreteFunction) of a call, counts the call, and returns the family of its run
        #: (runs that differ only in their RunOptions).
        self.count_call: Callable[[Any, Any], RunFamily] = no_functions_watched
        #: Collects the optimized graph of a run's function in its next call; raises UnsupportedError if it cannot be collected.
        self.request_graph: Callable[[RunHandle], None] = refuse_graph
        #: Returns the ConcreteFunctions that were called and still exist.
        self.live_functions: Callable[[], list[Any]] = list
        self.slow = SlowRecords()
        self.activities = Activities()  # the activities that the ledger adds up
        # Pipelines gets no reference to the queue, because its thread would keep the queue alive.
        self.pipelines = Pipelines(self.activities)
        #: Thread -> when its current step began (perf_counter nanoseconds); without a current step, minus the end of its last
        #: step.
        self.under_way: dict[int, int] = {}
        self.function_times = FunctionTimes()  # of Python functions that TensorFlow calls
        self.thread_clocks = ThreadClocks()  # counters that the training threads read at the begin and end of steps
        self.last_function_ns = 0  # when the last counted step of a function ended (perf_counter); 0: no such step
        self.slow_step_watch: SlowTurnFinder | None = None  # None: slow steps are not looked for
        self.other_problems: dict[str, str] = {}  # code -> message for the page
        self._refused: set[str] = set()  # why requested steps cannot be traced: keys of REFUSALS
        self._last_steps: deque[tuple[int, RunFamily]] = deque(maxlen=16)  # one step may come from two hooks
        self._times = ThreadTimes()
        self._counting_lock = threading.Lock()
        self._request_lock = threading.Lock()

    @property
    def off(self) -> bool:
        """Whether the tracer is off for good: it failed, or the script has stopped it."""
        return self.requests.off

    def switch_off(self) -> None:
        self.requests.switch_off()

    def close(self) -> None:
        """Switch off, and drop the events in the queue, which refer to the script's graphs."""
        self.switch_off()
        self.events.clear()
        self.arrived.set()

    def problems(self) -> dict[str, str]:
        """Return code -> message for the page. The messages say why steps were not traced, and name other problems."""
        refused = {reason.replace(" ", "_"): REFUSALS[reason] for reason in list(self._refused)}
        return {**refused, **self.other_problems}

    # --------------------------------------------------------------------------------------------------- steps

    def add(self, event: Event) -> None:
        """Add a finished step. Called on the training thread."""
        if len(self.events) < MAX_EVENTS:
            self.events.append(event)
        else:
            self.lost += 1
        if event[-1] is not None:
            self.arrived.set()

    def count_steps(self) -> None:
        """Handle the events in order: find the run of each step, add 1 to the run's steps, and put the step into ``counted``."""
        while self.events:
            with self._counting_lock:
                for _ in range(min(len(self.events), COUNTED_AT_ONCE)):
                    try:
                        event = self.events.popleft()
                    except IndexError:  # the tracer was switched off meanwhile
                        return
                    self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        start, end, thread, trace = event[-4:]
        ended = self.activities.ended
        if event[0] is INPUT_WAIT:
            ended.append((INPUT, NEXT_ELEMENT, start, end, thread))
            self.activities.waited_ns += end - start
            self.activities.waits += 1
            if not event[1]:  # the wait was not within a step
                self._times.add_input_wait(thread, start, end)
            self._tell_watch(lambda watch: watch.waited_for_input(thread, start, end))
            return
        if event[0] is PHASE:
            phase: Any = event[1]
            kind, name = phase
            ended.append((kind, name, start, end, thread))
            # The kind CHECKPOINTS also includes summaries; the watch gets only checkpoints.
            if kind == CHECKPOINTS and "Writer" not in name:
                self._tell_watch(lambda watch: watch.saved(thread, name, start, end))
            return
        run = self._count_call(*event) if len(event) == 6 else self._count_in_session(*event)
        if run is not None:
            time_between = self._times.count_step(run, thread, start, end, trace)
            self.add_counted((run, start, end, *time_between, trace), thread)
            ended.append((kind_of_step(run), run, start, end, thread))
            if trace is not None:
                before, after = tracer_ns(trace)  # ns that the tracer took on this thread before and after the step
                what = "recording traces" if isinstance(trace, Capture) else "trying to record traces"
                ended.append((TRACER, f"{what}: before their steps", start - before, start, thread))
                ended.append((TRACER, f"{what}: after their steps", end, end + after, thread))

    def _count_in_session(
        self, fetches: Any, feeds: Any, options: Any, start: int, end: int, thread: int, trace: Traced
    ) -> RunHandle | None:
        """Add 1 to the steps of a session's run and return the run; None if another hook of the session has recorded the step."""
        family = self.runs.family(fetches, feeds)
        if (start, family) in self._last_steps:
            if isinstance(trace, Capture):
                self.backlog.remove(trace)
            return None
        self._last_steps.append((start, family))
        run = self.runs.run(family, options)
        family.steps += 1
        family.has_debug_watches = run.refusal == REFUSALS[DEBUG_WATCHES]
        return run

    def _count_call(self, function: Any, concrete: Any, start: int, end: int, thread: int, trace: Traced) -> RunHandle:
        """Add 1 to the steps of a function's run and return the run."""
        family = self.count_call(function, concrete)
        family.steps += 1
        self.last_function_ns = end
        return family.plain

    def add_counted(self, step: CountedStep, thread: int) -> None:
        if len(self.counted) >= MAX_EVENTS:
            self.lost += 1
            return
        run, start, end, _, _, trace = step
        run.steps += 1
        self.counted.append(step)
        asked_by = trace.asked_by if isinstance(trace, Capture) else None
        self._tell_watch(lambda watch: watch.step(run, thread, start, end, asked_by, tracer_ns(trace)))

    def _tell_watch(self, tell: Callable[[SlowTurnFinder], None]) -> None:
        """Call ``tell`` with the slow-step watch. If it raises, switch the watch off."""
        if self.slow_step_watch is not None:
            try:
                tell(self.slow_step_watch)
            except Exception as error:
                self.slow_step_watch = None
                self.other_problems["slow_steps"] = f"Slow steps are not looked for: {type(error).__name__}: {error}."

    def finished_steps(self) -> dict[str, int]:
        """Return run title -> number of finished steps."""
        self.count_steps()
        return {family.plain.title: family.steps for family in self.runs.families()}

    # ------------------------------------------------------------------------------------------------- traces

    def claim(self, fetches: Any, feeds: Any, options: Any) -> Claim | Missed | None:
        """Return a claim if the step about to begin is to be traced; Missed if too many traces wait to be stored. May wait.

        ``options``: the call's RunOptions. None if not known: then a request for any run of the family counts.
        """
        family = self.runs.family(fetches, feeds)
        if family.has_debug_watches:
            self.record_refusal(DEBUG_WATCHES)
            return None
        return self._claim(self.next_requested_family([family]), self._handles(family, options))

    def next_requested_family(self, families: list[RunFamily]) -> RunFamily | None:
        """Return the family whose requested step is about to begin; None if there is none."""
        return next((family for family in families if family.requested_step and self._is_next(family)), None)

    def claim_families(self, families: list[RunFamily]) -> Claim | Missed | None:
        """Claim a step of one of these families, as ``claim`` does. The family of a step is known only after the step."""
        return self._claim(self.next_requested_family(families), [family.plain for family in families])

    def is_expected(self, families: list[RunFamily]) -> bool:
        """Return whether a step of one of these families is expected to be slow; ``claim_families`` decides which step."""
        return self.requests.is_expected([family.plain for family in families])

    def is_requested(self, families: list[RunFamily]) -> bool:
        """Return whether a trace of one of these families is requested; ``claim_families`` decides which step is traced."""
        return self.requests.has_any([family.plain for family in families]) or any(family.requested_step for family in families)

    def restore_request(self, claim: Claim) -> None:
        """Restore the request of a claimed step that was not traced. A request by number moves to the next step."""
        self.requests.restore(claim)
        family = self.runs.find(claim.handle.title) if claim.is_numbered and claim.handle else None
        if family is not None and not family.requested_step:
            self.count_steps()
            self._request(family, family.steps + 1)

    def _claim(self, numbered_family: RunFamily | None, handles: list[RunHandle]) -> Claim | Missed | None:
        """Claim a step.

        ``numbered_family``: the family whose requested step is about to begin, or None; ``handles``: the possible runs.
        """
        if numbered_family is None and not self.requests.has_any(handles):
            # A step that is only expected to be slow does not wait for room.
            is_expected = self.requests.is_expected(handles) and not self.backlog.is_full()
            return self.requests.claim(handles) if is_expected else None
        if not self.backlog.wait_for_room():
            return self.missed_mark(STORING, numbered_family)
        if numbered_family is not None and self._cancel(numbered_family):
            return self.requests.claim_numbered(numbered_family.plain)
        return self.requests.claim(handles)

    def capture(self, metadata: Any, asked_by: AskedBy, options: Any, facts: SessionFacts) -> Capture:
        """Return the trace of a step from its RunMetadata. It counts in the backlog until it is removed there."""
        return self.backlog.add(Capture(metadata.SerializeToString(), asked_by, *level_of(options), facts))

    def record_refusal(self, reason: str) -> None:
        """Record why a requested step cannot be traced (``reason``: a key of ``REFUSALS``). The page shows it."""
        self._refused.add(reason)

    def restore_failed_claims(self) -> None:
        """Restore the requests of traced steps that failed."""
        while self.failed_claims:
            self.requests.restore(self.failed_claims.popleft())

    def missed_mark(self, reason: str, numbered_family: RunFamily | None = None) -> Missed:
        """Return the mark of a step that should have been traced but was not.

        It is lost if no other step is traced in its place: if it was requested by its number, or all steps were requested. Else
        the request stays open.
        """
        return Missed(reason, is_lost=numbered_family is not None or self.requests.trace_all)

    def _handles(self, family: RunFamily, options: Any) -> list[RunHandle]:
        """Return the runs that the step about to begin may belong to: the run with these options.

        Return all runs of the family if the options are not known, or if no step with these options has been stored so far: a
        later hook may still change the options, and the step may belong to another run.
        """
        run = None if options is None else self.runs.run(family, options)
        return [run] if run and run.run_id else family.handles()

    # ------------------------------------- one step requested by its number: all processes of a job then trace the same step

    def request_step(self, title: str, step: int) -> bool:
        """Trace only the step with this number. Return False if it may have begun already, or if there is no such run."""
        family = self.runs.find(title)
        if family is None or self._may_have_begun(family, step):
            return False
        self._cancel(family)
        self._request(family, step)
        # The step may have begun before it was requested. Then cancel the request, unless a training thread has taken it.
        return not self._may_have_begun(family, step) or not self._cancel(family)

    def cancel_steps(self) -> None:
        for family in self.runs.families():
            self._cancel(family)

    def _request(self, family: RunFamily, step: int) -> None:
        family.requested_step = step
        self.requests.count_numbered(1)

    def _is_next(self, family: RunFamily) -> bool:
        """Return whether the step about to begin is the requested one. Cancel a request for an earlier step."""
        self.count_steps()
        requested, following = family.requested_step, family.steps + 1
        if requested < following:
            self._cancel(family, requested)
        return requested == following

    def _may_have_begun(self, family: RunFamily, step: int) -> bool:
        """Return whether this step may have begun: the step after the last finished one may be under way."""
        self.count_steps()
        return family.steps + 1 >= step

    def _cancel(self, family: RunFamily, step: int | None = None) -> bool:
        """Cancel the request for a step of this family by its number, and return whether there was one.

        ``step``: cancel only a request for this number; None: for any number. If several threads cancel a request, only one of
        them gets True.
        """
        with self._request_lock:
            was_requested = family.requested_step != 0 and step in (None, family.requested_step)
            if was_requested:
                family.requested_step = 0
        if was_requested:
            self.requests.count_numbered(-1)
        return was_requested

    # ------------------------------------------------------------------------------------------------ sessions

    def session_opened(self, session: Any, facts: SessionFacts) -> None:
        self.facts = facts
        self.open_sessions.append(weakref.ref(session))
        self.arrived.set()

    def active(self) -> bool:
        """Return whether a session is open (neither closed nor deleted), or a function runs or has just run."""
        for ref in list(self.open_sessions):  # the list is not replaced, because other threads may add sessions to it meanwhile
            if not is_open(ref()):
                with contextlib.suppress(ValueError):  # another thread has removed it
                    self.open_sessions.remove(ref)
        return bool(self.open_sessions) or self._runs_functions()

    def _runs_functions(self) -> bool:
        if not self.last_function_ns:
            return False
        recent = perf_counter_ns() - self.last_function_ns < ACTIVE_NS
        return recent or any(time_ns > 0 for time_ns in list(self.under_way.values()))


def no_functions_watched(function: Any, concrete: Any) -> RunFamily:
    raise LookupError("a function was called, but this queue watches no functions")


def refuse_graph(handle: RunHandle) -> None:
    raise UnsupportedError(
        "Only compiled functions (tf.function) have a graph that can be collected; no function is watched here."
    )


def is_open(session: Any) -> bool:
    return session is not None and not getattr(session, "_closed", False)
