"""Find the line of code that sampled stacks spent their time at. Pure functions."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Literal, NamedTuple

from tftracer.slow.cause.frame_names import WRAPPERS, is_callback, is_standard_library, is_tracers
from tftracer.slow.watch.stack_samples import PYTHON_FUNCTIONS
from tftracer.slow.watch_results import FoldedStack, Frame

#: A line is named when it, with what it calls, takes this share of the time.
HALF = 0.5
#: The file where each call of a compiled function (tf.function) arrives in TensorFlow.
COMPILED_FUNCTIONS = "tensorflow/python/eager/polymorphic_function/polymorphic_function.py"
GENERATORS = "tensorflow/python/data/ops/from_generator_op.py"
#: Python's modules in which a thread waits for others.
OF_THREADS = (f"{os.sep}threading.py", f"{os.sep}queue.py")
#: A loop waits for the next element of a dataset in this file.
ITERATORS = "tensorflow/python/data/ops/iterator_ops.py"
#: Functions of the tracer's wrappers (capture/loops): one for checkpoints, evaluations and the tracing of functions, one for
#: waits for input.
PHASE, INPUT_WAIT = "phase", "next_element"
#: Parts of a function that have a frame of their own.
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
LAMBDA = "<lambda>"
#: Keras's methods that use a model without training it.
EVALUATIONS = ("evaluate", "predict")
FIT = "fit"
#: The function that runs the loop of Estimator's ``train`` once the model is built.
ESTIMATORS, ESTIMATOR_LOOP = "estimator/estimator.py", "_train_with_estimator_spec"
#: Functions that Keras's ``fit`` calls only between two epochs: to replace the iterator and reset the metrics.
EPOCH_TURNS = ("enumerate_epochs", "enumerate_epoch", "_enumerate_iterator", "reset_metrics", "_get_metrics_result_or_logs")
TENSORFLOW = ("/tensorflow/", "/keras/", "/tf_keras/", "/tftracer/")
#: The innermost frames of a step that runs: (file, function).
SESSION_STEP = ("tensorflow/python/client/session.py", "_call_tf_sessionrun")
EAGER_STEP = ("tensorflow/python/eager/execute.py", "quick_execute")  # a compiled function, or a single op
#: The innermost frames where TensorFlow makes arrays or tensors of the Python values that a step is given: (file, function).
CONVERSIONS = (
    ("tensorflow/python/client/session.py", "_run"),
    ("tensorflow/python/framework/constant_op.py", "convert_to_eager_tensor"),
)


class Line(NamedTuple):
    frame: Frame | None  # the innermost line of the user's, else the deepest frame that most stacks share
    share: float  # of the seconds


def shared_line(stacks: Iterable[FoldedStack], allow_library: bool = False, least: float = HALF) -> Line:
    """Return the deepest function that at least the share ``least`` of the seconds is in, at the line with the most of them.

    If the time is spread over three helpers that one line calls, that line is the result. ``allow_library``: name a line of the
    library that runs the loop (``below_loop``) where no line of the script is called by it.
    """
    inner = list(stacks)
    whole = sum(stack.seconds for stack in inner)
    shared: list[Frame] = []
    share = 0.0
    while whole > 0:
        functions: Counter[tuple[str, str]] = Counter()
        for stack in inner:
            if len(stack.frames) > len(shared):
                functions[_function(stack.frames[len(shared)])] += stack.seconds  # type: ignore[assignment]
        function, seconds = functions.most_common(1)[0] if functions else (None, 0.0)
        if seconds < least * whole:
            break
        inner = [stack for stack in inner if len(stack.frames) > len(shared) and _function(stack.frames[len(shared)]) == function]
        lines: Counter[Frame] = Counter()
        for stack in inner:
            lines[stack.frames[len(shared)]] += stack.seconds  # type: ignore[assignment]
        shared.append(lines.most_common(1)[0][0])
        share = seconds / whole
    if not shared:
        return Line(None, 0.0)
    users = next((position for position in range(len(shared) - 1, -1, -1) if not shared[position].is_library), None)
    if users is None and _runs_loop(shared[0], (FIT, *EVALUATIONS)):
        called = (frame for frame in reversed(shared[1:]) if allow_library and not frame.file.endswith(WRAPPERS))
        return Line(next(called, None), min(1.0, share))
    return Line(shared[-1] if users is None else _in_its_function(shared[: users + 1]), min(1.0, share))


def _in_its_function(frames: list[Frame]) -> Frame:
    """Return the innermost frame. A comprehension's gets the name of the function around it, and so does that of a lambda which
    a function of its file calls, perhaps through C code (``sorted``)."""
    line = frames[-1]
    if line.function == LAMBDA:
        caller = frames[-2] if len(frames) > 1 else line
        return line._replace(function=caller.function) if caller.file == line.file else line
    if line.function not in COMPREHENSIONS:
        return line
    around = (frame for frame in reversed(frames) if frame.file == line.file and frame.function not in COMPREHENSIONS)
    return line._replace(function=next(around, line).function)


def _function(frame: Frame) -> tuple[str, str]:
    return frame.file, frame.function


class Owner(NamedTuple):
    """A hook or a Keras callback."""

    kind: Literal["hook", "callback"]
    name: str  # its class
    frame: Frame  # the line of the user's in it with the most time, else its method


def owner_line(stacks: Iterable[FoldedStack], whole_s: float, min_share: float = HALF) -> Owner | None:
    """Return the hook or callback whose methods take at least ``min_share`` of ``whole_s``; None if there is none."""
    seconds: Counter[str] = Counter()
    of_owner: dict[str, list[FoldedStack]] = {}
    for stack in stacks:
        owner = next((frame.owner for frame in stack.frames if frame.owner), "")
        if owner:
            seconds[owner] += stack.seconds  # type: ignore[assignment]
            of_owner.setdefault(owner, []).append(stack)
    if not seconds or whole_s <= 0:
        return None
    owner, length = seconds.most_common(1)[0]
    if length < min_share * whole_s:
        return None
    cut = [stack._replace(frames=stack.frames[_first_owned(stack) :]) for stack in of_owner[owner]]
    method = cut[0].frames[0]
    line = shared_line(cut).frame
    frame = line if line and not line.is_library else method
    return Owner("callback" if is_callback(method) else "hook", owner, frame)


def _first_owned(stack: FoldedStack) -> int:
    return next(position for position, frame in enumerate(stack.frames) if frame.owner)


def called_by_tensorflow(stack: FoldedStack) -> FoldedStack | None:
    """Return the part of a stack below TensorFlow's call of a Python function; None if there is none.

    A generator that was seen only once does not count: it works ahead for later steps.
    """
    if stack.samples == 1 and is_generator(stack):
        return None
    for position in range(len(stack.frames) - 1, -1, -1):
        if stack.frames[position].file.endswith(PYTHON_FUNCTIONS):
            inner = stack.frames[position + 1 :]
            users = any(not frame.is_library for frame in inner)
            return stack._replace(frames=inner) if users else None
    return None


def functions_called(stacks: Sequence[FoldedStack], too_long: float) -> list[FoldedStack]:
    """Return what Python functions that TensorFlow calls did, on the busiest thread. A generator of tf.data works ahead for later
    steps: it is not named where another function ran for as long as the step was late."""
    return functions_of_graphs(stacks, too_long) or functions_of_busiest_thread(stacks)


def functions_of_graphs(stacks: Sequence[FoldedStack], too_long: float) -> list[FoldedStack]:
    """Return the same without generators; [] if it took less than half of the excess."""
    called = functions_of_busiest_thread(stack for stack in stacks if not is_generator(stack))
    return called if 2 * sum(stack.seconds for stack in called) >= too_long else []


def functions_of_busiest_thread(stacks: Iterable[FoldedStack]) -> list[FoldedStack]:
    """Return what Python functions that TensorFlow calls did, on the thread that spent most time in them."""
    called = [cut for stack in stacks if (cut := called_by_tensorflow(stack)) is not None]
    seconds: dict[str, float] = {}
    for stack in called:
        seconds[stack.thread] = seconds.get(stack.thread, 0.0) + stack.seconds
    busiest = max(seconds, key=lambda name: seconds[name], default="")
    return [stack for stack in called if stack.thread == busiest]


def caller_of_function(stack: FoldedStack) -> FoldedStack | None:
    """Cut a stack where it calls the outermost compiled function; None if it calls none."""
    for position, frame in enumerate(stack.frames):
        if frame.file.endswith(COMPILED_FUNCTIONS):
            return stack._replace(frames=stack.frames[:position]) if position else None
    return None


def caller_of_phase(stack: FoldedStack) -> FoldedStack | None:
    """Cut a stack where it calls the outermost checkpoint or evaluation; None if it calls none."""
    at = next((position for position, frame in enumerate(stack.frames) if _is_wrapper(frame, PHASE)), 0)
    return stack._replace(frames=stack.frames[:at]) if at else None


def caller_of_evaluation(stack: FoldedStack) -> FoldedStack | None:
    """Cut a stack where it calls Keras's ``evaluate`` or ``predict``; None if it calls neither."""
    for position, frame in enumerate(stack.frames):
        if frame.function in EVALUATIONS and _is_of_keras(frame):
            return stack._replace(frames=stack.frames[:position])
        # While ``evaluate`` frees its objects, its frame is gone. ``fit`` calls no other timed function than evaluations.
        before = stack.frames[position - 1] if position else None
        if _is_wrapper(frame, PHASE) and before and before.function == FIT and _is_of_keras(before):
            return stack._replace(frames=stack.frames[:position])
    return None


