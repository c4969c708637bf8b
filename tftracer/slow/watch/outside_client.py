"""The training's side of the process that watches from outside (outside_process.py): starts it, writes the pulse, sends
questions.

Only the watch's thread uses it. That thread starts the process, and when the thread ends, Linux ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.slow.watch.stack_samples import StackSample
from tftracer.slow.watch.times_of_samples import PULSE_BYTES, write_beat

#: Values of the environment variable TFTRACER_OUTSIDE that switch the process off.
OFF = {"0", "off", "no"}
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
PR_SET_PTRACER = 0x59616D61
READ_BYTES = 1 << 20
MAX_ANSWER = 16 << 20  # maximum bytes of an answer
END_S = 2.0  # maximum seconds to wait until the process has ended
#: Environment variables that the process gets.
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT")


class CannotWatch(Exception):
    """Stacks cannot be read from outside here. The message says why."""


def find_py_spy() -> str:
    """Return the path of py-spy, next to this Python or on the PATH. Raises CannotWatch if there is none."""
    beside = Path(sysconfig.get_path("scripts")) / "py-spy"
    program = str(beside) if beside.is_file() else shutil.which("py-spy")
    if not program:
        raise CannotWatch("py-spy is not installed (pip install py-spy)")
    return program


class Question(NamedTuple):
    """A question about a thread. Spans of time are in perf_counter nanoseconds."""

    thread: int
    native: int  # its native id
    spans: list[tuple[int, int]]
    clocked: Sequence[tuple[int, int]] = ()  # spans for which the sums of the counters are wanted
    profile: bool = False  # whether the stacks of all spans together are wanted, and nothing else


class OutsideProcess:
    """Starts the process; raises CannotWatch or OSError if it cannot be started."""

    def __init__(self) -> None:
        if os.environ.get("TFTRACER_OUTSIDE", "").lower() in OFF:
            raise CannotWatch("TFTRACER_OUTSIDE switches it off")
        if sys.platform != "linux":
            raise CannotWatch("only Linux lets a process read another process's memory without special rights")
        py_spy = find_py_spy()
        self.ended = ""  # why the process no longer reads stacks; "" while it does
        pulse = os.memfd_create("tftracer-pulse", os.MFD_CLOEXEC)
        try:
            os.ftruncate(pulse, PULSE_BYTES)
            self._memory = mmap.mmap(pulse, PULSE_BYTES)
            command = [sys.executable, "-m", "tftracer.slow.watch.outside_process", str(os.getpid()), py_spy, str(pulse)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=os.sep,
                env=_environment(),
                pass_fds=[pulse],
                start_new_session=True,  # so that Ctrl-Z stops only the training
                bufsize=0,
            )
        finally:
            os.close(pulse)
        assert self._process.stdin and self._process.stdout
        self._write, self._read = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._received = b""
        self._lines: list[bytes] = []  # answers that have arrived
        self._unsent = b""
        _allow(self._process.pid)

    def beat(self, native: int, number: int) -> None:
        """Report that the watch's thread runs and holds Python's lock. ``native``: its native id. ``number``: of the beat."""
        write_beat(self._memory, native, number, perf_counter_ns())

    def watch(self, natives: list[int], ours: list[int], others: list[int]) -> None:
        """Set the threads whose counters are read, by native id. ``ours``: of the tracer. ``others``: other Python threads."""
        self._send({"threads": natives, "ours": ours, "others": others})

    def read_lock(self, place: tuple[int, int]) -> None:
        """Let the process read who holds Python's lock. ``place``: where this process stores it (``LockPlace.place``)."""
        self._send({"lock": place})

    def ask(self, number: int, question: Question, inside: list[StackSample]) -> None:
        """Send a question. ``inside``: the samples that this process itself took within the question's spans."""
        seen = [[sample.at_ns, list(sample.stacks.items())] for sample in inside]
        self._send({"id": number, **question._asdict(), "inside": seen})

    def overdue(self) -> None:
        """Request that counters are read now, because a turn takes too long."""
        self._send({"overdue": True})

    def hurry(self) -> None:
        """Request that all open questions are answered now."""
        self._send({"hurry": True})

    @property
    def has_answers(self) -> bool:
        return bool(self._lines)

    def answers(self, most: int) -> list[dict[str, Any]]:
        """Return the answers that have arrived, at most ``most``: the others are kept for the next call."""
        self._receive()
        lines, self._lines = self._lines[:most], self._lines[most:]
        return [json.loads(line) for line in lines]

    def _receive(self) -> None:
        self._send_rest()
        while True:
            try:
                data = os.read(self._read, READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.ended = self.ended or "the process that reads stacks has ended"
                break
            self._received += data
            if len(self._received) > MAX_ANSWER:
                raise ValueError("an answer of more than 16 MB")
        *lines, self._received = self._received.split(b"\n")
        self._lines += lines

    def stop(self) -> None:
        """End the process. Open questions get no answer."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self.close_pipes()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)

    def close_pipes(self) -> None:
        """Close the pipes. A forked child does only this, because the process belongs to the parent."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()

    def _send(self, message: dict[str, Any]) -> None:
        self._unsent += json.dumps(message).encode() + b"\n"
        self._send_rest()

    def _send_rest(self) -> None:
        """Send as much as the pipe takes, without waiting."""
        while self._unsent:
            try:
                self._unsent = self._unsent[os.write(self._write, self._unsent) :]
            except BlockingIOError:
                return
            except OSError:
                self._unsent = b""


def _environment() -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed_on, "PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONDONTWRITEBYTECODE": "1"}


def _allow(pid: int) -> None:
    """Allow the process ``pid`` to read this process's memory. With Yama's ptrace_scope 1, Linux forbids this otherwise."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if PTRACE_SCOPE.read_text().strip() == "1":
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
