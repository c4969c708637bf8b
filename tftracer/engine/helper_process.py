"""The training's side of the helper process: starts it on demand, asks it questions, and survives its failures.

May be used from any thread except training threads, because a question blocks the caller. Only one question is asked at a time.
If the helper fails, ``HelperError`` is raised, and training continues.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tftracer import errors, memory_limit
from tftracer.call_in_child import call_in_child
from tftracer.engine.helper_protocol import DATA, MESSAGE, receive, send
from tftracer.errors import HelperError, TracerError
from tftracer.storage.trace_payload import LoadPayload, Payload, TraceKey

#: Maximum seconds for an answer: TIMEOUT_S, plus TIMEOUT_S_PER_MB for each MB of the traces. Long, because the helper has a low
#: priority on a busy machine.
TIMEOUT_S = 120.0
TIMEOUT_S_PER_MB = 3.0
#: The helper's maximum CPU time for a question is this many times the maximum time for its answer, because NumPy may use several
#: CPUs at once. The kernel ends a helper that needs more.
CPU_FACTOR = 2.0
#: Added to the training's nice value for the helper, so that the helper has a lower priority.
NICE = 10
START_S = 180.0  # maximum time to start: with 20 busy processes on the machine, the helper's imports took 70 s
END_S = 5.0  # time that the helper gets to exit, before it is killed
CLOSE_S = 1.0  # time that the helper gets to exit at the end of the session; it has nothing to save
#: After FAILURES failures in a row, no helper is started until FAILURES_S seconds have passed since the first of them.
FAILURES, FAILURES_S = 3, 600.0
#: Environment variables that the helper gets: what Python needs, and nothing for launchers, profilers, GPUs or preloaded
#: libraries.
PASSED_ON = {"PATH", "HOME", "USER", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV"}
PASSED_ON |= {
    memory_limit.VARIABLE,
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "PYTHONUSERBASE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
}
OFF = {"0", "off", "no"}
REMEDY = "Training is not affected. Save the session and open the file elsewhere: tftracer FILE."
Consumer = Callable[[bytes], object]


class Unusable(Exception):
    """No helper process can be started here."""


class Reply(NamedTuple):
    message: dict[str, Any]
    problem: Exception | None  # an error that the consumer of the data raised


def environment(*more: str) -> dict[str, str]:
    """Return the helper's environment variables. It imports the same tftracer and libraries as this process.

    ``more``: names of further packages that it must be able to import.
    """
    variables = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}
    paths = [package_folder(name) for name in ("tftracer", "numpy", "msgpack", "zstandard", "google.protobuf", *more)]
    paths += variables.get("PYTHONPATH", "").split(os.pathsep)
    variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    return {**variables, **one_thread, "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}


def package_folder(package: str) -> str:
    """Return the folder that contains a package; "" if the package is not installed."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    return str(Path(places[0]).absolute().parents[package.count(".")]) if places else ""


def interpreter() -> str:
    """Return the path of the Python executable. Raises Unusable if this process is not a plain Python interpreter."""
    name = Path(sys.executable or "").name.lower()
    if not ("python" in name or "pypy" in name) or getattr(sys, "frozen", False):
        raise Unusable(f"sys.executable is {sys.executable!r}")
    return sys.executable


