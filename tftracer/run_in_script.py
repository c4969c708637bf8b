"""The part of ``tftracer run`` in the script's processes: when the script has imported TensorFlow, it starts the tracer.

It does not import TensorFlow itself, because scripts set environment variables before the import, and many of their processes
never import it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tftracer import sessions_of_one_command
from tftracer.capture.after_import import after_import
from tftracer.session.ctrl_c_at_end import at_end
from tftracer.sessions_of_one_command import ProcessSession
from tftracer.terminal import PrintableFormatter

if TYPE_CHECKING:
    from tftracer.contract.live import LiveMessage
    from tftracer.server import TracingServer
    from tftracer.unattended_traces import UnattendedTraces

log = logging.getLogger("tftracer")

#: The environment variable with the options for the script's processes: JSON with TracingServer's and the command's options.
VARIABLE = "TFTRACER_RUN"
#: Maximum number of seconds that the end of the script waits until everything is written and analyzed.
FLUSH_S = 60.0
#: Maximum length of the text of an error that ended the script.
MAX_ERROR = 300
#: Maximum number of other processes' sessions that are listed at the end.
MAX_LISTED = 20


def watch_for_tensorflow() -> None:
    """Start the tracer as soon as this process has imported TensorFlow. Does nothing if ``tftracer run`` did not start it."""
    text = os.environ.get(VARIABLE)
    if text:
        ScriptProcess(json.loads(text)).watch()


NO_STEPS = "tftracer: no session.run, no call of a compiled function and no optimizer's step in eager code has ended"


class ScriptProcess:
    """One process of the script.

    The script's first process starts its page when TensorFlow is imported, and at its end lists the sessions of all processes.
    Each other process starts its page with its first step.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._is_first = os.getpid() == options["pid"]
        self._server: TracingServer | None = None
        self._unattended: UnattendedTraces | None = None
        self._ending = False
        self._stderr = stderr_before_pytest() if self._is_first else None

    def watch(self) -> None:
        if self._is_first:
            atexit.register(self._list_other_sessions)  # registered first, so called last
        os.register_at_fork(after_in_child=self._forked)
        after_import("tensorflow", self._start)

    def _start(self) -> None:
        from tftracer.record_all_sessions import hook_inject

        log_to_stderr("" if self._is_first else f" ({process_name()})", self._stderr)
        server = self._server = hook_inject(**self._options["server"], start_web_server_on_start=self._is_first)
        if self._options["trace"]:
            from tftracer.unattended_traces import UnattendedTraces

            self._unattended = UnattendedTraces(server.recorder, *self._options["trace"])
        if not self._is_first:
            self._at_first_step(server)
            end_with_multiprocessing(server)
        atexit.register(self._end, server)

    def _forked(self) -> None:
        """Stop using the parent's server in a forked child. The tracer starts again before the child's first computation."""
        self._is_first = False
        server, self._server = self._server, None
        if server is None:
            return  # TensorFlow is not imported yet
        from tftracer.capture.first_use_in_child import at_first_use
        from tftracer.record_all_sessions import leave_to_parent

        with contextlib.suppress(Exception):
            leave_to_parent(server)
            at_first_use(self._start)

    # ---------------------------------------------------------------------------------------------------- other processes

    def _at_first_step(self, server: TracingServer) -> None:
        """Start the page at the first step, so that processes without steps, such as data loaders, have no page."""

        def listen(message: LiveMessage) -> None:
            if message["type"] == "run":
                unsubscribe()
                sessions_of_one_command.add(self._options["sessions"], ProcessSession(process_name(), server.session_file))
                if not self._ending:
                    threading.Thread(target=server.start_web_server, name="tftracer-first-step", daemon=True).start()

        unsubscribe = server.recorder.subscribe(listen)

    # -------------------------------------------------------------------------------------------------------------- the end

    def _end(self, server: TracingServer) -> None:
        """Log where the session is; with ``--stay`` keep the page until Ctrl-C."""
        if server is not self._server:
            return  # the parent process registered this call before the fork
        self._ending = True
        if not self._is_first:
            return
        log_to_stderr("", self._stderr)  # again, because the script may have configured logging
        saved = ""

        error = getattr(sys, "last_value", None)  # Python sets it before it prints the error that ends a script
        if isinstance(error, BaseException):
            text = " ".join(str(error).split())[:MAX_ERROR]
            server.recorder.add_problem("script_error", f"The script ended with {type(error).__name__}{': ' * bool(text)}{text}")

        def write() -> None:
            nonlocal saved
            server.recorder.flush_to_file(FLUSH_S)  # later, saving and closing wait only a short time for analyses
            saved = self._saved(server)

        at_end(write)
        problem = self._unattended.problem() if self._unattended else ""
        if problem:
            log.warning("tftracer: %s", problem)
        if server.has_runs:
            path = saved or server.session_file
            log.warning("tftracer: the session is in %s (open it with: tftracer %s)", path, path)
        elif not self._other_sessions():
            log.warning("%s: nothing was recorded", NO_STEPS)
        if self._options["stay"]:
            server.recorder.store.script_ended()
            log.warning("tftracer: the script has ended; the page stays at %s until Ctrl-C", server.url)
            with contextlib.suppress(KeyboardInterrupt):
                server.join()

    def _saved(self, server: TracingServer) -> str:
        """Save the session to the file that the user requested, and return its path; ``""`` if none was requested or saving
        fails."""
        from tftracer.session.process.launcher import detect_launcher, file_of_process

        if not self._options["output"]:
            return ""
        try:
            output = file_of_process(str(self._options["output"]), detect_launcher())
            server.save_session(output)
        except Exception as error:
            log.warning("tftracer: the session could not be saved: %s", error)
            return ""
        return output

    def _other_sessions(self) -> list[ProcessSession]:
        return sessions_of_one_command.read(self._options["sessions"])

    def _list_other_sessions(self) -> None:
        if not self._is_first:
            return  # a forked child
        other_sessions = self._other_sessions()
        sessions_of_one_command.delete(self._options["sessions"])
        if self._server is None and sys.modules.keys() & {"jax", "keras"}:
            self._explain_no_session()
        if not other_sessions:
            return
        log_to_stderr("", self._stderr)
        log.warning("tftracer: sessions of the processes that the script started:")
        for session in other_sessions[:MAX_LISTED]:
            log.warning("tftracer:   %s: %s", session.process, session.file or "kept in memory only")
        if len(other_sessions) > MAX_LISTED:
            log.warning("tftracer:   and %d more (tftracer --recover lists them)", len(other_sessions) - MAX_LISTED)

    def _explain_no_session(self) -> None:
        """Log that the script trains without TensorFlow. Logs nothing for a script that does not train at all."""
        from tftracer.session.writer.no_steps import no_steps

        log_to_stderr("", self._stderr)
        why = no_steps(sys.modules, role="", sees_all_sessions=False)
        if why:
            log.warning("tftracer: nothing was recorded. %s", why)


