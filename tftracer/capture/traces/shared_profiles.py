"""Profiles (XSpace) of one call or of several in a row, taken with TensorFlow's profiler without touching the disk.

A process has one profiler. The script's own use of it always wins: the tracer's profile does not start while a profile of the
script runs, and it ends before the script starts one. Starting and ending a profile takes 0.1 to 0.5 ms on the training thread.
Collecting it takes up to several hundred ms, on a separate thread that releases the GIL. Calls in a row share a profile:
if each call had a profile of its own, each would cost this time, and calls during the collection could not be profiled.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
import uuid
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from tftracer.capture.background import BackgroundThread
from tftracer.trace.decode.profile_cut import steps
from tftracer.trace.decode.xplane_reader import STEP_MARKER

log = logging.getLogger("tftracer")


class Level(int):
    """An int option of the profiler. TensorFlow 2.20 and 2.21 take an int for a bool and drop it, unless bool() of it raises."""

    def __bool__(self) -> bool:
        raise TypeError("a level has no truth value")


#: Level 3: all ops. At level 2 TensorFlow leaves out ops that it considers cheap.
OPTIONS = {"host_tracer_level": Level(3), "python_tracer_level": Level(0), "device_tracer_level": Level(1)}
#: The script's own profiler waits this long for ours to end.
YIELD_S = 5.0
#: How long the end of the script waits for a profile that is still being collected: TensorFlow's collection may never end.
END_S = 5.0
#: Maximum number of steps that wait, each for a short time, until one profile is collected. Later steps do not wait for it.
MAX_WAITS = 10
#: Calls may join a shared profile until MAX_SHARED_CPU_S seconds have passed and the process has used as much CPU time, but at
#: most for MAX_SHARED_S seconds, and at most IDLE_S seconds after the last call, because an open profile takes more and more
#: memory. A process that gets little CPU time has longer profiles, because no other profile can begin while one is collected.
MAX_SHARED_CPU_S, MAX_SHARED_S, IDLE_S = 2.0, 10.0, 1.0
#: A call that joined a profile and still runs this many seconds after the profile should have closed (``closes_at``) loses its
#: part, so that the parts of earlier calls are not delayed further.
LONG_S = 10.0


class Profile:
    """One profile by the tracer, from its start until its bytes are collected. Its calls are numbered from 0."""

    def __init__(self, thread: int) -> None:
        self.thread = thread  # the thread that makes the calls
        self.begun_calls = 0  # number of calls that have begun
        self.wanted_calls = 0  # number of calls whose part of the profile is wanted
        self.closing = threading.Event()  # set when no further call may join the profile
        self.problem = ""  # why there is no profile
        self.failed_waits = 0  # number of steps that waited for the collection without success
        self.started_at = self.idle_since = perf_counter()  # idle_since: when the last call ended
        self._cpu_at_start = process_time()
        self._session: Any = None
        self._folder = f"ram://tftracer/{uuid.uuid4().hex}"  # TensorFlow's file system in memory
        self._collected = threading.Event()
        self.size = 0  # bytes of the collected profile; 0 until it is collected
        self._raw = b""
        self._cut_lock = threading.Lock()
        #: Number of a call -> its part of the profile, until the part is fetched; None: the profile was not cut into parts yet.
        self._steps: dict[int, bytes] | None = None
        self._marker: Any = None

    def start(self) -> None:
        """Start recording. Raises TensorFlow's error if another profile is being recorded."""
        new_session = bindings().ProfilerSession
        self._session = new_session()
        try:
            self._session.start(self._folder, OPTIONS)
        except (TypeError, ValueError):  # these bindings refuse a Level
            self._session = new_session()
            self._session.start(self._folder, {name: int(level) for name, level in OPTIONS.items()})

    def begin_step(self) -> int:
        """Mark the beginning of a call, and return its number."""
        with contextlib.suppress(Exception):  # without a marker, the step is found by the function that it calls
            self._marker = importlib.import_module("tensorflow.python.profiler.trace").Trace(STEP_MARKER)
            self._marker.__enter__()
        self.begun_calls += 1
        return self.begun_calls - 1

    def end_step(self) -> None:
        """Mark the end of the call. Runs on the thread that ran the step."""
        marker, self._marker = self._marker, None
        self.idle_since = perf_counter()
        if marker is not None:
            with contextlib.suppress(Exception):
                marker.__exit__(None, None, None)

    def closes_at(self) -> float:
        """Return when the profile closes if no further call joins it, in seconds (perf_counter)."""
        return min(self.started_at + MAX_SHARED_S, self.idle_since + IDLE_S)

    def used_share(self) -> float:
        """Return the share of this profile's time limit that is used up; from 1 on, no further call joins it."""
        passed_s = perf_counter() - self.started_at
        return max(passed_s / MAX_SHARED_S, min(passed_s, process_time() - self._cpu_at_start) / MAX_SHARED_CPU_S)

    def collect(self) -> None:
        """Stop recording and fetch what was recorded. Runs on a separate thread; never raises."""
        try:
            self._session.export_to_tb()
            self._raw = self._read()
            self.size = len(self._raw)
        except BaseException as error:
            self.problem = self.problem or f"TensorFlow's profiler failed: {str(error) or type(error).__name__}"
        finally:
            self._session = None
            self._collected.set()

    def _read(self) -> bytes:
        gfile = importlib.import_module("tensorflow").io.gfile
        try:
            files = [name for name in gfile.glob(f"{self._folder}/plugins/profile/*/*") if name.endswith(".xplane.pb")]
            if not files:
                self.problem = "TensorFlow's profiler recorded nothing."
                return b""
            with gfile.GFile(files[0], "rb") as file:
                return bytes(file.read())
        finally:
            with contextlib.suppress(Exception):
                gfile.rmtree(self._folder)

    def step(self, number: int, timeout_s: float) -> bytes:
        """Return the serialized XSpace of one call; ``b""`` if there is none (``problem`` says why), or if it was fetched before.

        Waits while further calls may join the profile (a limited time), then at most ``timeout_s`` until it is collected.
        """
        self.closing.wait(MAX_SHARED_S + LONG_S + timeout_s)
        self._wait(timeout_s)
        with self._cut_lock:
            if self._steps is None and self._raw:
                self._steps = {index: raw for index, (_, raw) in enumerate(steps(self._raw))}
                self._raw = b""
            return (self._steps or {}).pop(number, b"")

    def _wait(self, timeout_s: float) -> None:
        """Wait until the profile is collected: at most ``timeout_s``, and at most END_S after the end of the script."""
        until, has_ended = perf_counter() + timeout_s, False
        while not self._collected.wait(max(0.0, min(0.5, until - perf_counter()))) and perf_counter() < until:
            if not has_ended and not threading.main_thread().is_alive():
                has_ended, until = True, min(until, perf_counter() + END_S)
        if has_ended and not self._collected.is_set() and not self.problem:
            self.problem = f"TensorFlow's profiler did not hand the profile out within {END_S:.0f} s of the end of the script."
            log.warning("tftracer: a traced step is lost: %s", self.problem)

    def discard(self, why: str) -> None:
        """Stop recording and discard the profile, because no call needs it any more."""
        self.problem = why
        self.closing.set()
        with contextlib.suppress(Exception):
            self._session.stop()
        self._session = None
        self._collected.set()

    def is_collected(self, timeout_s: float = 0.0) -> bool:
        return self._collected.wait(timeout_s)