class HelperProcess:
    """A running helper process and the connection to it."""

    process: subprocess.Popen[bytes]

    def __init__(self) -> None:
        """Start the process. Raises OSError, RuntimeError or Unusable if it cannot be started."""
        command = [interpreter(), "-m", "tftracer.engine.helper_main", str(os.getpid())]
        self.connection, remote = socket.socketpair()  # this process's end and the helper's end of the connection
        self.ended = threading.Event()
        started: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        try:
            with remote:
                arguments = (command, remote, started)
                threading.Thread(target=self._run_process, args=arguments, name="tftracer-helper", daemon=True).start()
                problem = started.get()
            if problem is not None:
                raise problem
        except BaseException:
            self.connection.close()
            raise
        call_in_child(self.connection.close)  # a forked child must not keep the connection open when this process exits

    def _run_process(self, command: list[str], remote: socket.socket, started: queue.SimpleQueue[Exception | None]) -> None:
        """Start the process and wait until it ends. Runs on a separate thread, which must live as long as the process.

        With PR_SET_PDEATHSIG (helper_main.exit_with_parent), the kernel kills the process when the thread that started it ends.
        """
        null = subprocess.DEVNULL
        try:
            self.process = subprocess.Popen(
                command, stdin=remote.fileno(), stdout=null, stderr=null, cwd=os.sep, env=environment(), close_fds=True
            )
        except Exception as problem:
            started.put(problem)
            return
        # The priority is lowered before the helper's imports, which would slow the steps that are traced meanwhile.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.process.pid, min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICE))
        started.put(None)
        self.process.wait()
        self.ended.set()

    def wait_until_ready(self) -> None:
        """Wait until the process has started. Raises EOFError or TimeoutError if it does not answer."""
        receive(self.connection, time.monotonic() + START_S)

    def kill(self) -> None:
        """Kill the process. A pending question then raises EOFError."""
        with contextlib.suppress(OSError):
            self.process.kill()

    def exchange(self, message: Mapping[str, Any], payloads: Sequence[bytes], consume: Consumer, deadline: float) -> Reply:
        """Send a request, pass the reply's data to ``consume``, and return the reply.

        Raises EOFError or OSError if the helper has ended, socket.timeout after ``deadline``.
        """
        send(self.connection, MESSAGE, message, deadline)
        for payload in payloads:
            send(self.connection, DATA, payload, deadline)
        problem: Exception | None = None
        while True:
            kind, content = receive(self.connection, deadline)
            if kind == MESSAGE:
                return Reply(content, problem)
            try:
                if problem is None:
                    consume(bytes(content))
            except Exception as error:  # the rest of the reply must still be read
                problem = error

    def end(self, timeout_s: float = END_S) -> int | None:
        """Close the connection, which ends the process; kill it if it does not end in time. Return its exit code."""
        self.connection.close()
        if not (timeout_s and self.ended.wait(timeout_s)):
            self.kill()
            self.ended.wait(END_S)
        return self.process.returncode


