"""TracingHook: the SessionRunHook that times every step and traces those asked for. Runs on the training threads.

With inject.py the only module that imports TensorFlow, and only when a hook is made. A step that is not traced costs two
clock reads, a look-up by the ids of fetches and feeds, and an append. Nothing raised in here leaves: the tracer switches
itself off instead (``Tracker.off``). What the user's own code raises, KeyboardInterrupt included, passes.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tftracer.errors import MissingTensorFlowError
from tftracer.session.keys import quick_key
from tftracer.session.requests import Ticket
from tftracer.session.tracker import MAX_EVENTS, MAX_WAITING, Call, Capture, SessionFacts, Tracker

if TYPE_CHECKING:
    from tftracer.session.recorder import Recorder


class Traced:
    """The part of a step's mark that says how it is traced; lives as long as the step's run context."""

    def __init__(self, ticket: Ticket, options: Any, user_metadata: bool, before: tuple[int, bool] | None) -> None:
        self.ticket = ticket
        self.options = options  # the session's RunOptions object, None where it could not be seen
        self.user_metadata = user_metadata  # the script passed a RunMetadata, or may have
        self.before = before  # (trace_level, output_partition_graphs) of ``options`` before they were raised


class PlainCall:
    """Stands for TensorFlow's SessionRunContext where a plain session runs (inject.py)."""

    def __init__(self, fetches: Any, feed_dict: Any, run_metadata: Any) -> None:
        self.original_args = self
        self.fetches = fetches
        self.feed_dict = feed_dict
        self.user_metadata = run_metadata is not None


class StepRecorder:
    """The hook's methods without its base class, so that this module imports no TensorFlow."""

    def __init__(self, recorder: Recorder) -> None:
        tf = tensorflow()
        self._tracker: Tracker = recorder.tracker
        self._requests = recorder.tracker.requests
        self._events = recorder.tracker.events
        self._known = recorder.tracker.known
        self._mark = recorder.tracker.mark
        self._args = tf.compat.v1.train.SessionRunArgs
        self._options = tf.compat.v1.RunOptions
        self._last_facts = SessionFacts()
        recorder.set_tensorflow(str(tf.__version__))

    # ------------------------------------------------------------------------------------------ what TensorFlow calls

    def begin(self) -> None: ...

    def after_create_session(self, session: Any, coord: Any) -> None:
        tracker = self._tracker
        if tracker.off:
            return
        try:
            self._last_facts = session_facts(session)
            session._tftracer_monitored = coord is not None  # its steps come through this hook (inject.py)
            tracker.opened(session, self._last_facts)
        except Exception as error:
            self._switch_off("after_create_session", error)

    def before_run(self, run_context: Any) -> Any:
        tracker = self._tracker
        if tracker.off:
            return None
        try:
            marks = run_context.__dict__
            if self._mark in marks:
                return None
            args = run_context.original_args
            key = quick_key(args.fetches, args.feed_dict)
            call = self._known.get(key)
            if call is None:
                call = tracker.first_sight(key, args.fetches, args.feed_dict)
            call.begun += 1
            if self._requests.armed:
                return self._begin_armed(run_context, call)
            marks[self._mark] = (call, None, perf_counter_ns())
        except Exception as error:
            self._switch_off("before_run", error)
        return None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        end = perf_counter_ns()
        tracker = self._tracker
        if tracker.off:
            return
        try:
            mark = run_context.__dict__.pop(self._mark, None)
            if mark is None:
                return
            call, traced, start = mark
            options, metadata = run_values.options, run_values.run_metadata
            run = tracker.variant(call, options) if options is not None and options.ByteSize() else call.plain
            if traced is not None or (metadata is not None and metadata.HasField("step_stats")):
                self._end_traced(run, start, end, traced, options, metadata)
            elif len(self._events) < MAX_EVENTS:
                self._events.append((run, start, end))
            else:
                tracker.lost += 1
        except Exception as error:
            self._switch_off("after_run", error)

    def end(self, session: Any) -> None:
        try:
            self._tracker.arrived.set()
        except Exception as error:
            self._switch_off("end", error)

    # -------------------------------------------------------------------------------------------------- traced steps

    def _begin_armed(self, run_context: Any, call: Call) -> Any:
        """The SessionRunArgs that ask for a trace, or None if this step is none of those wanted."""
        ticket = self._tracker.take(call)
        traced, args = None, None
        if ticket is not None:
            options, user_metadata = peek_call(run_context)
            before = (options.trace_level, options.output_partition_graphs) if options is not None else None
            traced = Traced(ticket, options, user_metadata, before)
            # A step that fails never comes to after_run: its context goes, and the request is put back.
            returned = self._tracker.returned
            weakref.finalize(run_context, returned.append, ticket).atexit = False
            args = self._args(None, None, options=self._trace_options())
            if not isinstance(args.options, self._options):
                raise TypeError("no RunOptions were made")
        run_context.__dict__[self._mark] = (call, traced, perf_counter_ns())
        return args

    def _trace_options(self) -> Any:
        level = self._options.FULL_TRACE if self._last_facts.gpus else self._options.SOFTWARE_TRACE
        return self._options(trace_level=level, output_partition_graphs=True)

    def _end_traced(self, run: Any, start: int, end: int, traced: Traced | None, options: Any, metadata: Any) -> None:
        tracker = self._tracker
        asked_by = "script" if traced is None else traced.ticket.asked_by
        if traced is not None:
            traced.ticket.settled = True
        elif tracker.waiting >= MAX_WAITING:
            tracker.traces_refused += 1
            self._events.append((run, start, end))
            return
        level = self._options.TraceLevel.Name(options.trace_level) if options is not None else ""
        asked = bool(options is not None and options.output_partition_graphs)
        size = metadata.ByteSize()
        # A script's own RunMetadata may be filled again by its next step, so it is copied now; ours never is.
        kept = metadata if traced is not None and not traced.user_metadata else metadata.SerializeToString()
        capture = Capture(kept, asked_by, level, asked, self._last_facts, size)
        restore(traced)
        tracker.hold(capture)
        self._events.append((run, start, end, capture))
        tracker.arrived.set()

    def _switch_off(self, where: str, error: Exception) -> None:
        with contextlib.suppress(Exception):
            self._tracker.off = True
            self._tracker.failed(where, error)