def below_loop(stack: FoldedStack, methods: Container[str]) -> FoldedStack:
    """Remove the frames that call the library's training loop: all samples have them, so they explain nothing.

    ``methods``: the methods of Keras that may run the loop.
    """
    at = next((position for position, frame in enumerate(stack.frames) if _runs_loop(frame, methods)), 0)
    return stack._replace(frames=stack.frames[at:])


def is_loops_own(stack: FoldedStack) -> bool:
    """Whether a stack that begins at a library's training loop has no line of the script in it."""
    is_loop = bool(stack.frames) and _runs_loop(stack.frames[0], (FIT, *EVALUATIONS))
    return is_loop and all(frame.is_library for frame in stack.frames)


def _runs_loop(frame: Frame, methods: Container[str]) -> bool:
    if frame.function == ESTIMATOR_LOOP:
        return frame.file.endswith(ESTIMATORS)
    return frame.function in methods and _is_of_keras(frame)


def is_epoch_turn(stack: FoldedStack) -> bool:
    inner = itertools.dropwhile(lambda frame: frame.function != FIT or not _is_of_keras(frame), stack.frames)
    return any(frame.function in EPOCH_TURNS and _is_of_keras(frame) for frame in inner)


def is_in_fit_itself(stack: FoldedStack) -> bool:
    """Whether Keras's ``fit`` is the innermost frame, as while it frees objects."""
    return bool(stack.frames) and stack.frames[-1].function == FIT and _is_of_keras(stack.frames[-1])