class Helper:
    """Starts and restarts the helper process. ``load`` returns a trace that the helper has not cached."""

    def __init__(self, load: LoadPayload) -> None:
        self.timeout_s = TIMEOUT_S
        self._load = load
        self._question_lock = threading.Lock()
        self._running: HelperProcess | None = None
        #: Why no helper can be used here; "" if helpers can be used, or if that is not known yet.
        self.unusable = "TFTRACER_HELPER switches it off" if os.environ.get("TFTRACER_HELPER", "").lower() in OFF else ""
        self._has_started = False  # after a helper has started, questions are never answered on threads
        self._failure_times: deque[float] = deque(maxlen=FAILURES)

    # ------------------------------------------------------------------------------------------------------- starting, ending

    def is_usable(self) -> bool:
        """Return whether helpers can be started here. The first call starts one to find out."""
        if not (self._has_started or self.unusable):
            with self._question_lock:
                self._try_start()
        return not self.unusable

    def _try_start(self) -> None:
        if self._has_started or self.unusable:
            return
        try:
            self._start()
        except socket.timeout:  # the machine is busy: the next question tries again
            pass
        except Exception as problem:  # fork forbidden, no new threads at interpreter exit, ...
            self.unusable = str(problem) or type(problem).__name__

    @property
    def pid(self) -> int | None:
        running = self._running
        return running.process.pid if running is not None and not running.ended.is_set() else None

    def start_in_background(self) -> None:
        """Start the helper in the background. Does not block, never raises."""
        if self.pid is None and not self.unusable:
            with contextlib.suppress(RuntimeError):  # no thread can be started: the first question starts the helper
                threading.Thread(target=self._start_quietly, name="tftracer-helper-start", daemon=True).start()

    def _start_quietly(self) -> None:
        with contextlib.suppress(HelperError):
            if self.is_usable():
                with self._question_lock:
                    self._ensure_running()

    def close(self) -> None:
        """End the helper, even during an answer. Later questions are answered on the calling thread."""
        self.unusable = self.unusable or "the session is closed"
        running = self._running
        if running is not None:
            running.end(CLOSE_S)

    def interrupt(self) -> None:
        """Kill the helper if a question is pending.

        The question then raises HelperError; the next question starts a new helper.
        """
        running = self._running
        if running is not None and self._question_lock.locked():
            running.kill()

    def _start(self) -> HelperProcess:
        running = self._running = HelperProcess()
        try:
            running.wait_until_ready()
        except BaseException:
            self._discard()
            raise
        self._has_started = True
        if self.unusable:  # ``close`` was called meanwhile
            self._discard()
        return running

    def _ensure_running(self) -> HelperProcess:
        if self.unusable:
            raise HelperError(f"The process that analyzes traces has ended: {self.unusable}.")
        if self._running is not None and not self._running.ended.is_set():
            return self._running
        self._discard()
        if len(self._failure_times) == FAILURES and time.monotonic() - self._failure_times[0] < FAILURES_S:
            raise HelperError(
                f"The process that analyzes traces has died {FAILURES} times; it will be started again in a few minutes. {REMEDY}"
            )
        try:
            return self._start()
        except Exception as problem:
            raise HelperError(f"The process that analyzes traces cannot be started again ({problem}). {REMEDY}") from problem

    # --------------------------------------------------------------------------------------------------------- questions

    def ask(self, question: str, traces: Sequence[TraceKey], arguments: Sequence[Any], consume: Consumer) -> dict[str, Any]:
        """Ask a question, pass the reply's data to ``consume``, and return the reply.

        Raises what the question raises, what ``consume`` raises, and HelperError if the helper did not answer.
        """
        size = sum(trace.bytes for trace in traces)
        message = {"do": question, "arguments": arguments, "cpu_s": CPU_FACTOR * self._time_limit_s(size)}
        with self._question_lock:
            reply, problem = self._exchange(message, [], consume, size)
            if reply.get("missing"):
                attached = [(trace, self._load(trace)) for trace in traces]
                reply, problem = self._exchange(message, attached, consume, size)
            self._failure_times.clear()
        if problem is not None:
            raise problem
        return checked(reply)

    def _time_limit_s(self, size: int) -> float:
        return self.timeout_s + TIMEOUT_S_PER_MB * size / 1e6

    def _exchange(self, message: dict[str, Any], attached: list[tuple[TraceKey, Payload]], consume: Consumer, size: int) -> Reply:
        heads = [{"trace": list(t), "raw_size": p.raw_size, "context": asdict(p.context)} for t, p in attached]
        request = {**message, "traces": heads}
        payloads = [p.data for _, p in attached]
        running = self._ensure_running()
        deadline = time.monotonic() + self._time_limit_s(size)
        try:
            try:
                return running.exchange(request, payloads, consume, deadline)
            except (EOFError, ConnectionError) as problem:
                was_idle = isinstance(problem, BrokenPipeError) or (running.ended.wait(END_S) and running.process.returncode == 0)
                if not was_idle:
                    raise
                self._discard()  # the helper exited by itself, before it read the question
            return self._ensure_running().exchange(request, payloads, consume, deadline)
        except (EOFError, OSError) as problem:
            raise self._failure(problem, size) from problem
        except BaseException:
            self._discard()  # part of a request may have been sent
            raise

    def _discard(self) -> int | None:
        running, self._running = self._running, None
        return running.end(0) if running is not None else None

    def _failure(self, problem: BaseException, size: int) -> HelperError:
        running = self._running
        died = running is not None and not isinstance(problem, socket.timeout) and running.ended.wait(END_S)
        code = self._discard()
        self._failure_times.append(time.monotonic())
        if died:
            return HelperError(f"The process that analyzes traces {exit_text(code)} at a trace of {size / 1e6:.0f} MB. {REMEDY}")
        return HelperError(f"The analysis of a trace of {size / 1e6:.0f} MB took too long and was aborted. {REMEDY}")


def exit_text(code: int | None) -> str:
    """Return how a process ended, for messages."""
    if code == -signal.SIGKILL:
        return "was killed (SIGKILL: most likely, memory ran out)"
    if code is not None and code < 0:
        return f"was ended by signal {-code}"
    return f"ended (exit code {code})"


class Failure(Exception):
    """An unexpected exception in the helper; the message contains its traceback."""


def checked(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the reply. Raises the error that it reports, if any."""
    name = reply.get("error")
    if name is None:
        return reply
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, TracerError):
        raise kind(reply["message"])
    raise Failure(f"{name}: {reply['message']}\n{reply.get('trace', '')}")
