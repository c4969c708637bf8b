"""TracingHook: the SessionRunHook that times every step and traces those asked for. Runs on the training threads.

With inject.py the only module that imports TensorFlow, and only when a hook is made. A step that is not traced costs two
clock reads and an append. What it costs beyond them is how many objects it touches: after a long step the caches hold
TensorFlow's, and each of ours is fetched from memory. So an untraced step looks at one flag (``Requests.armed``) and keeps its
start as a plain attribute of the step's run context; all else is behind the flag. Nothing raised in here leaves: the tracer
switches itself off instead (``Tracker.off``). What the user's own code raises, KeyboardInterrupt included, passes.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import weakref
from collections import deque
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tftracer.errors import MissingTensorFlowError
from tftracer.session.requests import Requests, Ticket
from tftracer.session.tracker import MAX_EVENTS, MAX_WAITING, Capture, SessionFacts, Tracker

if TYPE_CHECKING:
    from tftracer.session.recorder import Recorder


#: The mark of a step that has been told with its trace: another hook of the same recorder has nothing to add.
TOLD = object()


class Traced:
    """The mark of a step that is traced; it lives as long as the step's run context."""

    def __init__(self, ticket: Ticket, options: Any, user_metadata: bool) -> None:
        self.ticket = ticket
        self.user_metadata = user_metadata  # the script passed a RunMetadata, or may have
        self._options = options  # the call's RunOptions, None where they could not be seen
        self._before = (options.trace_level, options.output_partition_graphs) if options is not None else None

    def end(self) -> None:
        """Undo what TensorFlow merged into a RunOptions that the script may pass again: its next step is not to be traced."""
        if self._before is not None:
            self._options.trace_level, self._options.output_partition_graphs = self._before


class PlainCall:
    """Stands for TensorFlow's SessionRunContext where a plain session runs (inject.py)."""

    def __init__(self, original_args: Any, options: Any, run_metadata: Any) -> None:
        self._original_args = original_args  # SessionRunArgs, under the name of TensorFlow's own attribute
        self.options = options
        self.user_metadata = run_metadata is not None


class StepRecorder:
    """The hook's methods without its base class, so that this module imports no TensorFlow."""

    def __init__(self, recorder: Recorder) -> None:
        tf = tensorflow()
        self._tracker: Tracker = recorder.tracker
        self._requests = recorder.tracker.requests
        self._events = recorder.tracker.events
        self._mark = recorder.tracker.mark
        self._args = tf.compat.v1.train.SessionRunArgs
        self._options = tf.compat.v1.RunOptions
        self._last_facts = SessionFacts()
        with contextlib.suppress(Exception):  # facts for the page alone
            recorder.set_tensorflow(str(tf.__version__), cost_of(self))

    # ------------------------------------------------------------------------------------------ what TensorFlow calls

    def begin(self) -> None: ...

    def after_create_session(self, session: Any, coord: Any) -> None:
        tracker = self._tracker
        try:
            if tracker.off:
                return
            self._last_facts = session_facts(session)
            with contextlib.suppress(Exception):
                session._tftracer_monitored = coord is not None  # its steps come through this hook (inject.py)
            tracker.opened(session, self._last_facts)
        except Exception as error:
            self._switch_off("after_create_session", error)

    def before_run(self, run_context: Any) -> Any:
        try:
            if self._requests.armed:
                asked = self._before_armed(run_context)
                if asked is not None and not (isinstance(asked, self._args) and isinstance(asked.options, self._options)):
                    raise TypeError("no RunOptions were made")
                return asked
            run_context._tftracer_start = perf_counter_ns()
        except Exception as error:
            self._switch_off("before_run", error)
        return None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        end = perf_counter_ns()
        try:
            _, options, metadata = run_values
            if self._requests.armed or (metadata is not None and metadata.HasField("step_stats")):
                self._after_armed(run_context, options, metadata, end)
                return
            start = run_context._tftracer_start
            fetches, feeds, _ = run_context._original_args
            # Copies of the containers, for the script may change them, and none of the values that it feeds.
            if fetches.__class__ is list:
                fetches = tuple(fetches)
            if len(self._events) < MAX_EVENTS:
                self._events.append((fetches, tuple(feeds) if feeds else None, options, start, end, None))
            else:
                self._tracker.lost += 1
        except Exception as error:
            if hasattr(run_context, "_tftracer_start"):  # else its beginning was not told: it is not for us
                self._switch_off("after_run", error)

    def end(self, session: Any) -> None:
        try:
            self._tracker.arrived.set()
        except Exception as error:
            self._switch_off("end", error)

    # -------------------------------------------------------------------------------------------------- traced steps

    def _before_armed(self, run_context: Any) -> Any:
        """The SessionRunArgs that ask for a trace; None if this step is none of those wanted, or the tracer is off."""
        if self._tracker.off:
            return None
        asked = None if self._mark in run_context.__dict__ else self._ask(run_context)
        run_context._tftracer_start = perf_counter_ns()
        return asked

    def _ask(self, run_context: Any) -> Any:
        tracker, args = self._tracker, run_context._original_args
        options, user_metadata = peek_call(run_context)
        ticket = tracker.take(args.fetches, args.feed_dict, options)
        if ticket is None:
            return None
        run_context.__dict__[self._mark] = Traced(ticket, options, user_metadata)
        # A step that fails never comes to after_run: its context goes, and the request is put back.
        weakref.finalize(run_context, tracker.returned.append, ticket).atexit = False
        return self._args(None, None, options=self._trace_options())

    def _after_armed(self, run_context: Any, options: Any, metadata: Any, end: int) -> None:
        """A step that ended while traces were wanted or under way, or that brings a trace, whoever asked for it."""
        marks = run_context.__dict__
        mark, start = marks.get(self._mark), marks.get("_tftracer_start")
        if self._tracker.off or start is None or mark is TOLD:
            return
        capture = None
        if mark is not None or (metadata is not None and metadata.HasField("step_stats")):
            marks[self._mark] = TOLD
            capture = self._captured(mark, options, metadata)
        self._tracker.add(run_context._original_args, options, start, end, capture)

    def _trace_options(self) -> Any:
        facts = self._last_facts
        # A cluster's session fills step_stats for nothing less than FULL_TRACE (master_session.cc).
        full = facts.gpus or facts.distributed
        level = self._options.FULL_TRACE if full else self._options.SOFTWARE_TRACE
        return self._options(trace_level=level, output_partition_graphs=True)

    def _captured(self, traced: Traced | None, options: Any, metadata: Any) -> Capture | None:
        """The RunMetadata of a step traced by us (``traced`` says how), or by the script itself."""
        tracker = self._tracker
        if traced is None and tracker.waiting >= MAX_WAITING:
            tracker.traces_refused += 1
            return None
        level = self._options.TraceLevel.Name(options.trace_level) if options is not None else ""
        asked = bool(options is not None and options.output_partition_graphs)
        # A script's own RunMetadata may be filled again by its next step, so it is copied now; ours never is.
        kept = metadata if traced is not None and not traced.user_metadata else metadata.SerializeToString()
        asked_by = "script" if traced is None else traced.ticket.asked_by
        capture = Capture(kept, asked_by, level, asked, self._last_facts, metadata.ByteSize())
        if traced is not None:
            traced.end()
            self._requests.settle(traced.ticket)
        tracker.hold(capture)
        return capture

    def _switch_off(self, where: str, error: Exception) -> None:
        with contextlib.suppress(Exception):
            self._tracker.switch_off()
            self._tracker.failed(where, error)


