"""Steps of eager loops: a step ends when an optimizer applies gradients outside of a compiled function.

A step begins when the previous step on the thread, of any kind, ends. A loop is identified by the lines that apply gradients in
each of its turns: usually one, two in a GAN. Their number is known when the first line is reached again: no step is recorded
before. The wrapped methods are those of the optimizers of Keras 2 and 3 and of ``tf.compat.v1``. Code without an optimizer has
no steps.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tftracer.capture.after_import import after_import
from tftracer.capture.background import Background
from tftracer.capture.functions.calls import FunctionCalls, NamedStep
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames
from tftracer.slow.cause.frame_names import is_library

#: The optimizer method that every way of applying gradients calls: (module, class, method).
_OWNERS = [
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer", "apply"),  # Keras 3
    *[
        (f"{package}.optimizers.{module}", owner, "apply_gradients")  # Keras 2, the Keras of TensorFlow 2.12, and tf_keras
        for package in ("keras.src", "keras", "tf_keras.src")
        for module, owner in (("optimizer", "_BaseOptimizer"), ("legacy.optimizer_v2", "OptimizerV2"))
    ],
    ("tensorflow.python.training.optimizer", "Optimizer", "apply_gradients"),
]
_MAX_FRAMES = 12  # from an optimizer to the script's code
MAX_LOOPS, MAX_CODES = 1000, 4096
#: A trace is given up after LIMIT_S seconds, or after LIMIT_TIMES the previous step's length if that is more: its loop has ended.
LIMIT_S, LIMIT_TIMES = 10.0, 10


class Place(NamedTuple):
    """Where gradients are applied."""

    file: str
    line: int
    optimizer: str  # its class


#: The calls in one turn of a loop: each call's place and the id of its optimizer, because two loops may share their lines.
Turn = tuple[tuple[Place, int], ...]


class EagerLoop(NamedStep):
    """An eager loop: each of its turns is a step."""

    origin = "eager code"

    def __init__(self, turn: tuple[Place, ...]) -> None:
        optimizers = ", ".join(dict.fromkeys(place.optimizer for place in turn))
        super().__init__(f"loop at {Path(turn[0].file).name}:{turn[0].line} ({optimizers})")


class _ThreadLoop:
    """What is known of the eager loops of one thread."""

    def __init__(self, began_ns: int) -> None:
        self.is_applying = False
        self.began_ns = began_ns  # when the step under way began
        self.turn: Turn = ()  # the calls in that step that have ended
        self.ended_ns = 0  # when the last of these calls ended
        self.steps = 0
        self.pace: dict[EagerLoop, tuple[int, int]] = {}  # (number of its last step, number of steps between its last two)
        self.tracing: tuple[EagerLoop, Any] | None = None  # the expected loop and the trace of the step under way
        self.traced = threading.Event()  # set when the traced step has ended


class EagerSteps:
    """Records the steps of eager loops. Runs on the training threads; another thread gives up traces of loops that have ended."""

    def __init__(self, calls: FunctionCalls) -> None:
        """``calls``: the calls of compiled functions, which must be watched already."""
        self._calls = calls
        self._began_ns = perf_counter_ns()
        self._local = threading.local()
        self._loops: dict[tuple[Place, ...], EagerLoop] = {}
        self._loop_of_turn: dict[Turn, EagerLoop] = {}  # loops that have completed a turn
        self._library_codes: dict[CodeType, bool] = {}
        self._traced: set[_ThreadLoop] = set()  # threads whose current step is being traced
        self._lock = threading.Lock()
        self._background = Background("tftracer-eager")
        self._waiting: list[Callable[[], None]] = []  # each cancels an action that waits for an import

    def watch(self) -> None:
        self._waiting = [
            after_import(module, partial(self._calls.run_safely, self._wrap, module, owner, method))
            for module, owner, method in _OWNERS
        ]

    def stop(self) -> None:
        for cancel in self._waiting:
            cancel()
        for here in list(self._traced):
            here.traced.set()
            if here.tracing is not None:
                self._calls.run_safely(self._give_up, here, here.tracing[1])
        self._background.stop()

    def _wrap(self, module: str, name: str, method: str) -> None:
        owner = getattr(sys.modules.get(module), name, None)
        if isinstance(owner, type) and hasattr(owner, method):
            self._calls.wrap(owner, method, self.wrap_apply(getattr(owner, method)))
            self._background.start()

    def wrap_apply(self, original: Callable[..., Any]) -> Callable[..., Any]:
        calls, is_eager, thread_loop = self._calls, self._calls.is_eager, self._thread_loop

        @hide_in_tracebacks
        def apply(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            here = None if calls.is_within_step_or_off() or not is_eager() else calls.run_safely(thread_loop)
            if here is not None and here.is_applying:  # one optimizer calls another
                here = None
            try:
                if here is None:
                    return original(optimizer, *args, **kwargs)
                here.is_applying = True
                result = original(optimizer, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            finally:
                if here is not None:
                    here.is_applying = False
            calls.run_safely(self._record_apply, here, optimizer, perf_counter_ns(), sys._getframe(1))
            return result

        return apply

    def _thread_loop(self) -> _ThreadLoop:
        loop = getattr(self._local, "loop", None)
        if loop is None:
            loop = self._local.loop = _ThreadLoop(self._began_ns)
        return loop

    def _record_apply(self, here: _ThreadLoop, optimizer: Any, end_ns: int, frame: FrameType) -> None:
        call = self._place(frame, optimizer), id(optimizer)
        if call in here.turn:  # the turn ended with the previous call
            self._end_step(here, self._new_loop(here.turn), here.ended_ns)
        here.turn += (call,)
        here.ended_ns = end_ns
        loop = self._loop_of_turn.get(here.turn)
        if loop is not None:
            before_ns = here.began_ns
            began_ns = self._end_step(here, loop, end_ns)
            # A process has one profiler: if every step is traced, the compiled functions' own steps use it.
            calls_functions = began_ns != before_ns
            if self._calls.may_be_traced and not (calls_functions and self._calls.traces_all):
                self._trace_next(here, (end_ns - began_ns) * 1e-9)

    def _new_loop(self, turn: Turn) -> EagerLoop:
        """Return the loop of a first completed turn. Loops at the same places with other optimizers are the same run."""
        for table in (self._loops, self._loop_of_turn):
            if len(table) >= MAX_LOOPS:
                table.clear()
        places = tuple(place for place, _ in turn)
        loop = self._loop_of_turn[turn] = self._loops.setdefault(places, EagerLoop(places))
        return loop

    def _end_step(self, here: _ThreadLoop, loop: EagerLoop, end_ns: int) -> int:
        """Record the end of the step and return when it began."""
        thread = threading.get_ident()
        # ``under_way`` has the negative end of the thread's last step: if a compiled function ended one, this step begins there.
        last_ns = -self._calls.under_way.get(thread, 0)
        start_ns = last_ns if here.began_ns < last_ns <= end_ns else here.began_ns
        traced = self._end_trace(here, loop, end_ns)
        self._calls.under_way[thread] = -end_ns
        self._calls.record(loop, None, start_ns, end_ns, thread, traced)
        here.began_ns, here.turn, here.steps = end_ns, (), here.steps + 1
        if len(here.pace) >= MAX_LOOPS:
            here.pace.clear()
        here.pace[loop] = here.steps, here.steps - here.pace.get(loop, (here.steps - 1, 1))[0]
        return start_ns

    def _trace_next(self, here: _ThreadLoop, last_s: float) -> None:
        """Trace the step that has just begun, if a trace is requested. ``last_s``: the length of the previous step.

        Several loops may alternate on a thread, such as two updates of a critic for each update of its generator. So the next
        step of each loop is expected at that loop's own pace.
        """
        due = [loop for loop, (number, pace) in here.pace.items() if number + pace == here.steps + 1]
        begun_of = ((loop, self._calls.begin_step(loop)[1]) for loop in due)
        loop, begun = next((each for each in begun_of if each[1] is not None), (None, None))
        if loop is None:
            return
        here.tracing, here.traced = (loop, begun), threading.Event()
        self._traced.add(here)
        wait = partial(here.traced.wait, max(LIMIT_S, LIMIT_TIMES * last_s))
        self._background.submit(lambda: wait() or self._calls.run_safely(self._give_up, here, begun))

    def _end_trace(self, here: _ThreadLoop, loop: EagerLoop, end_ns: int) -> Any:
        with self._lock:
            tracing, here.tracing = here.tracing, None
            self._traced.discard(here)
        if tracing is None:
            return None
        here.traced.set()
        return self._calls.end_step(tracing[1], None, tracing[0] is loop, end_ns)

    def _give_up(self, here: _ThreadLoop, begun: Any) -> None:
        with self._lock:
            if here.tracing is None or here.tracing[1] is not begun:
                return
            here.tracing = None
            self._traced.discard(here)
        self._calls.end_step(begun, None, False, perf_counter_ns())

    def _place(self, frame: FrameType, optimizer: Any) -> Place:
        """Return the line of the script that applies gradients; without one, the optimizer's caller."""
        caller, above = frame, frame
        for _ in range(_MAX_FRAMES):
            if not self._is_library_code(above.f_code):
                caller = above
                break
            if above.f_back is None:
                break
            above = above.f_back
        return Place(caller.f_code.co_filename, caller.f_lineno, type(optimizer).__name__)

    def _is_library_code(self, code: CodeType) -> bool:
        known = self._library_codes.get(code)
        if known is None:
            if len(self._library_codes) >= MAX_CODES:
                self._library_codes.clear()
            known = self._library_codes[code] = is_library(code.co_filename)
        return known