class Profiler:
    """The process's profiler. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: Profile | None = None
        self.is_recording = False  # whether a call is being profiled
        self.last_refusal = ""  # why ``begin`` returned None the last time
        self.background = BackgroundThread("tftracer-profile")

    def wait(self, timeout_s: float) -> bool:
        """Wait until the tracer's last profile is collected, and return whether it is. The script's own profiles do not matter.

        If the profile waits for further calls, close it first. Do not wait if a call is still being profiled: that call may
        itself wait for this thread.
        """
        profile = self._current
        if profile is None or profile.is_collected():
            return True
        with self._lock:
            if self.is_recording or profile.failed_waits >= MAX_WAITS:
                return False
            profile.closing.set()
        if profile.is_collected(timeout_s):
            return True
        profile.failed_waits += timeout_s > 0
        return False

    def begin(self) -> Profile | None:
        """Start a profile. Return None if the profiler is in use or fails; ``last_refusal`` says why."""
        with self._lock:
            if self._current is not None and not self._current.is_collected():
                self.last_refusal = "the previous profile is still being collected"
                return None
            self._current = None
            profile = Profile(threading.get_ident())
            try:
                profile.start()
            except Exception as error:  # AlreadyExistsError: the script, TensorBoard's callback or a profiler server is profiling
                is_in_use = type(error).__name__ == "AlreadyExistsError"
                why = "the script, or another tool, is profiling this process" if is_in_use else "TensorFlow's profiler failed"
                self.last_refusal = f"{why} ({error})"
                return None
            self._current, self.is_recording = profile, True
            return profile

    def resume(self) -> Profile | None:
        """Let this thread's next call join the open profile.

        Return the profile; None if no profile waits for a call of this thread.
        """
        with self._lock:
            profile = self._current
            if profile is None or self.is_recording or profile.closing.is_set() or profile.thread != threading.get_ident():
                return None
            self.is_recording = True
            return profile

    def undo_resume(self) -> None:
        """Undo ``resume``: the call is not to be profiled."""
        with self._lock:
            self.is_recording = False

    def finish(self, profile: Profile, next_joins: bool = False) -> bool:
        """End a call whose part of the profile is wanted. Return False if the profile was closed meanwhile.

        ``next_joins``: whether the next call may use the same profile.
        """
        with self._lock:
            is_first, profile.wanted_calls = not profile.wanted_calls, profile.wanted_calls + 1
        return self._end(profile, next_joins, (lambda: self._collect(profile)) if is_first else None)

    def abandon(self, profile: Profile, why: str, next_joins: bool = False) -> None:
        """End a call whose part of the profile is not wanted."""
        self._end(profile, next_joins, None if profile.wanted_calls else lambda: profile.discard(why))

    def _end(self, profile: Profile, next_joins: bool, then: Callable[[], None] | None) -> bool:
        """End a call. ``then`` runs on another thread, unless the profile was closed meanwhile."""
        profile.end_step()
        with self._lock:
            self.is_recording = False
            if profile.closing.is_set():
                profile.problem = profile.problem or "the script started its own, or the step took too long"
                return False
            if not (next_joins and profile.wanted_calls):
                profile.closing.set()
        if then is not None:
            self.background.submit(then)
        return True

    def _collect(self, profile: Profile) -> None:
        """Wait until no further call can join the profile, and collect it."""
        try:
            while not profile.closing.wait(max(0.0, profile.closes_at() - perf_counter()) or IDLE_S):
                with self._lock:
                    late_s = perf_counter() - profile.closes_at()
                    if late_s >= (LONG_S if self.is_recording else 0):
                        profile.closing.set()
        finally:
            profile.closing.set()
            profile.collect()

    def yield_to_script(self) -> None:
        """End the tracer's profile before the script starts its own. Calls that have ended keep their parts; a running call loses
        its part."""
        with self._lock:
            profile = self._current
            if profile is None or profile.is_collected():
                return
            if self.is_recording and not profile.wanted_calls:
                profile.discard("the script started its own profiler during the step")
                return
            profile.closing.set()
        profile.is_collected(YIELD_S)


def bindings() -> Any:
    """Return TensorFlow's module with ``ProfilerSession``; its name differs between versions."""
    bindings = importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler")
    if hasattr(bindings, "ProfilerSession"):
        return bindings
    return importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler_plugin")


class YieldingBindings:
    """Replaces the module from which ``profiler_v2`` reads ``ProfilerSession``. Each such read ends the tracer's profile."""

    def __init__(self, bindings: Any) -> None:
        self._bindings = bindings
        self.profilers: list[Profiler] = []

    def __getattr__(self, name: str) -> Any:
        if name == "ProfilerSession":
            for profiler in list(self.profilers):
                with contextlib.suppress(Exception):
                    profiler.yield_to_script()
        return getattr(self._bindings, name)


def install(profiler: Profiler) -> Callable[[], None]:
    """End the tracer's profile when the script starts its own (``tf.profiler.experimental.start``, TensorBoard's callback).

    Return a function that undoes this.
    """
    api: Any = importlib.import_module("tensorflow.python.profiler.profiler_v2")
    if not isinstance(api._pywrap_profiler, YieldingBindings):
        api._pywrap_profiler = YieldingBindings(api._pywrap_profiler)
    profilers = api._pywrap_profiler.profilers
    profilers.append(profiler)
    profiler.background.start()

    def uninstall() -> None:
        with contextlib.suppress(ValueError):
            profilers.remove(profiler)
        profiler.background.stop()

    return uninstall