def restore(traced: Traced | None) -> None:
    """Undo what TensorFlow merged into a RunOptions that the script may pass again: its next step is not to be traced."""
    if traced is not None and traced.options is not None and traced.before is not None:
        traced.options.trace_level, traced.options.output_partition_graphs = traced.before


def peek_call(run_context: Any) -> tuple[Any, bool]:
    """(RunOptions of the call under way, whether the script passed a RunMetadata), from MonitoredSession's frames.

    TensorFlow shows neither to hooks. Where its frames look different, (None, True): nothing is known, the careful way is taken.
    """
    if isinstance(run_context, PlainCall):
        return None, run_context.user_metadata
    frame = sys._getframe(1)
    for _ in range(8):
        if frame.f_code.co_name == "_call_hook_before_run" and frame.f_back is not None:
            options = frame.f_locals.get("options")
            passed = frame.f_back.f_locals.get("run_metadata", True)
            return (options if hasattr(options, "trace_level") else None), passed is not None
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None, True


def session_facts(session: Any) -> SessionFacts:
    """The GPUs that the session sees and whether it works on a cluster. May ask the cluster once."""
    target = getattr(session, "sess_str", b"") or b""
    distributed = target.startswith(b"grpc") if isinstance(target, bytes) else str(target).startswith("grpc")
    try:
        gpus = sum(device.device_type == "GPU" for device in session.list_devices())
    except Exception:
        gpus = None  # a session that lists none, for one in a test
    return SessionFacts(gpus, distributed)


def tensorflow() -> Any:
    try:
        import tensorflow
    except ImportError as error:
        raise MissingTensorFlowError(
            "TracingServer's hook needs TensorFlow, which cannot be imported here. Opening a saved session does not."
        ) from error
    return tensorflow


def _hook_class() -> type:
    """TracingHook, made when first asked for: its base class is TensorFlow's."""
    base = tensorflow().compat.v1.train.SessionRunHook

    class TracingHook(StepRecorder, base):  # type: ignore[misc, valid-type]
        """Give it to ``hooks=`` of an Estimator or a MonitoredSession; one hook serves any number of sessions."""

    TracingHook.__module__ = __name__
    return TracingHook


def __getattr__(name: str) -> Any:
    if name != "TracingHook":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()["TracingHook"] = _hook_class()
    return made


__all__ = ["StepRecorder", "TracingHook"]  # noqa: F822 (made by __getattr__)
