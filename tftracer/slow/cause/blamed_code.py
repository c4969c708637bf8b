"""Finds the line of code at which the time was spent, from sampled stacks. Pure functions."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Literal, NamedTuple

from tftracer.slow.cause.frame_names import WRAPPERS, is_callback, is_standard_library, is_tracers
from tftracer.slow.watch_results import FoldedStack, Frame

#: A line is named if it takes at least this share of the time, including what it calls.
HALF = 0.5
#: The file of TensorFlow that each call of a compiled function (tf.function) goes through.
COMPILED_FUNCTIONS = "tensorflow/python/eager/polymorphic_function/polymorphic_function.py"
#: TensorFlow calls Python functions (py_function, numpy_function, generators of tf.data) from this file.
PYTHON_FUNCTIONS = "tensorflow/python/ops/script_ops.py"
#: The file of TensorFlow that calls a script's Python generators (``Dataset.from_generator``).
GENERATORS = "tensorflow/python/data/ops/from_generator_op.py"
#: Python's modules in which a thread waits for other threads.
THREAD_MODULES = (f"{os.sep}threading.py", f"{os.sep}queue.py")
#: The file of TensorFlow in which a loop waits for the next element of a dataset.
ITERATORS = "tensorflow/python/data/ops/iterator_ops.py"
#: Names of the tracer's wrapper functions (capture/loops): for phases (checkpoints, evaluations, TensorFlow's tracing of
#: functions), and for waits for input.
PHASE, INPUT_WAIT = "phase", "next_element"
#: Names of the frames of comprehensions and generator expressions.
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
LAMBDA = "<lambda>"
#: Keras's methods that use a model without training it.
EVALUATIONS = ("evaluate", "predict")
FIT = "fit"
#: The file and the function that run the loop of Estimator's ``train`` after the model was built.
ESTIMATORS, ESTIMATOR_LOOP = "estimator/estimator.py", "_train_with_estimator_spec"
#: Functions that Keras's ``fit`` calls only between two epochs: to replace the iterator and reset the metrics.
EPOCH_TURNS = ("enumerate_epochs", "enumerate_epoch", "_enumerate_iterator", "reset_metrics", "_get_metrics_result_or_logs")
#: Parts of the paths of TensorFlow's, Keras's and the tracer's files.
TENSORFLOW = ("/tensorflow/", "/keras/", "/tf_keras/", "/tftracer/")
#: The innermost frames while a step is executed: (file, function).
SESSION_STEP = ("tensorflow/python/client/session.py", "_call_tf_sessionrun")
EAGER_STEP = ("tensorflow/python/eager/execute.py", "quick_execute")  # a compiled function, or a single op
#: A part of the names of TensorFlow's files whose functions execute single ops.
EAGER_OPS = "tensorflow/python/ops/gen_"
#: The innermost frames while TensorFlow converts Python values of a step to arrays or tensors: (file, function).
CONVERSIONS = (
    ("tensorflow/python/client/session.py", "_run"),
    ("tensorflow/python/framework/constant_op.py", "convert_to_eager_tensor"),
)


class Line(NamedTuple):
    frame: Frame | None  # the innermost line of the user's code, else the innermost frame that most stacks share; None: no frame
    share: float  # its share of the seconds


def shared_line(stacks: Iterable[FoldedStack], allow_library: bool = False, min_share: float = HALF) -> Line:
    """Return the innermost function in which at least the share ``min_share`` of the seconds was spent, at its line with the most
    seconds.

    If the time is spread over three functions that one line calls, that line is the result. ``allow_library``: if the library
    that runs the loop (``below_loop``) calls no line of the script, return a line of the library.
    """
    remaining = list(stacks)
    whole = sum(stack.seconds for stack in remaining)
    shared: list[Frame] = []
    share = 0.0
    while whole > 0:
        functions: Counter[tuple[str, str]] = Counter()
        for stack in remaining:
            if len(stack.frames) > len(shared):
                functions[_function(stack.frames[len(shared)])] += stack.seconds  # type: ignore[assignment]
        function, seconds = functions.most_common(1)[0] if functions else (None, 0.0)
        if seconds < min_share * whole:
            break
        depth = len(shared)
        remaining = [stack for stack in remaining if len(stack.frames) > depth and _function(stack.frames[depth]) == function]
        lines: Counter[Frame] = Counter()
        for stack in remaining:
            lines[stack.frames[depth]] += stack.seconds  # type: ignore[assignment]
        shared.append(lines.most_common(1)[0][0])
        share = seconds / whole
    if not shared:
        return Line(None, 0.0)
    user_position = next((position for position in range(len(shared) - 1, -1, -1) if not shared[position].is_library), None)
    if user_position is None and _runs_loop(shared[0], (FIT, *EVALUATIONS)):
        called = (frame for frame in reversed(shared[1:]) if allow_library and not frame.file.endswith(WRAPPERS))
        return Line(next(called, None), min(1.0, share))
    return Line(shared[-1] if user_position is None else _in_its_function(shared[: user_position + 1]), min(1.0, share))


def stacks_outside(stacks: Iterable[FoldedStack], line: Frame) -> list[FoldedStack]:
    """Return the stacks that do not have the function of a line."""
    return [stack for stack in stacks if _function(line) not in map(_function, stack.frames)]


def _in_its_function(frames: list[Frame]) -> Frame:
    """Return the innermost frame. The frame of a comprehension gets the name of the function that contains it.

    The frame of a lambda gets the name of its caller if that is in the same file, also if C code such as ``sorted`` is between
    the two.
    """
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


def line_of_script(stack: FoldedStack) -> Frame | None:
    """Return the innermost frame of a stack that is not in a library; None if there is none."""
    return next((frame for frame in reversed(stack.frames) if not frame.is_library), None)


def usual_lines(stacks: Iterable[FoldedStack], min_share: float) -> frozenset[Frame]:
    """Return the script's lines that have at least the share ``min_share`` of the seconds. ``stacks``: of usual turns."""
    seconds: dict[Frame | None, float] = {}
    for stack in stacks:
        line = line_of_script(stack)
        seconds[line] = seconds.get(line, 0.0) + stack.seconds
    whole_s = sum(seconds.values())
    return frozenset(line for line, length in seconds.items() if line and length >= min_share * whole_s)


