"""The helper process, ``python -m tftracer.engine.helper_main``: decodes traces and answers questions one at a time.

Its standard input is a socket connected to the training process (helper_protocol.py). It imports no TensorFlow and uses no GPU,
runs at a low priority, is the first process to be killed when memory runs out, and ends with the training process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import math
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tftracer.comparison.ops_over_traces import RunTraces
from tftracer.comparison.two_traces import OtherTotals
from tftracer.contract.encoding import WRITE_BYTES
from tftracer.engine.decoded_traces import AnswerFormat, DecodedTraces, Question
from tftracer.engine.helper_protocol import DATA, MESSAGE, receive, send
from tftracer.errors import HelperError, TracerError
from tftracer.memory_limit import limit_memory, memory_errors
from tftracer.storage.trace_payload import Payload, TraceKey
from tftracer.trace.model import TraceContext

IDLE_S = 120.0  # after this time without a question, decoded traces are freed
END_S = 600.0  # after this time without a question, the process exits; the next question starts a new process
POLL_S = 2.0  # time between two checks of the parent process
START_CPU_S = 60.0  # maximum CPU time until the first question, which sets its own limit
PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
#: A message, and the payloads of its traces; None for a payload that did not fit into memory.
Request = tuple[dict[str, Any], "list[bytearray | None]"]


class TraceMissing(Exception):
    """The trace is not cached here: the parent has to attach it."""


class ChunkWriter(io.RawIOBase):
    """A file that sends the written data over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        send(self._connection, DATA, bytes(data))
        return len(data)


class Worker:
    """Answers requests. ``listen`` starts a thread that receives them, ``run`` answers them on the calling thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received: dict[TraceKey, Payload] = {}
        self._traces = DecodedTraces(self._load)
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._last_answer_at = time.monotonic()  # time of the last answer

    def listen(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def run(self) -> None:
        """Answer requests until none has come for END_S."""
        importlib.import_module("tftracer.trace.answers")  # imported now, so that the first question does not wait for it
        limit_memory()
        send(self._connection, MESSAGE, {"hello": os.getpid()})
        while True:
            try:
                request = self._requests.get(timeout=IDLE_S)
            except queue.Empty:
                if time.monotonic() - self._last_answer_at >= END_S:
                    os._exit(0)
                self._traces.clear()
                continue
            self._answer(*request)
            self._last_answer_at = time.monotonic()
            del request

    def _read(self) -> None:
        """Receive requests. Runs on a separate thread, so that a closed connection ends the process even during an analysis."""
        with contextlib.suppress(BaseException):
            while True:
                _, message = receive(self._connection)
                self._requests.put((message, [self._payload() for _ in message["traces"]]))
        os._exit(0)

    def _payload(self) -> bytearray | None:
        """Return the next payload; None if there is not enough memory for it."""
        try:
            payload: bytearray = receive(self._connection)[1]
            return payload
        except MemoryError:
            return None

    def _load(self, trace: TraceKey) -> Payload:
        if trace not in self._received:
            raise TraceMissing
        return self._received.pop(trace)

    def _answer(self, message: dict[str, Any], data: list[bytearray | None]) -> None:
        limit_cpu(message["cpu_s"])
        try:
            with memory_errors(sum(attached["raw_size"] for attached in message["traces"])):
                self._attach(message["traces"], data)
                reply = getattr(self, f"do_{message['do']}")(*message["arguments"])
        except TraceMissing:
            reply = {"missing": True}
        except Exception as error:
            reply = {"error": type(error).__name__, "message": str(error)}
            if not isinstance(error, TracerError):
                reply["trace"] = traceback.format_exc(limit=-20)
        finally:
            self._received.clear()
        send(self._connection, MESSAGE, reply)

    def _attach(self, traces: list[dict[str, Any]], data: list[bytearray | None]) -> None:
        for attached, payload in zip(traces, data):
            if payload is None:
                raise MemoryError
            context = TraceContext(**attached["context"])
            trace = TraceKey(*attached["trace"])
            self._received[trace] = Payload(bytes(payload), attached["raw_size"], context)
        data.clear()

    # ------------------------------------------------------------------------------------------------------- the requests

    def do_ask(self, trace: list[Any], question: list[Any], answer_format: list[Any]) -> dict[str, Any]:
        body, headline = self._traces.ask(TraceKey(*trace), Question(*question), AnswerFormat(*answer_format))
        return {**self._send(body), "headline": headline}

    def do_compare(
        self, first: list[Any], second: list[Any], by: str, others: list[Any], answer_format: list[Any]
    ) -> dict[str, Any]:
        traces = (TraceKey(*first), TraceKey(*second))
        return self._send(self._traces.compare(*traces, by, OtherTotals(*others), AnswerFormat(*answer_format)))

    def do_run_ops(self, run: list[Any], by: str, answer_format: list[Any]) -> dict[str, Any]:
        return self._send(self._traces.run_ops(RunTraces(*run), by, AnswerFormat(*answer_format)))

    def do_export(self, trace: list[Any], file_format: str, session: Any, others: Any) -> dict[str, Any]:
        with io.BufferedWriter(ChunkWriter(self._connection), WRITE_BYTES) as file:
            self._traces.export(TraceKey(*trace), file_format, session, others, file)
        return {}

    def do_contents(self, trace: list[Any], watched: Any) -> dict[str, Any]:
        from tftracer.trace.record_fields import broken, contents_of

        try:
            return self._traces.use(TraceKey(*trace), partial(contents_of, watched=watched))
        except (TraceMissing, HelperError):
            raise
        except Exception as error:
            return broken(error)

    def _send(self, body: Any) -> dict[str, Any]:
        for chunk in body.chunks:
            send(self._connection, DATA, chunk)
        return {"content_type": body.content_type, "encoding": body.encoding}


# --------------------------------------------------------------------------------------------------------------- the process


def isolate() -> None:
    """Make this process ignore Ctrl-C, be killed first when memory runs out, and write no core files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    attempts: list[Callable[[], object]] = [
        # A process group, but no new session: schedulers that group processes by session would give it a separate share.
        lambda: os.setpgid(0, 0),
        lambda: Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii"),
        lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])),
    ]
    for attempt in attempts:
        with contextlib.suppress(OSError):
            attempt()


def exit_with_parent(parent: int) -> None:
    """Exit when the training process exits, whatever this process is doing.

    On Linux the kernel kills this process when the thread that started it ends (HelperProcess). For other systems a thread polls
    the parent's process id; it cannot run while C code holds the interpreter's lock, but then ``limit_cpu`` ends the process. A
    closed connection is no reliable sign: a forked child of the training may hold a copy of the socket.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent exited before prctl was called
        os._exit(0)
    threading.Thread(target=_poll_parent, args=(parent,), daemon=True).start()


def _poll_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os._exit(0)


def limit_cpu(seconds: float) -> None:
    """Let the kernel end this process (SIGXCPU) after it has used this many more seconds of CPU time."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime + max(seconds, 1.0))
    resource.setrlimit(resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def main(parent: int) -> None:
    exit_with_parent(parent)
    isolate()
    limit_cpu(START_CPU_S)
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    worker = Worker(connection)
    worker.listen()
    worker.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
