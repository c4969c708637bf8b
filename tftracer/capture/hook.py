"""TracingHook: the SessionRunHook that times every step and traces the requested steps. Runs on the training threads.

A step that is not traced costs two clock reads, an append, and sometimes a read of the thread's CPU counters. Reading any
other object is expensive: after a long step the CPU's caches hold TensorFlow's data, so the object comes from memory. So an
untraced step reads one flag (``TraceRequests.slow_path``) and the level of its RunOptions, and stores what it needs in its run
context. Reading its RunMetadata would take 3 to 10 µs after a long step. Exceptions of the tracer never leave this module: it
switches itself off instead (``StepQueue.off``). Errors of the user's code, and KeyboardInterrupt, pass through it.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import weakref
from collections.abc import Mapping
from functools import cache, partial
from statistics import median
from threading import get_ident
from time import perf_counter_ns, time
from typing import Any, NamedTuple, Protocol

from tftracer.capture.recorded_steps import Capture, Missed, SessionFacts, Traced
from tftracer.capture.steps.queue import MAX_EVENTS, STORING, StepQueue
from tftracer.capture.steps.run_identity import DEBUG_WATCHES, has_debug_watches
from tftracer.capture.timer_with_cold_caches import ColdTimer
from tftracer.capture.traces.cpu_use import CpuReading, cpu_use, read_after, read_before
from tftracer.capture.traces.fed_values import describe_fed_values
from tftracer.capture.traces.requests import Claim
from tftracer.errors import MissingTensorFlowError
from tftracer.trace.model import FedValue


class Recorder(Protocol):
    """The part of the recorder that a hook uses (session/live.py)."""

    queue: StepQueue

    def set_tensorflow(self, version: str, hook_cost_s: float | None) -> None: ...


#: The mark of a step that was recorded with its trace, so that another hook of the same session does not record it again.
RECORDED = object()


class TracedStepMark:
    """The mark of a step that is being traced; it lives as long as the step's run context."""

    def __init__(self, claim: Claim, options: Any) -> None:
        self.claim = claim
        self.before_ns = 0  # ns that the tracer took before the step, including the wait until other traces were stored
        self.cpu: CpuReading | None = None  # read before the step
        self.fed: list[FedValue] | None = None  # what the script feeds; None: not known
        self.began_at: float | None = None  # epoch seconds
        self._options = options  # the call's RunOptions; None if they are not known
        self._before = (options.trace_level, options.output_partition_graphs) if options is not None else None

    def restore_options(self) -> None:
        """Undo what TensorFlow merged into the script's RunOptions, because the script may use them for an untraced step."""
        if self._before is not None:
            self._options.trace_level, self._options.output_partition_graphs = self._before


def is_misuse(run_context: Any) -> bool:
    """Return whether the script's ``feed_dict`` is not a dict.

    TensorFlow then raises an error. The tracer stays on, because the user may correct the call and repeat it.
    """
    with contextlib.suppress(Exception):
        feeds = run_context.original_args.feed_dict
        return feeds is not None and not isinstance(feeds, (Mapping, tuple))  # a tuple comes from a callable
    return False


def queue_failed_claim(queue: StepQueue, mark: TracedStepMark) -> None:
    """Queue the claim of a traced step that failed, so that its request is restored.

    Runs when the step's run context is deleted, because ``after_run`` is not called for a failed step.
    """
    try:
        if not mark.claim.is_done:
            mark.restore_options()
            queue.failed_claims.append(mark.claim)
    except Exception as error:
        queue.failed("queue_failed_claim", error)


def make_run_args(args_class: Any, fetches: Any, feeds: Any = None, options: Any = None) -> Any:
    """Make a SessionRunArgs, a named tuple, without its constructor.

    TensorFlow 2.15 deprecates that constructor and warns once: the warning would name a line of the tracer, and a later warning
    for the script's own line would not appear.
    """
    return tuple.__new__(args_class, (fetches, feeds, options))