class Owner(NamedTuple):
    """A hook or a Keras callback."""

    kind: Literal["hook", "callback"]
    name: str  # its class
    frame: Frame  # the line of the user's code in it with the most time, else its method


def owner_line(stacks: Iterable[FoldedStack], whole_s: float, min_share: float = HALF) -> Owner | None:
    """Return the hook or callback whose methods take at least ``min_share`` of ``whole_s`` seconds; None if there is none."""
    seconds: Counter[str] = Counter()
    by_owner: dict[str, list[FoldedStack]] = {}
    for stack in stacks:
        owner = next((frame.owner for frame in stack.frames if frame.owner), "")
        if owner:
            seconds[owner] += stack.seconds  # type: ignore[assignment]
            by_owner.setdefault(owner, []).append(stack)
    if not seconds or whole_s <= 0:
        return None
    owner, length = seconds.most_common(1)[0]
    if length < min_share * whole_s:
        return None
    own_stacks = [stack._replace(frames=stack.frames[_first_owned(stack) :]) for stack in by_owner[owner]]
    method = own_stacks[0].frames[0]
    line = shared_line(own_stacks).frame
    frame = line if line and not line.is_library else method
    return Owner("callback" if is_callback(method) else "hook", owner, frame)


def seconds_of_owner(stacks: Iterable[FoldedStack], name: str) -> float:
    """Return the seconds in the methods of a hook or callback, with all that they call. ``name``: its class."""
    return sum(stack.seconds for stack in stacks if any(frame.owner == name for frame in stack.frames))


def is_owned(stack: FoldedStack) -> bool:
    """Return whether the stack shows a method of a hook or callback."""
    return any(frame.owner for frame in stack.frames)


def is_in_callback(stack: FoldedStack) -> bool:
    """Return whether the stack shows a method of a Keras callback."""
    return is_owned(stack) and is_callback(stack.frames[_first_owned(stack)])


def _first_owned(stack: FoldedStack) -> int:
    return next(position for position, frame in enumerate(stack.frames) if frame.owner)


def called_by_tensorflow(stack: FoldedStack) -> FoldedStack | None:
    """Return the part of a stack below TensorFlow's call of a Python function; None if it has no user's code."""
    for position in range(len(stack.frames) - 1, -1, -1):
        if stack.frames[position].file.endswith(PYTHON_FUNCTIONS):
            inner = stack.frames[position + 1 :]
            has_user_code = any(not frame.is_library for frame in inner)
            return stack._replace(frames=inner) if has_user_code else None
    return None


