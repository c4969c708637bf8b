"""What made a step slow: the one cause that the evidence of a stall shows, or "unknown".

The evidence: stacks of the training thread with its state, stacks of other threads, garbage collections, the host's counters.
``slow/recorded.Cause`` lists the causes. Pure: no clocks, no threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tftracer.capture.frame_names import is_callback
from tftracer.slow.recorded import Cause, FoldedStack, Frame, HostChange

#: A cause explains at least this part.
HALF = 0.5
#: TensorFlow calls Python functions (py_function, numpy_function, generators of tf.data) from this file.
PYTHON_FUNCTIONS = "tensorflow/python/ops/script_ops.py"
TENSORFLOW = ("/tensorflow/", "/keras/")
#: All CPUs are taken when so much of their time is used.
BUSY = 0.9
UNKNOWN = Cause("unknown", "", None, None)


class Evidence(NamedTuple):
    inside: bool
    took_s: float
    expected_s: float
    limit_s: float  # what takes longer is slow
    stacks: tuple[FoldedStack, ...]  # of the training thread
    other_stacks: tuple[FoldedStack, ...]
    gc_s: float
    host: HostChange | None


def cause_of(stall: Evidence) -> Cause:
    for explain in (_gc, _machine, _hook_or_callback, _python_function, _disk, _line, _other_processes):
        cause = explain(stall)
        if cause is not None:
            return cause
    return UNKNOWN


def _gc(stall: Evidence) -> Cause | None:
    if stall.gc_s < HALF * (stall.took_s - stall.expected_s):
        return None
    return Cause("gc", "", users_frame(stall.stacks), _share(stall.gc_s, stall.took_s))


def _machine(stall: Evidence) -> Cause | None:
    """The thread waited for a CPU, or the hypervisor took it; without that it would not have been slow."""
    host = stall.host
    if host is None:
        return None
    on_cpu = host.on_cpu_s or 0.0
    # Of a thread that sleeps the hypervisor takes nothing: the kernel counts stolen time as the thread's own.
    stolen = min(host.steal_s / host.cpus, on_cpu) if host.steal_s and host.cpus else 0.0
    waited, ran = (host.run_queue_s or 0.0) + stolen, on_cpu - stolen
    if waited < HALF * (stall.took_s - stall.expected_s) or max(ran, stall.took_s - waited) > stall.limit_s:
        return None
    return Cause("machine", "", users_frame(stall.stacks), _share(waited, stall.took_s))


def _hook_or_callback(stall: Evidence) -> Cause | None:
    """The outermost method of another hook or of a callback."""

    def owner(stack: FoldedStack) -> tuple[str, bool] | None:
        return next(((frame.owner, is_callback(frame)) for frame in stack.frames if frame.owner), None)

    (name, callback), share = _largest(stall.stacks, owner) or (("", False), 0.0)
    if share < HALF:
        return None
    of_owner = [stack for stack in stall.stacks if owner(stack) == (name, callback)]
    return Cause("callback" if callback else "hook", name, users_frame(of_owner), share)


def _python_function(stall: Evidence) -> Cause | None:
    """A Python function that TensorFlow called, here or on another thread, for half of the time that was sampled."""
    sampled = sum(stack.seconds for stack in stall.stacks)
    called = [cut for stack in (*stall.stacks, *stall.other_stacks) if (cut := called_by_tensorflow(stack)) is not None]
    seconds = sum(stack.seconds for stack in called)
    if not called or sampled <= 0 or seconds < HALF * sampled:
        return None
    return Cause("py_function", "", users_frame(called), _share(seconds, sampled))


def _disk(stall: Evidence) -> Cause | None:
    samples = sum(stack.samples for stack in stall.stacks)
    waiting = sum(stack.disk_samples for stack in stall.stacks)
    if not samples or waiting < HALF * samples:
        return None
    return Cause("disk", "", users_frame(stall.stacks), waiting / samples)


def _line(stall: Evidence) -> Cause | None:
    """The user's function that most samples are in. Inside a step that TensorFlow runs, its threads work: no line tells."""
    stacks = [stack for stack in stall.stacks if not (stall.inside and _is_tensorflows(stack))]
    largest = _largest(stacks, lambda stack: _function(_nearest(stack)), sum(stack.seconds for stack in stall.stacks))
    if largest is None or largest[1] < HALF:
        return None
    function, share = largest
    of_function = [stack for stack in stacks if _function(_nearest(stack)) == function]
    samples, waiting = sum(stack.samples for stack in of_function), sum(stack.waiting_samples for stack in of_function)
    return Cause("wait" if waiting >= HALF * samples else "python", "", users_frame(of_function), share)


def _other_processes(stall: Evidence) -> Cause | None:
    """Inside a step TensorFlow's own threads wait for CPUs, whose queues are not read: other processes had half of all CPUs."""
    host = stall.host
    if not (stall.inside and host and host.cpus and host.seconds):
        return None
    machine, own = host.machine_cpu_s, host.process_cpu_s
    if machine is None or own is None:
        return None
    cpu_s = host.cpus * host.seconds
    others = max(0.0, machine - own) / cpu_s
    return Cause("machine", "", None, min(1.0, others)) if machine / cpu_s >= BUSY and others >= HALF else None


# -------------------------------------------------------------------------------------------------------------- stacks


def users_frame(stacks: Iterable[FoldedStack]) -> Frame | None:
    """The user's nearest line that most of the time was in; a library's where no line is the user's."""
    seconds: Counter[Frame] = Counter()
    for stack in stacks:
        frame = _nearest(stack)
        if frame is not None:
            seconds[frame] += stack.seconds  # type: ignore[assignment]
    return max(seconds, key=lambda frame: (not frame.is_library, seconds[frame])) if seconds else None


def called_by_tensorflow(stack: FoldedStack) -> FoldedStack | None:
    """What a Python function that TensorFlow calls did; None if the stack is in none."""
    for position in range(len(stack.frames) - 1, -1, -1):
        if stack.frames[position].file.endswith(PYTHON_FUNCTIONS):
            inner = stack.frames[position + 1 :]
            users = any(not frame.is_library for frame in inner)
            return stack._replace(frames=inner) if users else None
    return None


def _nearest(stack: FoldedStack) -> Frame | None:
    """The user's nearest frame, else the innermost of all."""
    users = next((frame for frame in reversed(stack.frames) if not frame.is_library), None)
    return users or (stack.frames[-1] if stack.frames else None)


def _function(frame: Frame | None) -> tuple[str, str] | None:
    return None if frame is None else (frame.file, frame.function)


def _is_tensorflows(stack: FoldedStack) -> bool:
    innermost = stack.frames[-1] if stack.frames else None
    return innermost is not None and innermost.is_library and any(part in innermost.file for part in TENSORFLOW)


def _largest(
    stacks: Iterable[FoldedStack], key: Callable[[FoldedStack], Any], whole: float | None = None
) -> tuple[Any, float] | None:
    """(key, its share of the seconds) of the key with the most; None is no key."""
    seconds: Counter[Any] = Counter()
    total = 0.0
    for stack in stacks:
        total += stack.seconds
        if (name := key(stack)) is not None:
            seconds[name] += stack.seconds  # type: ignore[assignment]
    total = whole if whole is not None else total
    if not seconds or total <= 0:
        return None
    name = max(seconds, key=lambda name: seconds[name])
    return name, seconds[name] / total


def _share(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole > 0 else None