class SessionCall:
    """One call of a session, recorded without a hook (session_wrappers.py). Stands in for TensorFlow's SessionRunContext."""

    def __init__(self, args: Any, options: Any) -> None:
        self.original_args = self._original_args = args  # a SessionRunArgs; TensorFlow's context has it under both names
        self.options = options


class HookMethods:
    """The hook's methods without TensorFlow's base class, so that this module does not import TensorFlow.

    ``__slots__`` keeps the attributes in the object itself. Reading attributes from a dict took a third of the hook's time after
    a long step.
    """

    __slots__ = (
        "_args_class",
        "_clocks",
        "_events",
        "_last_facts",
        "_mark",
        "_next_reading",
        "_options_class",
        "_queue",
        "_requests",
        "_under_way",
    )

    def __init__(self, recorder: Recorder) -> None:
        tf = tensorflow()
        self._queue = recorder.queue
        self._requests = recorder.queue.requests
        self._events = recorder.queue.events
        self._under_way = recorder.queue.under_way
        self._clocks = recorder.queue.thread_clocks
        self._next_reading = self._clocks.next_ns
        self._mark = recorder.queue.mark
        self._args_class = tf.compat.v1.train.SessionRunArgs
        self._options_class = tf.compat.v1.RunOptions
        self._last_facts = SessionFacts()
        with contextlib.suppress(Exception):  # these facts are only shown on the page
            recorder.set_tensorflow(str(tf.__version__), measure_cost(self))

    # ------------------------------------------------------------------------------------------ what TensorFlow calls

    def after_create_session(self, session: Any, coord: Any) -> None:
        try:
            if not self._queue.off:
                self.session_opened(session, session_facts(session))
        except Exception as error:
            self._switch_off("after_create_session", error)

    def before_run(self, run_context: Any) -> Any:
        trace_args = None
        try:
            if self._requests.slow_path:
                trace_args = self._trace_args(run_context)
                if not (
                    trace_args is None
                    or (isinstance(trace_args, self._args_class) and isinstance(trace_args.options, self._options_class))
                ):
                    raise TypeError("no RunOptions were made")
            fetches, feeds = run_context._original_args[:2]
            # Copy the containers, because the script may change them, but not the values that it feeds.
            if fetches.__class__ is list:
                fetches = tuple(fetches)
            elif isinstance(fetches, dict):
                fetches = tuple(fetches.values())
            start = perf_counter_ns()
            run_context._tftracer = (fetches, tuple(feeds) if feeds else None, start)
            thread = get_ident()
            self._under_way[thread] = start
            if start >= self._next_reading.get(thread, 0):
                self._clocks.read(thread, start)
        except Exception as error:
            if not is_misuse(run_context):
                self._switch_off("before_run", error)
            return None
        return trace_args

    def after_run(self, run_context: Any, run_values: Any) -> None:
        end = perf_counter_ns()
        try:
            thread = get_ident()
            self._under_way[thread] = -end  # minus the end: no step is under way
            if end >= self._next_reading.get(thread, 0):
                self._clocks.read(thread, end)
            _, options, metadata = run_values
            if self._requests.slow_path or (options is not None and options.trace_level) or len(self._events) >= MAX_EVENTS:
                self.slow_after_run(run_context, options, metadata, end)
                return
            fetches, feeds, start = run_context._tftracer
            self._events.append((fetches, feeds, options, start, end, thread, None))
        except Exception as error:
            if hasattr(run_context, "_tftracer"):  # the step's beginning was recorded
                self._switch_off("after_run", error)

    def end(self, session: Any) -> None:
        try:
            if self._under_way.get(get_ident(), 0) > 0:  # a step still under way: it reached the end of the input
                self.step_failed()
            self._queue.arrived.set()
        except Exception as error:
            self._switch_off("end", error)

    # ------------------------------------------------------------------------------------- what session_wrappers.py calls

    def session_opened(self, session: Any, facts: SessionFacts) -> None:
        self._last_facts = facts
        self._queue.session_opened(session, facts)

    def session_facts_changed(self, facts: SessionFacts) -> None:
        self._last_facts = self._queue.facts = facts

    def step_failed(self) -> None:
        """Record that this thread's step has ended because it raised an error."""
        self._under_way[get_ident()] = -perf_counter_ns()

    def record_untraced_step(self, fetches: Any, feeds: Any, kind: Any, start_ns: int) -> None:
        """Record a step that has just ended and that TensorFlow cannot trace. ``kind``: why it cannot (PARTIAL_RUN)."""
        end_ns = perf_counter_ns()
        if not self._queue.off:
            if self._requests.trace_all or self._requests.steps_of_any_run:
                self._queue.record_refusal(kind)
            self._queue.add((fetches, tuple(feeds or ()), kind, start_ns, end_ns, get_ident(), None))

    # -------------------------------------------------------------------------------------------------- traced steps

    def _trace_args(self, run_context: Any) -> Any:
        """Return SessionRunArgs that request a trace from TensorFlow; None if this step is not to be traced."""
        if self._queue.off or self._mark in run_context.__dict__:
            return None
        start, queue, args = perf_counter_ns(), self._queue, run_context._original_args
        options, has_debug_hook = peek_call(run_context)
        if has_debug_hook or has_debug_watches(options):
            queue.record_refusal(DEBUG_WATCHES)
            return None
        claim = queue.claim(args.fetches, args.feed_dict, options)
        if claim is None:
            return None
        mark = run_context.__dict__[self._mark] = claim if isinstance(claim, Missed) else TracedStepMark(claim, options)
        if isinstance(mark, TracedStepMark):
            mark.fed = describe_fed_values(args.feed_dict)
            mark.cpu = read_before()
            mark.began_at = time()
        mark.before_ns = perf_counter_ns() - start
        if isinstance(mark, Missed):
            return None
        # If a step fails, TensorFlow does not call after_run, but it deletes the step's run context.
        weakref.finalize(run_context, queue_failed_claim, queue, mark).atexit = False
        return make_run_args(self._args_class, None, None, self._trace_options())

    def _trace_options(self) -> Any:
        facts = self._last_facts
        # A cluster's session fills step_stats only at FULL_TRACE (master_session.cc).
        needs_full_trace = facts.gpus or facts.distributed
        level = self._options_class.FULL_TRACE if needs_full_trace else self._options_class.SOFTWARE_TRACE
        return self._options_class(trace_level=level, output_partition_graphs=True)

    def slow_after_run(self, run_context: Any, options: Any, metadata: Any, end: int) -> None:
        """Do the rest of ``after_run`` if the step may have been traced, the queue is full, or the tracer is off."""
        marks = run_context.__dict__
        mark, start_of_step = marks.get(self._mark), marks.get("_tftracer")
        if self._queue.off or start_of_step is None or mark is RECORDED:
            return
        trace: Traced = None
        if isinstance(mark, Missed):
            trace = mark
        elif mark is not None or (metadata is not None and metadata.HasField("step_stats")):
            marks[self._mark] = RECORDED
            trace = self._capture(mark, options, metadata)
            trace.after_ns = perf_counter_ns() - end
        fetches, feeds, start = start_of_step
        self._queue.add((fetches, feeds, options, start, end, get_ident(), trace))

    def _capture(self, mark: TracedStepMark | None, options: Any, metadata: Any) -> Capture | Missed:
        """Return the trace of a step, or Missed. ``mark``: its mark if the tracer requested the trace; None if the script did."""
        queue = self._queue
        if mark is None:
            has_room = queue.backlog.wait_for_room()
            return queue.capture(metadata, "script", options, self._last_facts) if has_room else Missed(STORING)
        cpu = read_after()
        capture = queue.capture(metadata, mark.claim.asked_by, options, self._last_facts)
        capture.before_ns = mark.before_ns
        if mark.cpu is not None:
            capture.read_cpu_use = partial(cpu_use, mark.cpu, cpu)
        capture.fed, capture.began_at = mark.fed, mark.began_at
        mark.restore_options()
        self._requests.complete(mark.claim)
        return capture

    def _switch_off(self, where: str, error: Exception) -> None:
        with contextlib.suppress(Exception):
            self._queue.switch_off()
            self._queue.failed(where, error)


