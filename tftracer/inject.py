"""hook_inject: trace a script that passes no hook. With hook.py the only module that imports TensorFlow, and only when called."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tftracer.hook import tensorflow

if TYPE_CHECKING:
    from tftracer.server import TracingServer

_lock = threading.Lock()


def hook_inject(**options: Any) -> TracingServer:
    """Trace every session of this process, with no hook passed anywhere; the options are TracingServer's.

    Reached are whatever is built on MonitoredSession (MonitoredTrainingSession, SingularMonitoredSession, an Estimator's train,
    evaluate and predict) and plain ``tf.compat.v1.Session`` and ``InteractiveSession``. Call it once, before the script makes its
    sessions; a second call returns the same server and ignores its options.
    """
    from tftracer.server import TracingServer

    with _lock:
        monitored = _monitored_session_class()
        injected: TracingServer | None = getattr(monitored, "_tftracer_server", None)
        if injected is None:
            injected = TracingServer(**options)
            monitored.__init__ = _with_hook(monitored.__init__, injected)
            _patch_plain_sessions(injected)
            monitored._tftracer_server = injected
        return injected


def _monitored_session_class() -> Any:
    """The class that both MonitoredSession and SingularMonitoredSession derive from."""
    return tensorflow().compat.v1.train.MonitoredSession.__mro__[1]


def _with_hook(original: Callable[..., None], server: TracingServer) -> Callable[..., None]:
    """``_MonitoredSession.__init__(self, session_creator, hooks, ...)`` with the tracer's hook among the hooks."""

    @functools.wraps(original)
    def init(self: Any, session_creator: Any, hooks: Any = None, *args: Any, **kwargs: Any) -> None:
        hooks = list(hooks or [])
        if server.hook not in hooks:
            hooks.append(server.hook)
        original(self, session_creator, hooks, *args, **kwargs)

    return init


def _patch_plain_sessions(server: TracingServer) -> None: ...