def functions_called(stacks: Sequence[FoldedStack], excess_s: float) -> list[FoldedStack]:
    """Return the stacks of Python functions that TensorFlow calls, on the busiest thread.

    A generator of tf.data works ahead for later steps, so it is left out if other functions took half of ``excess_s``.
    """
    return functions_of_graphs(stacks, excess_s) or functions_of_busiest_thread(stacks)


def functions_of_graphs(stacks: Sequence[FoldedStack], excess_s: float) -> list[FoldedStack]:
    """Like ``functions_called``, but never with generators; [] if the functions took less than half of ``excess_s``."""
    called = functions_of_busiest_thread(stack for stack in stacks if not is_generator(stack))
    return called if 2 * sum(stack.seconds for stack in called) >= excess_s else []


def functions_of_busiest_thread(stacks: Iterable[FoldedStack]) -> list[FoldedStack]:
    """Return the stacks of Python functions that TensorFlow calls, on the thread that spent most time in them."""
    called = [cut for stack in stacks if (cut := called_by_tensorflow(stack)) is not None]
    seconds: dict[str, float] = {}
    for stack in called:
        seconds[stack.thread] = seconds.get(stack.thread, 0.0) + stack.seconds
    busiest = max(seconds, key=lambda name: seconds[name], default="")
    return [stack for stack in called if stack.thread == busiest]


def caller_of_function(stack: FoldedStack) -> FoldedStack | None:
    """Return the part of a stack that calls the outermost compiled function; None if it calls none."""
    for position, frame in enumerate(stack.frames):
        if frame.file.endswith(COMPILED_FUNCTIONS):
            return stack._replace(frames=stack.frames[:position]) if position else None
    return None


def caller_of_phase(stack: FoldedStack) -> FoldedStack | None:
    """Return the part of a stack that calls the outermost phase, such as a checkpoint or evaluation; None if it calls none."""
    at = next((position for position, frame in enumerate(stack.frames) if _is_wrapper(frame, PHASE)), 0)
    return stack._replace(frames=stack.frames[:at]) if at else None


def caller_of_evaluation(stack: FoldedStack) -> FoldedStack | None:
    """Return the part of a stack that calls Keras's ``evaluate`` or ``predict``; None if it calls neither."""
    for position, frame in enumerate(stack.frames):
        if frame.function in EVALUATIONS and _is_of_keras(frame):
            return stack._replace(frames=stack.frames[:position])
        # While ``evaluate`` frees its objects, the stack has no frame of it. ``fit`` itself calls no other phases.
        before = stack.frames[position - 1] if position else None
        if _is_wrapper(frame, PHASE) and before and before.function == FIT and _is_of_keras(before):
            return stack._replace(frames=stack.frames[:position])
    return None


def below_loop(stack: FoldedStack, methods: Container[str]) -> FoldedStack:
    """Remove the callers of the library's training loop from a stack: all samples have them, so they explain nothing.

    ``methods``: the methods of Keras that may run the loop.
    """
    at = next((position for position, frame in enumerate(stack.frames) if _runs_loop(frame, methods)), 0)
    return stack._replace(frames=stack.frames[at:])


def is_loops_own(stack: FoldedStack) -> bool:
    """Return whether a stack begins at a library's training loop and has no line of the script."""
    is_loop = bool(stack.frames) and _runs_loop(stack.frames[0], (FIT, *EVALUATIONS))
    return is_loop and all(frame.is_library for frame in stack.frames)


def _runs_loop(frame: Frame, methods: Container[str]) -> bool:
    if frame.function == ESTIMATOR_LOOP:
        return frame.file.endswith(ESTIMATORS)
    return frame.function in methods and _is_of_keras(frame)


def is_epoch_turn(stack: FoldedStack) -> bool:
    """Return whether Keras's ``fit`` is between two epochs (EPOCH_TURNS)."""
    inner = itertools.dropwhile(lambda frame: frame.function != FIT or not _is_of_keras(frame), stack.frames)
    return any(frame.function in EPOCH_TURNS and _is_of_keras(frame) for frame in inner)


def is_in_fit_itself(stack: FoldedStack) -> bool:
    """Return whether Keras's ``fit`` is the innermost frame, for example while it frees objects."""
    return bool(stack.frames) and stack.frames[-1].function == FIT and _is_of_keras(stack.frames[-1])


def _is_of_keras(frame: Frame) -> bool:
    return frame.is_library and "keras" in frame.file