class PeekedCall(NamedTuple):
    """What a hook has to know about the call under way, but does not get from TensorFlow."""

    options: Any = None  # the call's RunOptions, with the changes by earlier hooks; None: not known
    has_debug_hook: bool = False  # whether the session has a tfdbg hook, which may add watches after this hook was called


def peek_call(run_context: Any) -> PeekedCall:
    """Return facts about the call under way, from MonitoredSession's frames; the defaults if the frames are not as expected."""
    if isinstance(run_context, SessionCall):
        return PeekedCall(run_context.options)
    frame = sys._getframe(1)
    for _ in range(8):
        if frame.f_code.co_name == "_call_hook_before_run":
            options, hooks = frame.f_locals.get("options"), getattr(frame.f_locals.get("self"), "_hooks", ())
            has_debug_hook = any(type(hook).__module__.startswith("tensorflow.python.debug") for hook in hooks)
            return PeekedCall(options if hasattr(options, "trace_level") else None, has_debug_hook)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return PeekedCall()


def session_facts(session: Any) -> SessionFacts:
    """Return the number of GPUs that the session sees, and whether it works on a cluster. May ask the cluster once."""
    target = getattr(session, "sess_str", b"") or b""
    distributed = target.startswith(b"grpc") if isinstance(target, bytes) else str(target).startswith("grpc")
    try:
        gpus = sum(device.device_type == "GPU" for device in session.list_devices())
    except Exception:
        gpus = None  # the session cannot list its devices, such as a stand-in in a test
    return SessionFacts(gpus, distributed)


