"""One profile (XSpace) around one call, taken with TensorFlow's profiler without touching the disk.

A process has one profiler. The script's own use of it always wins: while it runs, ours does not start; when it starts, ours
has made way. A profile is started and ended on the training thread (0.1 to 0.5 ms); collecting it takes up to some hundred
milliseconds and happens on a thread of its own, which lets go of the GIL.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
import uuid
from collections.abc import Callable
from typing import Any

from tftracer.trace.decode.xplane import STEP_MARKER

log = logging.getLogger("tftracer")


class Level(int):
    """An option of the profiler. TensorFlow 2.20 and 2.21 take every int for a bool, and drop the option; this one is no bool."""

    def __bool__(self) -> bool:
        raise TypeError("a level has no truth value")


#: 3: all ops. At 2 TensorFlow leaves out those that it has found to be cheap.
OPTIONS = {"host_tracer_level": Level(3), "python_tracer_level": Level(0), "device_tracer_level": Level(1)}
#: How long the script's own profiler waits for ours to make way.
YIELD_S = 5.0


class Profile:
    """One profile of ours, from its start to its bytes."""

    def __init__(self) -> None:
        self._session: Any = None
        self._folder = f"ram://tftracer/{uuid.uuid4().hex}"  # TensorFlow's file system in memory
        self._collected = threading.Event()
        self._raw = b""
        self._marker: Any = None
        self.problem = ""  # why there is no profile

    def start(self) -> None:
        """Raises TensorFlow's error where another profile is being recorded."""
        new_session = bindings().ProfilerSession
        self._session = new_session()
        try:
            self._session.start(self._folder, OPTIONS)
        except (TypeError, ValueError):  # bindings that refuse such a level
            self._session = new_session()
            self._session.start(self._folder, {name: int(level) for name, level in OPTIONS.items()})
        with contextlib.suppress(Exception):  # without it the step is told by the function that is called
            self._marker = importlib.import_module("tensorflow.python.profiler.trace").Trace(STEP_MARKER)
            self._marker.__enter__()

    def end_step(self) -> None:
        """On the thread that ran the step: what comes now is no part of it."""
        marker, self._marker = self._marker, None
        if marker is not None:
            with contextlib.suppress(Exception):
                marker.__exit__(None, None, None)

    def collect(self) -> None:
        """Stop recording and fetch what was recorded. On a thread of its own; never raises."""
        try:
            self._session.export_to_tb()
            self._raw = self._read()
        except Exception as error:
            self.problem = self.problem or f"TensorFlow's profiler failed: {error}"
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

    def raw(self, timeout_s: float | None = None) -> bytes:
        """The serialized XSpace, waited for; ``b""`` where there is none (``problem`` says why) or it takes longer."""
        self._collected.wait(timeout_s)
        return self._raw

    @property
    def size(self) -> int:
        """Bytes that were collected so far."""
        return len(self._raw)

    def drop(self, why: str) -> None:
        """Nobody wants it any more: what it recorded is thrown away."""
        self.problem = why
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
        self.is_recording = False  # from start() to the end of the call that is profiled
        self._given_up: Profile | None = None  # it was waited for in vain: nobody waits for it again
        self.last_refusal = ""

    def wait(self, timeout_s: float) -> bool:
        """Whether a profile can begin, as far as ours go. Waits for one that is being collected.

        Not for one that is being recorded: the call that it is taken of may wait for the one that asks.
        """
        profile = self._current
        if profile is None or profile.is_collected():
            return True
        if self.is_recording or profile is self._given_up:
            return False
        if profile.is_collected(timeout_s):
            return True
        self._given_up = profile
        return False

    def begin(self) -> Profile | None:
        """A started profile, or None where one is under way already, ours or the script's; ``last_refusal`` says which."""
        with self._lock:
            if self._current is not None and not self._current.is_collected():
                self.last_refusal = "the profile before is still being collected"
                return None
            self._current = None
            profile = Profile()
            try:
                profile.start()
            except Exception as error:  # AlreadyExistsError: of the script, of TensorBoard's callback, of a profiler server
                others = type(error).__name__ == "AlreadyExistsError"
                why = (
                    "the script, or another tool, is profiling this process" if others else "TensorFlow's profiler did not start"
                )
                self.last_refusal = f"{why} ({error})"
                return None
            self._current, self.is_recording = profile, True
            return profile

    def finish(self, profile: Profile) -> bool:
        """The call is over: collect on another thread. False if the profile has made way for the script's."""
        return self._end(profile, profile.collect)

    def abandon(self, profile: Profile, why: str) -> None:
        """The call is over, and nobody wants its profile."""
        self._end(profile, lambda: profile.drop(why))

    def _end(self, profile: Profile, then: Callable[[], None]) -> bool:
        """``then`` runs on another thread, unless the profile has made way."""
        profile.end_step()
        with self._lock:
            self.is_recording = False
            if profile.is_collected():
                return False
        threading.Thread(target=then, name="tftracer-profile", daemon=True).start()
        return True

    def make_way(self) -> None:
        """The script is about to start its own profiler."""
        with self._lock:
            profile, is_recording = self._current, self.is_recording
            if profile is None or profile.is_collected():
                return
            if is_recording:
                profile.drop("the script started its own profiler during the step")
                return
        profile.is_collected(YIELD_S)


def bindings() -> Any:
    bindings = importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler")
    if hasattr(bindings, "ProfilerSession"):
        return bindings
    return importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler_plugin")


class YieldingBindings:
    """Stands for the module of bindings that ``profiler_v2`` starts sessions with: ours make way first."""

    def __init__(self, bindings: Any) -> None:
        self._bindings = bindings
        self.profilers: list[Profiler] = []

    def __getattr__(self, name: str) -> Any:
        if name == "ProfilerSession":
            for profiler in list(self.profilers):
                with contextlib.suppress(Exception):
                    profiler.make_way()
        return getattr(self._bindings, name)


def install(profiler: Profiler) -> Callable[[], None]:
    """Let the script's profiler win from now on: what ``tf.profiler.experimental.start`` and TensorBoard's callback call.

    Returns what ends that.
    """
    api: Any = importlib.import_module("tensorflow.python.profiler.profiler_v2")
    if not isinstance(api._pywrap_profiler, YieldingBindings):
        api._pywrap_profiler = YieldingBindings(api._pywrap_profiler)
    profilers = api._pywrap_profiler.profilers
    profilers.append(profiler)

    def uninstall() -> None:
        with contextlib.suppress(ValueError):
            profilers.remove(profiler)

    return uninstall
