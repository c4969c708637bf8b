"""Records every call of a TensorFlow session, for hook_inject: ``run``, callables, ``partial_run``. Runs on the calling threads.

``install`` wraps the methods of TensorFlow's session class. Each wrapper records the call around the original method. Errors in
the tracer never reach the script, and the original method runs in any case.

MonitoredSession, Supervisor, slim, Estimators and Keras in graph mode all call one of these methods. A MonitoredSession adds the
fetches of its hooks to each call; these added fetches do not count for the identity of the run. A callable that was made with a
feed list calls ``run``.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.capture.hook import HookMethods, SessionCall, make_run_args, session_facts, tensorflow
from tftracer.capture.recorded_steps import SessionFacts
from tftracer.capture.steps.run_identity import PARTIAL_RUN
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames

#: Attribute that marks the sessions that the recorder knows. False: a cluster's session whose first call has not ended yet, so
#: its devices are not listed yet; True: any other session.
_SEEN = "_tftracer_seen"
#: Attributes that are set on a callable of ``_make_callable_from_options``: its (options, fetches, feeds, RunOptions); a second
#: callable for traced steps.
_OPTIONS, _TRACING = "_tftracer_options", "_tftracer_tracing"


class Values(NamedTuple):
    """The RunOptions and RunMetadata of a call, in the form of SessionRunValues. ``results`` is always None."""

    results: Any
    options: Any
    run_metadata: Any


class Installed(NamedTuple):
    """The result of ``install``.

    ``missing``: names of methods that this TensorFlow lacks; their calls are not recorded. ``undo``: ends the recording.
    """

    missing: list[str]
    undo: Callable[[], None]


class SessionCalls:
    """The two halves of a recorded call: ``begin`` before the original method, ``finish`` after it. Neither raises."""

    def __init__(self, recorder: HookMethods) -> None:
        v1 = tensorflow().compat.v1
        self._recorder = recorder
        self._args_class = v1.train.SessionRunArgs
        self._hook_class = v1.train.SessionRunHook
        self._options_class = v1.RunOptions
        self._metadata_class = v1.RunMetadata
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()  # sessions with the mark _SEEN

    def begin(self, session: Any, fetches: Any, feeds: Any, options: Any, metadata: Any) -> tuple[SessionCall | None, Values]:
        """Return the call, and the RunOptions and RunMetadata to use for it.

        They request a trace if this step is to be traced.
        """
        try:
            if _SEEN not in session.__dict__:
                self._report_session(session)
            call = SessionCall(make_run_args(self._args_class, self._fetches_of_caller(fetches), feeds), options)
            request = self._recorder.before_run(call)
            values = Values(None, options, metadata)
            return call, values if request is None else self._with_tracing(values, request.options)
        except Exception:
            return None, Values(None, options, metadata)

    def finish(self, session: Any, call: SessionCall | None, values: Values) -> None:
        if call is None:
            return
        with contextlib.suppress(Exception):
            self._recorder.after_run(call, values)
            if session.__dict__.get(_SEEN) is not True:  # a cluster's session knows its devices after its first call
                setattr(session, _SEEN, True)
                self._recorder.session_facts_changed(session_facts(session))

    def step_failed(self) -> None:
        """Tell the recorder that the call is over: it raised an error, such as OutOfRangeError at the end of a dataset."""
        with contextlib.suppress(Exception):
            self._recorder.step_failed()

    def partial_run(self, fetches: Any, feeds: Any, start_ns: int) -> None:
        with contextlib.suppress(Exception):
            self._recorder.record_untraced_step(fetches, feeds, PARTIAL_RUN, start_ns)

    def forget(self) -> None:
        """Remove the marks from the sessions, so that another recorder treats them as new."""
        for session in list(self._known):
            session.__dict__.pop(_SEEN, None)

    def _report_session(self, session: Any) -> None:
        """Tell the recorder about a new session.

        A cluster's session is asked for its devices only after its first call, because asking connects to the whole cluster.
        """
        target = session.__dict__.get("_target") or b""
        setattr(session, _SEEN, not target)
        self._known.add(session)
        self._recorder.session_opened(session, SessionFacts(None, True) if target else session_facts(session))

    def _fetches_of_caller(self, fetches: Any) -> Any:
        """Return what the script fetches, without the fetches of MonitoredSession's hooks.

        MonitoredSession passes a dict: the script's fetches have the key ``'caller'``, a hook's fetches have the hook as key.
        """
        if fetches.__class__ is not dict or "caller" not in fetches:
            return fetches
        added = [key for key in fetches if key.__class__ is not str]
        is_monitored = len(added) == len(fetches) - 1 and all(isinstance(key, self._hook_class) for key in added)
        return fetches["caller"] if is_monitored else fetches

    def _with_tracing(self, values: Values, tracing: Any) -> Values:
        """Return a copy of the script's RunOptions with tracing added, and RunMetadata (the script's own, if it passes one)."""
        options = self._options_class()
        if values.options is not None:
            options.CopyFrom(values.options)
        options.trace_level = max(options.trace_level, tracing.trace_level)
        options.output_partition_graphs = True
        return Values(None, options, self._metadata_class() if values.run_metadata is None else values.run_metadata)


def install(recorder: HookMethods) -> Installed:
    """Wrap the methods of the session class."""
    calls, base = SessionCalls(recorder), session_class()
    callable_class = getattr(base, "_Callable", None)
    wrappers: list[tuple[Any, str, Callable[[Any, SessionCalls], Any]]] = [
        (base, "run", _wrap_run),
        (base, "make_callable", _wrap_make_callable),
        (base, "partial_run", _wrap_partial_run),
        (callable_class, "__init__", _wrap_callable_init),
        (callable_class, "__call__", _wrap_callable_call),
    ]
    missing, wrapped = [], []
    for owner, name, wrap in wrappers:
        original = _method(owner, name)
        if original is None:
            missing.append(name if owner is base else f"_Callable.{name}")
        else:
            wrapper = wrap(original, calls)
            setattr(owner, name, wrapper)
            wrapped.append((owner, name, wrapper, original))
    return Installed(missing, functools.partial(_uninstall, calls, wrapped))


def _method(owner: Any, name: str) -> Any:
    """Return the method as the class or a base class (not ``object``) defines it; None if no class defines it."""
    classes = owner.__mro__[:-1] if owner is not None else ()
    return next((vars(each)[name] for each in classes if name in vars(each)), None)


def _uninstall(calls: SessionCalls, wrapped: list[tuple[Any, str, Any, Any]]) -> None:
    """Restore the methods. A wrapper that other code has wrapped stays; after the recorder is closed, it only passes calls on."""
    for owner, name, wrapper, original in wrapped:
        if vars(owner).get(name) is wrapper:
            setattr(owner, name, original)
    calls.forget()


def session_class() -> Any:
    """Return ``BaseSession``, the base of Session and InteractiveSession, or Session itself if TensorFlow has renamed it."""
    session = tensorflow().compat.v1.Session
    return next((base for base in session.__mro__ if base.__name__ == "BaseSession"), session)


def _wrap_run(original: Callable[..., Any], calls: SessionCalls) -> Callable[..., Any]:
    @functools.wraps(original)
    @hide_in_tracebacks
    def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        call, values = calls.begin(self, fetches, feed_dict, options, run_metadata)
        try:
            result = original(self, fetches, feed_dict, values.options, values.run_metadata)
        except BaseException as error:
            calls.step_failed()
            remove_our_frames(error)
            raise
        calls.finish(self, call, values)
        return result

    return run


def _wrap_make_callable(original: Callable[..., Any], calls: SessionCalls) -> Callable[..., Any]:
    @functools.wraps(original)
    @hide_in_tracebacks
    def make_callable(self: Any, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Any:
        try:
            new_callable = original(self, fetches, feed_list, accept_options)
        except BaseException as error:
            remove_our_frames(error)
            raise
        if feed_list is not None:  # this callable calls ``run``, which is wrapped
            return new_callable
        plain = None if accept_options else new_callable
        with_options: list[Any] = [new_callable] if accept_options else []  # at most one: a callable that takes options

        @hide_in_tracebacks
        def recorded(options: Any = None, run_metadata: Any = None) -> Any:
            call, values = calls.begin(self, fetches, None, options, run_metadata)
            try:
                if plain is not None and values.options is options:
                    result = plain()
                else:
                    if not with_options:
                        with_options.append(original(self, fetches, None, True))
                    result = with_options[0](options=values.options, run_metadata=values.run_metadata)
            except BaseException as error:
                calls.step_failed()
                remove_our_frames(error)
                raise
            calls.finish(self, call, values)
            return result

        return recorded if accept_options else functools.partial(recorded, None, None)

    return make_callable


def _wrap_partial_run(original: Callable[..., Any], calls: SessionCalls) -> Callable[..., Any]:
    @functools.wraps(original)
    @hide_in_tracebacks
    def partial_run(self: Any, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        start_ns = perf_counter_ns()
        try:
            result = original(self, handle, fetches, feed_dict)
        except BaseException as error:
            remove_our_frames(error)
            raise
        calls.partial_run(fetches, feed_dict, start_ns)
        return result

    return partial_run


def _wrap_callable_init(original: Callable[..., None], _: SessionCalls) -> Callable[..., None]:
    @functools.wraps(original)
    @hide_in_tracebacks
    def init(self: Any, session: Any, callable_options: Any) -> None:
        try:
            original(self, session, callable_options)
        except BaseException as error:
            remove_our_frames(error)
            raise
        with contextlib.suppress(Exception):
            copy = type(callable_options)()
            copy.CopyFrom(callable_options)
            fetches = (*copy.fetch, *copy.target)
            setattr(self, _OPTIONS, (copy, fetches, tuple(copy.feed), copy.run_options if copy.run_options.ByteSize() else None))

    return init


def _wrap_callable_call(original: Callable[..., Any], calls: SessionCalls) -> Callable[..., Any]:
    """Wrap ``_Callable.__call__``, through which Keras runs its steps in graph mode.

    The options of a callable cannot be changed, so a traced step uses a second callable.
    """

    @functools.wraps(original)
    @hide_in_tracebacks
    def call_it(self: Any, *args: Any, **kwargs: Any) -> Any:
        call_options = self.__dict__.get(_OPTIONS)
        if call_options is None:
            return original(self, *args, **kwargs)
        callable_options, fetches, feeds, options = call_options
        session, metadata = self._session, kwargs.get("run_metadata")
        call, values = calls.begin(session, fetches, feeds, options, metadata)
        tracing = None if values.options is options else _tracing_callable(self, callable_options, values.options)
        try:
            if tracing is None:
                values = Values(None, options, metadata)
                result = original(self, *args, **kwargs)
            else:
                result = original(tracing, *args, **{**kwargs, "run_metadata": values.run_metadata})
        except BaseException as error:
            calls.step_failed()
            remove_our_frames(error)
            raise
        calls.finish(session, call, values)
        return result

    return call_it


def _tracing_callable(callable_: Any, callable_options: Any, options: Any) -> Any:
    """Return a copy of the callable with these RunOptions, which request a trace; None if copying fails. The copy is reused."""
    tracing = callable_.__dict__.get(_TRACING)
    try:
        if tracing is None:
            tracing_options = type(callable_options)()
            tracing_options.CopyFrom(callable_options)
            tracing_options.run_options.CopyFrom(options)
            tracing = type(callable_)(callable_._session, tracing_options)
            setattr(callable_, _TRACING, tracing)
        return tracing
    except Exception:
        return None