class CopyingRecorder(StepRecorder):
    """For a TensorFlow that keeps a step's arguments under another name than all from 2.12 to 2.21 do."""

    def before_run(self, run_context: Any) -> Any:
        with contextlib.suppress(Exception):
            run_context._original_args = run_context.original_args
        return super().before_run(run_context)


def peek_call(run_context: Any) -> tuple[Any, bool]:
    """(RunOptions of the call under way, whether the script passed a RunMetadata), from MonitoredSession's frames.

    TensorFlow shows neither to hooks. Where its frames look different, (None, True): nothing is known, the careful way is taken.
    """
    if isinstance(run_context, PlainCall):
        return run_context.options, run_context.user_metadata
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


def cost_of(hook: StepRecorder) -> float | None:
    """Seconds that the hook takes for an untraced step, in a bare loop of 200; within a training loop it is up to twice that."""
    v1 = tensorflow().compat.v1
    tried = copy.copy(hook)
    tried._events, tried._requests, times = deque(), Requests(), []
    values = v1.train.SessionRunValues(None, v1.RunOptions(), v1.RunMetadata())
    for _ in range(200):
        context = v1.train.SessionRunContext(v1.train.SessionRunArgs([None, None], None), None)
        start = perf_counter_ns()
        tried.before_run(context)
        tried.after_run(context, values)
        times.append(perf_counter_ns() - start)
    return None if hook._tracker.off else median(times) * 1e-9


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
    train = tensorflow().compat.v1.train
    seen = vars(train.SessionRunContext(train.SessionRunArgs(None), None))
    base, recorder = train.SessionRunHook, StepRecorder if "_original_args" in seen else CopyingRecorder

    class TracingHook(recorder, base):  # type: ignore[misc, valid-type]
        """Give it to ``hooks=`` of an Estimator or a MonitoredSession; one hook serves any number of sessions."""

    TracingHook.__module__ = __name__
    return TracingHook


def __getattr__(name: str) -> Any:
    if name != "TracingHook":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()["TracingHook"] = _hook_class()
    return made


__all__ = ["StepRecorder", "TracingHook"]  # noqa: F822 (made by __getattr__)
