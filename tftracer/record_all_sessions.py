"""hook_inject: records every session of a script that passes no hook. Calling it imports TensorFlow."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tftracer.server import TracingServer

_lock = threading.Lock()
#: The attribute of TensorFlow's session class that holds the server, so that two copies of this module find the same server.
_SERVER = "_tftracer_server"


def hook_inject(**options: Any) -> TracingServer:
    """Record every call of every TensorFlow session of this process; the options are those of :class:`TracingServer`.

    No hook has to be passed. Every ``run`` of a ``tf.compat.v1.Session`` or ``InteractiveSession`` is listed, and every call of
    its callables (``make_callable``) and of ``partial_run`` (timed only: TensorFlow cannot trace it). That includes
    MonitoredSession with its initialization, Estimators, ``Supervisor``, ``slim.learning.train``, queue runners, and Keras in
    graph mode.

    Call it before the script creates its sessions: functions that ``make_callable`` returned earlier are not recorded. A second
    call returns the same server and ignores its options.
    """
    from tftracer.capture import session_wrappers
    from tftracer.server import TracingServer

    session_type = session_wrappers.session_class()  # imports TensorFlow; with tftracer run, this may call hook_inject again
    with _lock:
        server: TracingServer | None = getattr(session_type, _SERVER, None)
        if server is None:
            server = TracingServer(**options)
            server.record_all_sessions()
            setattr(session_type, _SERVER, server)
        return server


def injected_server() -> TracingServer | None:
    """Return the server that ``hook_inject`` or ``tftracer run`` has created in this process; None if there is none."""
    from tftracer.capture import session_wrappers

    server: TracingServer | None = getattr(session_wrappers.session_class(), _SERVER, None)
    return server


def leave_to_parent(server: TracingServer) -> None:
    """Stop using the parent's server in a forked child. Nothing is recorded until ``hook_inject`` is called again."""
    from tftracer.capture import session_wrappers

    server.functions.stop()
    session_type = session_wrappers.session_class()
    if getattr(session_type, _SERVER, None) is server:
        delattr(session_type, _SERVER)