def _is_of_keras(frame: Frame) -> bool:
    return frame.is_library and "keras" in frame.file


def without_tracer(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Remove the stacks of the tracer's own work."""
    return tuple(stack for stack in stacks if not _is_in_tracer(stack.frames))


def _is_in_tracer(frames: tuple[Frame, ...]) -> bool:
    """Whether the innermost frame that is not of Python's library is the tracer's."""
    return is_tracers(next((frame.file for frame in reversed(frames) if not is_standard_library(frame.file)), ""))


def without_steps(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Remove the stacks of steps: of a time in which no step ran, they are samples with wrong times."""
    return tuple(stack for stack in stacks if not (is_in_step(stack) and not _is_in_op(stack)))


def _is_in_op(stack: FoldedStack) -> bool:
    """Whether an eager op runs at the end of the stack, and no session or compiled function."""
    is_function = any(frame.file.endswith(COMPILED_FUNCTIONS) for frame in stack.frames)
    return not is_function and _is_one_of(stack.frames[-1], (EAGER_STEP,))


def is_in_step(stack: FoldedStack) -> bool:
    """Whether TensorFlow runs a step at the end of the stack."""
    innermost = stack.frames[-1] if stack.frames else None
    return innermost is not None and _is_one_of(innermost, (SESSION_STEP, EAGER_STEP))


def _is_one_of(frame: Frame, places: Iterable[tuple[str, str]]) -> bool:
    return any(frame.file.endswith(file) and frame.function == function for file, function in places)


def is_in_phase(stack: FoldedStack) -> bool:
    """Whether the stack is in a checkpoint, an evaluation, a function's tracing or a wait for input: clocks measure these."""
    return any(_is_wrapper(frame, PHASE, INPUT_WAIT) for frame in stack.frames)


def _is_wrapper(frame: Frame, *functions: str) -> bool:
    return frame.function in functions and frame.file.endswith(WRAPPERS)


def is_generator(stack: FoldedStack) -> bool:
    """Whether the stack is in a Python generator that tf.data calls."""
    return any(frame.file.endswith(GENERATORS) for frame in stack.frames)


def waits_for_thread(stacks: Iterable[FoldedStack]) -> float:
    """Seconds in which a thread waited for another one of the process, at a queue, an event, a lock of ``threading``."""
    return sum(stack.seconds for stack in stacks if stack.frames and stack.frames[-1].file.endswith(OF_THREADS))


def waits_for_input(stacks: Iterable[FoldedStack]) -> float:
    """Return the seconds in which a thread waited for the next element of a dataset."""
    return sum(stack.seconds for stack in stacks if any(frame.file.endswith(ITERATORS) for frame in stack.frames))


def own_python(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Return the stacks in which the training thread ran Python within a step; in the others TensorFlow works.

    This is the code of an eager loop, a hook called before or after ``session.run`` with all that it calls, or the conversion of
    Python values that the step is given.
    """
    return tuple(stack for stack in stacks if stack.frames and not called_by_tensorflow(stack) and _is_own(stack.frames))


def _is_own(frames: tuple[Frame, ...]) -> bool:
    innermost = frames[-1]
    return _is_one_of(innermost, CONVERSIONS) or not _is_of_tensorflow(innermost) or any(frame.owner for frame in frames)


def _is_of_tensorflow(frame: Frame) -> bool:
    return frame.is_library and any(part in frame.file for part in TENSORFLOW)


def has_users_code(stacks: Iterable[FoldedStack]) -> bool:
    """Whether any stack has the user's code. A prompt or notebook that waits for input has none."""
    return any(not frame.is_library for stack in stacks for frame in stack.frames)