def measure_cost(hook: HookMethods) -> float | None:
    """Measure the seconds that the hook adds to an untraced step that takes some milliseconds.

    Before each call the CPU's caches are filled with other data, as a step of TensorFlow does. After shorter steps the hook takes
    less time.
    """
    v1 = tensorflow().compat.v1
    hook_copy, queue = copy.copy(hook), StepQueue()
    hook_copy._queue, hook_copy._requests = queue, queue.requests
    hook_copy._events, hook_copy._under_way = queue.events, queue.under_way
    timer, times = ColdTimer(), []
    for _ in range(15):
        context = v1.train.SessionRunContext(make_run_args(v1.train.SessionRunArgs, [None, None]), None)
        values = v1.train.SessionRunValues(None, v1.RunOptions(), v1.RunMetadata())
        times.append(timer.measure_ns(hook_copy.before_run, context) + timer.measure_ns(hook_copy.after_run, context, values))
    return None if queue.off else median(times) * 1e-9


def tensorflow() -> Any:
    try:
        import tensorflow
    except ImportError as error:
        raise MissingTensorFlowError(
            "TracingServer's hook needs TensorFlow, which cannot be imported here. A saved session opens without it."
        ) from error
    return tensorflow


def make_hook(recorder: Recorder) -> Any:
    """Make the hook for ``hooks=``. If all sessions are recorded already (``hook_inject()``), it does nothing."""
    if recorder.queue.sees_all_sessions:
        return tensorflow().compat.v1.train.SessionRunHook()
    return hook_class()(recorder)


@cache
def hook_class() -> Any:
    """Make the class TracingHook. It is made only when it is needed, because its base class is a class of TensorFlow."""

    class TracingHook(HookMethods, tensorflow().compat.v1.train.SessionRunHook):  # type: ignore[misc]
        """Give it to ``hooks=`` of an Estimator or a MonitoredSession; one hook serves any number of sessions."""

    return TracingHook
