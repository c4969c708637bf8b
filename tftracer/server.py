"""TracingServer, the public class: connects the recorder, the hook, the web server and the job.

May be used from any thread. Only wrong arguments and calls (see Raises) raise an error. All other errors are logged and shown on
the page, and training goes on.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tftracer import arguments
from tftracer.arguments import Path
from tftracer.capture.after_import import after_import
from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.own_cost_of_call import measure_call_cost
from tftracer.capture.traces.requests import MAX_STEPS
from tftracer.contract.session import Loaded
from tftracer.errors import TracerError, UnknownError
from tftracer.job.membership import JobMembership, port_of
from tftracer.session.ctrl_c_at_end import call_at_exit
from tftracer.session.live import Recorder
from tftracer.web.app import Options, WebServer

if TYPE_CHECKING:
    from tftracer.scripting.export_process import ExportProcess

log = logging.getLogger("tftracer")


class TracingServer:
    """Records the steps of a training, and serves the page that shows them and requests traces.

    Give its :attr:`hook` to ``MonitoredTrainingSession(hooks=...)`` or to an Estimator's ``train`` and ``evaluate``::

        server = TracingServer()
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
            ...

    The page's URL, with its token, is logged once. The web server stops when the script ends; :meth:`join` keeps it running.

    Args:
        server_port: TCP port (default: 9999, plus the local rank in a job of several processes). If it is in use, the next
            free one is taken; 0 takes any free port.
        server_ip: address to listen on (default: ``"127.0.0.1"``, this machine alone).
        keep_traces: how many of the traces that *Trace every step* or the script itself made are kept for each run
            (default: 5): the newest and the slowest. Requested traces (*Trace*, :meth:`trace_next`) are all kept until they take
            4 GiB of disk.
        start_web_server_on_start: False to start it with :meth:`start_web_server` instead.
        token: the secret for the page; by default the environment variable ``TFTRACER_TOKEN``, or a new one.
        certfile, keyfile: a certificate and its key (PEM), to serve https.
        spool_dir: folder of the file that the session is written to while it runs; by default one in the user's cache.
        communication_ops: regular expression of further op types or names that communicate, besides those that tftracer knows.
        is_horovod: accepted for compatibility; Horovod's ops are always recognized.
        base_url: path prefix (``"/tracer"``) or public URL (``"https://host/tracer"``) behind a reverse proxy.
        hub: ``"host:port"`` or URL of the job's page, if the launcher does not provide it (see docs/launching.rst).
        trace_slow: watch for slow steps: find their causes, and trace those that come regularly (see docs/slow_steps.rst). A step
            is slow if it, or the time before it, takes more than 3 times the median, and more than 20 ms
            longer than the median. A number from 1.5 to 1000 replaces the 3; False turns the watch off.
        export_dir: folder (or URL, with fsspec) to which a separate process exports the session's tables during the recording,
            one partition for each process of a job. Needs ``tftracer[tables]`` (see docs/tables.rst).

    Other keyword arguments are ignored with a warning, as tensorflow-tracer ignored them.

    Raises:
        TypeError, ValueError: an argument of a wrong type, or out of its range.
    """

    def __init__(
        self,
        server_port: int = 9999,
        server_ip: str = "127.0.0.1",
        keep_traces: int = 5,
        start_web_server_on_start: bool = True,
        token: str | None = None,
        certfile: str | None = None,
        keyfile: str | None = None,
        spool_dir: Path | None = None,
        communication_ops: str | None = None,
        is_horovod: bool | None = None,
        base_url: str = "",
        hub: str | None = None,
        trace_slow: bool | float = True,
        export_dir: Path | None = None,
        **unknown: Any,
    ) -> None:
        arguments.ignore("TracingServer", unknown)
        port = arguments.number("server_port", server_port, 0, 65535)
        # The parts are not public API, but tests and tools may use them.
        self.recorder = Recorder(
            keep_traces=arguments.number("keep_traces", keep_traces, 1, 1_000_000),
            spool_dir=arguments.path("spool_dir", spool_dir),
            communication_ops=arguments.pattern("communication_ops", communication_ops or ""),
            slow_factor=arguments.slow_factor("trace_slow", trace_slow),
        )
        options = Options(
            port_of(port, self.recorder.session()["place"]["local_rank"]),
            arguments.text("server_ip", server_ip),
            token,
            arguments.path("certfile", certfile),
            arguments.path("keyfile", keyfile),
            arguments.text("base_url", base_url),
        )
        self.job = JobMembership(
            self.recorder, arguments.text("hub", hub or ""), bool(token or os.environ.get("TFTRACER_TOKEN", "").strip())
        )
        self.web = WebServer(self.recorder, options, self.job.pages, self.recorder.engine)
        self.job.attach(self.web)
        self._hook: Any = None
        self._is_url_logged = False
        self.functions = FunctionRuns(self.recorder.queue)
        self._start_recording()
        self._exporting = self._export(arguments.path("export_dir", export_dir))
        call_at_exit(self.close)
        self._stop_waiting = after_import("tensorflow", self.watch_functions)
        if start_web_server_on_start:
            self.start_web_server()
        self._start_job()

    def _start_recording(self) -> None:
        try:
            self.recorder.start()
        except Exception as problem:  # for example no thread could be started
            self.recorder.queue.switch_off()
            self.recorder.add_problem("no_recording", f"tftracer cannot record: {problem}. Training goes on without it.")

    def _export(self, export_dir: str | None) -> ExportProcess | None:
        if not export_dir:
            return None
        from tftracer.scripting.export_process import ExportProcess

        try:
            return ExportProcess(self.recorder.session(), self.job.plan.job, export_dir, self._report_export)
        except Exception as problem:
            self._report_export(f"The session is not exported: {problem}")
            return None

    def _report_export(self, problem: str) -> None:
        if problem:
            self.recorder.add_problem("export", f"{problem} Training goes on.")
        else:
            self.recorder.solved("export")

    def watch_functions(self) -> None:
        """Watch compiled functions (``tf.function``, Keras) from now on. This happens by itself when TensorFlow is imported."""
        try:
            self.functions.watch()
        except Exception as problem:
            self.recorder.add_problem("functions", f"Compiled functions are not seen on this TensorFlow: {problem}.")
            return
        with contextlib.suppress(Exception):  # only shown on the page
            self.recorder.store.set_facts(call_cost_s=measure_call_cost())

    def _start_job(self) -> None:
        """Join the job, or start its page."""
        try:
            self.job.start()
        except Exception as problem:
            self.recorder.add_problem("job", f"This process is not on its job's page: {problem}. Training goes on.")

    # ------------------------------------------------------------------------------------------------------- the training

    @property
    def hook(self) -> Any:
        """The ``SessionRunHook`` to pass to sessions; one hook serves any number of them.

        Raises:
            MissingTensorFlowError: TensorFlow cannot be imported.
        """
        if self._hook is None:
            from tftracer.capture.hook import make_hook

            self._hook = make_hook(self.recorder)
        return self._hook

    @property
    def callback(self) -> Any:
        """A Keras callback for ``fit(callbacks=[server.callback])``: it adds the epoch to traces.

        Keras's steps are listed, timed and traced without it, too. It has no methods for batches, so it does not slow Keras 3
        down.

        Raises:
            MissingTensorFlowError: TensorFlow cannot be imported.
        """
        from tftracer.capture.loops.keras_steps import make_callback

        return make_callback(self.functions.set_note)

    def record_all_sessions(self) -> None:
        """Record every call of every TensorFlow session from now on, so that :attr:`hook` is not needed (:func:`hook_inject`).

        Raises:
            MissingTensorFlowError: TensorFlow cannot be imported.
        """
        from tftracer.capture import session_wrappers
        from tftracer.capture.hook import HookMethods

        if self.recorder.queue.sees_all_sessions:
            return
        missing = session_wrappers.install(HookMethods(self.recorder)).missing
        self.recorder.queue.sees_all_sessions = True
        self._hook = None
        if missing:
            names = ", ".join(missing)
            self.recorder.add_problem("unseen_calls", f"Steps run by {names} are not listed: this TensorFlow has changed them.")

    def step(self, name: str = "step") -> AbstractContextManager[None]:
        """Make a ``with`` block one step of a run with this name, such as an iteration of an eager loop.

        The step is counted, timed and, on request, traced with TensorFlow's profiler; calls inside it are not steps of their
        own::

            for batch in batches:
                with server.step("train"):
                    train(batch)
        """
        return self.functions.calls.step(self.functions.named_step(name))

    def trace(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function: each call is a step, as with :meth:`step`."""

        @functools.wraps(function)
        def step(*args: Any, **kwargs: Any) -> Any:
            with self.step(function.__name__):
                return function(*args, **kwargs)

        return step

    def trace_next(self, run: int | str | None = None, steps: int = 1) -> None:
        """Trace the next steps, after those that are requested already.

        Args:
            run: number or title of a run, as shown on the page; None for the next run that has a step.
            steps: how many, up to 10,000.

        Raises:
            UnknownError: there is no such run (yet).
            UnsupportedError: its steps cannot be traced; the message says why.
        """
        steps = arguments.number("steps", steps, 1, MAX_STEPS)
        self.recorder.request_traces(self._run_id(run) if isinstance(run, str) else run, steps, more=True)

    def _run_id(self, title: str) -> int:
        for run in self.recorder.runs():
            if run["title"] == title:
                return run["id"]
        raise UnknownError(f"There is no run {title!r} yet; the page shows the titles of all runs.")

    # ----------------------------------------------------------------------------------------------------- the web server

    @property
    def url(self) -> str:
        """The page's URL with its token; ``""`` while no web server runs. Its repr, which notebooks save, hides the token."""
        return self.web.url

    def one_time_url(self) -> str:
        """A URL without the token, for output that is saved or shown to others; ``""`` while no web server runs.

        It signs in one browser, once, within an hour.
        """
        return self.web.one_time_url()

    @property
    def token(self) -> str:
        """The secret for the page and the HTTP API."""
        return self.web.token

    def start_web_server(self) -> None:
        """Start the web server in its own thread. Recording does not depend on it."""
        if self.web.running:
            return
        try:
            self.web.start()
            self._log_url()
        except Exception as problem:  # training continues without a page
            self.recorder.add_problem("no_page", f"tftracer serves no page, training goes on: {problem}")
            if not isinstance(problem, TracerError):
                log.error("tftracer: the web server did not start", exc_info=problem)
            return
        self.recorder.solved("no_page")
        self._start_job()

    def _log_url(self) -> None:
        requested = self.web.options.port
        if requested and self.web.port != requested:
            log.warning("tftracer: PORT %d IS IN USE, the page is on port %d instead", requested, self.web.port)
        if not self._is_url_logged:
            self._is_url_logged = True
            if in_notebook():
                once = "(signs one browser in, once, within an hour; server.one_time_url() makes another)"
                log.warning("tftracer: watch and trace this training at %s %s", self.one_time_url(), once)
            else:
                log.warning("tftracer: watch and trace this training at %s", self.url)

    def stop_web_server(self) -> None:
        """Stop the web server. Recording continues, and :meth:`start_web_server` starts it again at the same URL."""
        self.web.stop()

    def join(self) -> None:
        """Wait until the web server is stopped: on the page, by :meth:`stop_web_server`, or with Ctrl-C."""
        self.web.join()

    # ---------------------------------------------------------------------------------------------------------- the files

    @arguments.also_named(filename="path")
    def save_session(self, path: Path) -> None:
        """Save everything that was recorded to one ``.tftrace`` file. Training continues meanwhile.

        Args:
            path: the file. An older one is replaced when the new one is complete.

        Raises:
            StorageError: the file cannot be written; an older one stays as it is. Nothing is lost: the session is also in
                its spool, and ``tftracer --recover`` lists it after the script has ended.
        """
        self.recorder.save(os.fspath(path))

    @arguments.also_named(filename="path")
    def load_session(self, path: Path, gziped: bool | None = None) -> Loaded:
        """Add the contents of a file to this session: a ``.tftrace``, an old pickle, or any other file that tftracer opens.

        Args:
            path: the file.
            gziped: accepted for compatibility; compression is detected.

        Raises:
            FormatError: the file's format is unknown, or the file is damaged.
            StorageError: the file cannot be read.
        """
        return self.recorder.load(os.fspath(path))

    def close(self) -> None:
        """Stop the web server and end the recording. The session's file then holds everything that was recorded."""
        # The order matters: the export ends after the recorder has written its last record.
        stop_export = self._exporting.stop if self._exporting else lambda: None
        for close in (self._stop_waiting, self.job.stop, self.web.stop, self.recorder.close, stop_export, self.functions.stop):
            try:
                close()
            except Exception:  # the other parts must end, too
                log.exception("tftracer: a part of it could not be closed")

    @property
    def session_file(self) -> str:
        """The file to which the session is written while it runs; ``""`` if it is only in memory."""
        return self.recorder.session()["file"]

    @property
    def has_runs(self) -> bool:
        """Whether anything was recorded."""
        return bool(self.recorder.runs())


def in_notebook() -> bool:
    """Return whether this is a notebook, which saves log messages where others may see them."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
