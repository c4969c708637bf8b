"""Steps of eager loops: a step ends when an optimizer applies gradients outside of a compiled function.

A step begins when the previous step on the thread, of any kind, ends. A loop is identified by the lines of the script that apply
gradients in each turn of the loop: usually one line, two in a GAN. All lines of a loop are known when its first line is reached
again, so no step is recorded before that. The wrapped methods are those of the optimizers of Keras 2 and 3 and of
``tf.compat.v1``. Code without an optimizer has no steps.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter_ns
from types import FrameType
from typing import Any, NamedTuple

from tftracer.capture.background import BackgroundThread
from tftracer.capture.functions.function_calls import FunctionCalls
from tftracer.capture.functions.function_titles import StepName
from tftracer.capture.tracebacks import hide_in_tracebacks, remove_our_frames
from tftracer.slow.cause.frame_names import is_library

#: Every way of applying gradients calls one of these methods of optimizers: (module, class, method).
_APPLY_METHODS = [
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer", "apply"),  # Keras 3
    *[
        (f"{package}.optimizers.{module}", owner, "apply_gradients")  # Keras 2, the Keras of TensorFlow 2.12, and tf_keras
        for package in ("keras.src", "keras", "tf_keras.src")
        for module, owner in (("optimizer", "_BaseOptimizer"), ("legacy.optimizer_v2", "OptimizerV2"))
    ],
    ("tensorflow.python.training.optimizer", "Optimizer", "apply_gradients"),
]
_MAX_FRAMES = 12  # maximum number of frames between an optimizer and the script's code
MAX_LOOPS = 1000  # maximum size of the tables of loops; a full table is emptied
#: A trace is given up if its step takes longer than LIMIT_S seconds and longer than LIMIT_TIMES times the previous step: then the
#: loop has probably ended.
LIMIT_S, LIMIT_TIMES = 10.0, 10


class Place(NamedTuple):
    """Where gradients are applied."""

    file: str
    line: int
    optimizer: str  # name of the optimizer's class


#: The calls in one turn of a loop: the place of each call, and the id of its optimizer, because two loops may have the same
#: lines.
Turn = tuple[tuple[Place, int], ...]


class EagerLoop(StepName):
    """An eager loop: each of its turns is a step."""

    origin = "eager code"

    def __init__(self, turn: tuple[Place, ...]) -> None:
        optimizers = ", ".join(dict.fromkeys(place.optimizer for place in turn))
        super().__init__(f"loop at {Path(turn[0].file).name}:{turn[0].line} ({optimizers})")


class _LoopState:
    """What is known of the eager loops of one thread."""

    def __init__(self, began_ns: int) -> None:
        self.is_applying = False
        self.began_ns = began_ns  # when the current step began
        self.turn: Turn = ()  # the calls of the current step that have ended
        self.ended_ns = 0  # when the last call in ``turn`` ended
        self.steps = 0  # number of steps of eager loops that have ended on this thread
        #: Loop -> (number of its last step on this thread, by how many this exceeds the number of the loop's step before).
        self.pace: dict[EagerLoop, tuple[int, int]] = {}
        self.tracing: tuple[EagerLoop, Any] | None = None  # (probable loop, trace) of the current step
        self.trace_ended = threading.Event()  # set when the traced step has ended


class EagerSteps:
    """Records the steps of eager loops. Runs on the training threads; another thread gives up traces of loops that have ended."""

    def __init__(self, calls: FunctionCalls) -> None:
        """Requires that ``calls.watch()`` was called before."""
        self._calls = calls
        self._began_ns = perf_counter_ns()
        self._local = threading.local()
        self._loops: dict[tuple[Place, ...], EagerLoop] = {}
        self._loop_of_turn: dict[Turn, EagerLoop] = {}  # loops that have completed a turn
        self._being_traced: set[_LoopState] = set()  # threads whose current step is being traced
        self._lock = threading.Lock()
        self._background = BackgroundThread("tftracer-eager")

    def watch(self) -> None:
        for module, owner, method in _APPLY_METHODS:
            self._calls.wrap_when_imported(module, owner, method, self.wrap_apply)

    def stop(self) -> None:
        for state in list(self._being_traced):
            state.trace_ended.set()
            if state.tracing is not None:
                self._calls.run_safely(self._give_up, state, state.tracing[1])
        self._background.stop()

    def wrap_apply(self, original: Callable[..., Any]) -> Callable[..., Any]:
        calls, is_eager, loop_state = self._calls, self._calls.is_eager, self._loop_state
        self._background.start()

        @hide_in_tracebacks
        def apply(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            state = None if calls.is_within_step_or_off() or not is_eager() else calls.run_safely(loop_state)
            if state is not None and state.is_applying:  # within another wrapped call, which is the one that counts
                state = None
            try:
                if state is None:
                    return original(optimizer, *args, **kwargs)
                state.is_applying = True
                result = original(optimizer, *args, **kwargs)
            except BaseException as error:
                remove_our_frames(error)
                raise
            finally:
                if state is not None:
                    state.is_applying = False
            calls.run_safely(self._record_apply, state, optimizer, perf_counter_ns(), sys._getframe(1))
            return result

        return apply

    def _loop_state(self) -> _LoopState:
        state = getattr(self._local, "state", None)
        if state is None:
            state = self._local.state = _LoopState(self._began_ns)
        return state

    def _record_apply(self, state: _LoopState, optimizer: Any, end_ns: int, frame: FrameType) -> None:
        self._calls.thread_clocks.read_if_due(threading.get_ident(), end_ns)
        call = place_of(frame, optimizer), id(optimizer)
        if call in state.turn:  # the turn ended with the previous call
            self._end_step(state, self._new_loop(state.turn), state.ended_ns)
        state.turn += (call,)
        state.ended_ns = end_ns
        loop = self._loop_of_turn.get(state.turn)
        if loop is not None:
            assumed_began_ns = state.began_ns
            began_ns = self._end_step(state, loop, end_ns)
            # If a compiled function's step ended within this turn, the loop's step begins there (``_end_step``). A process has
            # one profiler: if all steps are to be traced, it traces that function's steps, so not those of the loop.
            calls_functions = began_ns != assumed_began_ns
            if self._calls.requests.slow_path and not (calls_functions and self._calls.requests.trace_all):
                self._trace_next(state, (end_ns - began_ns) * 1e-9)

    def _new_loop(self, turn: Turn) -> EagerLoop:
        """Return the loop of a new turn. Turns on the same lines share one loop, even if their optimizer objects differ."""
        for table in (self._loops, self._loop_of_turn):
            if len(table) >= MAX_LOOPS:
                table.clear()
        places = tuple(place for place, _ in turn)
        loop = self._loop_of_turn[turn] = self._loops.setdefault(places, EagerLoop(places))
        return loop

    def _end_step(self, state: _LoopState, loop: EagerLoop, end_ns: int) -> int:
        """Record the end of the step and return when it began."""
        thread = threading.get_ident()
        # Between steps, ``under_way`` is minus the end of the thread's last step. If that end lies within this step, this step
        # begins there.
        last_ns = -self._calls.under_way.get(thread, 0)
        start_ns = last_ns if state.began_ns < last_ns <= end_ns else state.began_ns
        traced = self._end_trace(state, loop, end_ns)
        self._calls.under_way[thread] = -end_ns
        self._calls.record(loop, None, start_ns, end_ns, thread, traced)
        state.began_ns, state.turn, state.steps = end_ns, (), state.steps + 1
        if len(state.pace) >= MAX_LOOPS:
            state.pace.clear()
        state.pace[loop] = state.steps, state.steps - state.pace.get(loop, (state.steps - 1, 1))[0]
        return start_ns

    def _trace_next(self, state: _LoopState, last_s: float) -> None:
        """Trace the step that has just begun, if a trace is requested. ``last_s``: how long the previous step took.

        Several loops may alternate on a thread, such as two updates of a critic for each update of its generator. So the
        distance between a loop's last two steps, in steps of the thread, tells when its next one is expected.
        """
        due = [loop for loop, (number, pace) in state.pace.items() if number + pace == state.steps + 1]
        traces = ((loop, self._calls.begin_step(loop)[1]) for loop in due)
        loop, begun = next((each for each in traces if each[1] is not None), (None, None))
        if loop is None:
            return
        state.tracing, state.trace_ended = (loop, begun), threading.Event()
        self._being_traced.add(state)
        wait = partial(state.trace_ended.wait, max(LIMIT_S, LIMIT_TIMES * last_s))
        self._background.submit(lambda: wait() or self._calls.run_safely(self._give_up, state, begun))

    def _end_trace(self, state: _LoopState, loop: EagerLoop, end_ns: int) -> Any:
        with self._lock:
            tracing, state.tracing = state.tracing, None
            self._being_traced.discard(state)
        if tracing is None:
            return None
        state.trace_ended.set()
        return self._calls.end_step(tracing[1], None, tracing[0] is loop, end_ns)

    def _give_up(self, state: _LoopState, begun: Any) -> None:
        with self._lock:
            if state.tracing is None or state.tracing[1] is not begun:
                return
            state.tracing = None
            self._being_traced.discard(state)
        self._calls.end_step(begun, None, False, perf_counter_ns())


_is_library_file = lru_cache(4096)(is_library)  # called for each frame between an optimizer and the script's code


def place_of(frame: FrameType, optimizer: Any) -> Place:
    """Return the line of the script that applies gradients; the line that calls the optimizer if no frame of the script is
    found."""
    caller, above = frame, frame
    for _ in range(_MAX_FRAMES):
        if not _is_library_file(above.f_code.co_filename):
            caller = above
            break
        if above.f_back is None:
            break
        above = above.f_back
    return Place(caller.f_code.co_filename, caller.f_lineno, type(optimizer).__name__)