def without_tracer(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Return the stacks without those of the tracer's own code."""
    return tuple(stack for stack in stacks if not _is_in_tracer(stack.frames))


def _is_in_tracer(frames: tuple[Frame, ...]) -> bool:
    """Return whether the innermost frame outside Python's own library is code of the tracer."""
    return is_tracers(next((frame.file for frame in reversed(frames) if not is_standard_library(frame.file)), ""))


def without_steps(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Return the stacks without those of steps; single ops stay. Between steps, stacks of steps are samples with wrong times."""
    return tuple(stack for stack in stacks if not (is_in_step(stack) and not _is_in_op(stack)))


def without_measured(stacks: Iterable[FoldedStack], has_other_steps: bool) -> tuple[FoldedStack, ...]:
    """Return the stacks without those whose time a clock measures: of phases, and of steps of other runs if there are any."""
    remaining = without_steps(stacks) if has_other_steps else stacks
    return tuple(stack for stack in remaining if not is_in_phase(stack))


def _is_in_op(stack: FoldedStack) -> bool:
    """Return whether the innermost frame executes an eager op, and no session or compiled function."""
    is_function = any(frame.file.endswith(COMPILED_FUNCTIONS) for frame in stack.frames)
    return not is_function and _is_one_of(stack.frames[-1], (EAGER_STEP,))


def is_in_step(stack: FoldedStack) -> bool:
    """Return whether TensorFlow executes a step in the innermost frame."""
    innermost = stack.frames[-1] if stack.frames else None
    return innermost is not None and _is_one_of(innermost, (SESSION_STEP, EAGER_STEP))


def _is_one_of(frame: Frame, places: Iterable[tuple[str, str]]) -> bool:
    return any(frame.file.endswith(file) and frame.function == function for file, function in places)


def is_in_phase(stack: FoldedStack) -> bool:
    """Return whether the stack is in a phase (such as a checkpoint) or a wait for input.

    The tracer's wrappers measure their times.
    """
    return any(_is_wrapper(frame, PHASE, INPUT_WAIT) for frame in stack.frames)


def _is_wrapper(frame: Frame, *functions: str) -> bool:
    return frame.function in functions and frame.file.endswith(WRAPPERS)


def is_generator(stack: FoldedStack) -> bool:
    """Return whether the stack is in a Python generator that tf.data calls."""
    return any(frame.file.endswith(GENERATORS) for frame in stack.frames)


def waits_for_thread(stacks: Iterable[FoldedStack]) -> float:
    """Return the seconds in which a thread waited for another thread, at a queue, an event or a lock of ``threading``."""
    return sum(stack.seconds for stack in stacks if stack.frames and stack.frames[-1].file.endswith(THREAD_MODULES))


def waits_for_input(stacks: Iterable[FoldedStack]) -> float:
    """Return the seconds in which a thread waited for the next element of a dataset."""
    return sum(stack.seconds for stack in stacks if any(frame.file.endswith(ITERATORS) for frame in stack.frames))


def own_python(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Return the stacks in which the training thread ran Python code within a step. In all other stacks, TensorFlow works.

    Such code is an eager loop, a hook that is called before or after ``session.run``, with all that it calls, or the conversion
    of the step's Python values.
    """
    return tuple(stack for stack in stacks if stack.frames and not called_by_tensorflow(stack) and _is_own(stack.frames))


def _is_own(frames: tuple[Frame, ...]) -> bool:
    innermost = frames[-1]
    return _is_one_of(innermost, CONVERSIONS) or not _is_of_tensorflow(innermost) or any(frame.owner for frame in frames)


def _is_of_tensorflow(frame: Frame) -> bool:
    return frame.is_library and any(part in frame.file for part in TENSORFLOW)


def has_users_code(stacks: Iterable[FoldedStack]) -> bool:
    """Return whether any stack has code of the user. A prompt or notebook that waits for input has none."""
    return any(not frame.is_library for stack in stacks for frame in stack.frames)


def in_tensorflow_s(stacks: Iterable[FoldedStack]) -> float:
    """Return the seconds in which TensorFlow ran the step of a session, a compiled function, or an op."""
    return sum(stack.seconds for stack in stacks if is_in_step(stack) or (stack.frames and EAGER_OPS in stack.frames[-1].file))


def within_tensorflow(stacks: Iterable[FoldedStack]) -> tuple[FoldedStack, ...]:
    """Return the stacks in which TensorFlow, or a hook, is called. All others are from before or after a session's or function's
    step."""
    return tuple(stack for stack in stacks if any(frame.owner or _is_of_tensorflow(frame) for frame in stack.frames))