def stderr_before_pytest() -> TextIO | None:
    """Return the original stderr if pytest is starting, else None.

    Later pytest redirects it and shows only failed tests' output.
    """
    words = getattr(sys, "orig_argv", [])[1:]  # from Python 3.10 on; sys.argv is not set yet
    if not any(Path(word).name in ("pytest", "py.test", "pytest.exe") for word in words[:4]):
        return None
    with contextlib.suppress(OSError):  # stderr is closed
        return os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
    return None


def process_name() -> str:
    """Return, for example, "worker.py, process 4711"."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = spec.name if spec is not None else Path(sys.argv[0] if sys.argv else "").name
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        name = multiprocessing.current_process().name
    return f"{name or 'python'}, process {os.getpid()}"


def end_with_multiprocessing(server: TracingServer) -> None:
    """Close the server when multiprocessing ends this process: processes that it forks do not call atexit's functions."""
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return

    def register(server: TracingServer) -> None:
        util.Finalize(None, server.close, exitpriority=0)

    register(server)
    util.register_after_fork(server, register)  # if TensorFlow was imported before the fork


def log_to_stderr(process: str, stream: TextIO | None) -> None:
    """Log tftracer's messages to stderr, independently of the script's logging and streams.

    ``process``: name of the process for the messages. ``stream``: where to write; None: Python's stderr.
    """
    log.handlers[:] = [handler for handler in log.handlers if not isinstance(handler, _Stderr)]
    log.addHandler(_Stderr(process, stream))
    log.setLevel(logging.WARNING)
    log.propagate, log.disabled = False, False


class _Stderr(logging.Handler):
    def __init__(self, process: str, stream: TextIO | None) -> None:
        super().__init__()
        self.setFormatter(PrintableFormatter())
        self._stream = stream
        self._prefix = f"tftracer{process}: "

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            stream = self._stream or sys.__stderr__
            if stream is not None:
                stream.write(self._prefix + self.format(record).removeprefix("tftracer: ") + "\n")
                stream.flush()
