"""Whether a step ran on a busy machine, and how long its ops take at most where nothing holds them up."""

from __future__ import annotations

import re

import numpy as np

from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.types import Float64, Int32
from tftracer.trace.verdict.step import Step

WAITING_SHARE = 0.40  # of the CPU time that the step needed, which it had to wait for
LEAST_CPUS = 0.25  # that it lacked on average
LEAST_S = 0.010  # Linux lets a thread run for some milliseconds before the next one: short steps tell nothing
CACHED_BYTES = 1_000_000  # that an op reads and writes, from a core's cache
HELD_UP = 3.0  # times its usual time in the run: something held the op up, or it had more to do
#: On a busy machine an op was interrupted that takes OF_ALIKE times as long for its work as most of LEAST_ALIKE of its type.
LEAST_ALIKE, OF_ALIKE = 10, 5.0
MUCH_MORE = 2.0  # times the usual work of its type: such an op is not alike
#: Bytes per second that ops with hardly any arithmetic reach on one core: 11 to 20 GB/s were measured in the cache, 4 to 13
#: beyond it, and for the transpose of a large matrix, on TensorFlow 2.15, 0.7 GB/s.
CACHE_RATE, MEMORY_RATE = 1e10, 5e8
#: Those ops, whoever wrote them (op_kinds.canonical).
_ONLY_MOVES = re.compile(
    r"Add(N|V2)?|Sub|Mul|Neg|Square|SquaredDifference|Maximum|Minimum|Relu6?(Grad)?|BiasAdd|SelectV2"
    r"|(Conjugate)?Transpose|Cast|Pad(V2)?"
)


def lacked_cpu_s(step: Step) -> float:
    """CPU time that the step's threads could have used and other programs took; 0 if it is little or not known."""
    use = step.context.cpu_use
    wall, cpu, queued, cpus = use.get("wall_s", 0.0), use.get("cpu_s"), use.get("run_queue_s"), use.get("cpus")
    job = use.get("job_cpu_s")
    if wall < LEAST_S or cpu is None or job is None or queued is None or cpus is None:
        return 0.0
    lacked = min(queued, cpus * wall - job)  # its own threads wait for each other where they are more than CPUs
    return 0.0 if lacked < LEAST_CPUS * wall or lacked < WAITING_SHARE * (lacked + cpu) else lacked


def unhindered_ns(step: Step, work: Work, kinds: list[str]) -> Float64:
    """[work] the self times; on a busy machine no more than it takes to move what an op reads and writes, for ops that do little
    else. TensorFlow splits them over threads: the op waits until the last of these had a CPU. ``kinds``: of the op types."""
    times = work.self_ns
    if not lacked_cpu_s(step) or step.arithmetic is None:
        return times
    only_moves = np.array([_ONLY_MOVES.fullmatch(kind) is not None for kind in kinds] or [False])[work.op]
    moved = step.arithmetic.bytes[work.node]  # NaN: not known
    rate = np.where(moved < CACHED_BYTES, CACHE_RATE, MEMORY_RATE)
    return np.asarray(np.where(only_moves & (moved > 0), np.fmin(times, moved / rate * 1e9), times))


def not_held_up_ns(step: Step, work: Work) -> Float64:
    """[work] the self times without what held single ops up: of an op that takes far longer than in other traces of the run, as
    much as there; on a busy machine, of ops of a type of which the step runs many, what such ops take for as much work."""
    times = _as_in_other_traces(step, work)
    if not lacked_cpu_s(step) or step.arithmetic is None:
        return times
    return np.fmin(times, _as_alike(work.op, times, step.arithmetic.flops[work.node], step.arithmetic.bytes[work.node]))


def _as_in_other_traces(step: Step, work: Work) -> Float64:
    """[work] of an op (name) that takes ``HELD_UP`` times its usual time, the usual one."""
    usual = step.usual_ns
    if usual is None or not len(work.node):
        return work.self_ns
    total = np.bincount(work.name, work.self_ns, minlength=len(usual))
    is_held_up = (usual > 0) & (total > HELD_UP * usual)
    part = np.divide(usual, total, out=np.ones(len(usual)), where=is_held_up)
    return np.asarray(work.self_ns * part[work.name])


def _as_alike(op: Int32, times: Float64, flops: Float64, moved: Float64) -> Float64:
    """[work] of one that takes ``OF_ALIKE`` times as long for its FLOPs, or bytes, as ops of its type usually do, what those
    take; NaN for others."""
    amount = np.where(flops > 0, flops, moved)
    known = (amount > 0) & (times > 0)
    limit = np.full(len(times), np.nan)
    counts = np.bincount(op[known]) if known.any() else np.zeros(0, np.int64)
    for code in np.flatnonzero(counts >= LEAST_ALIKE).tolist():
        alike = known & (op == code)
        alike &= amount <= MUCH_MORE * float(np.median(amount[alike]))  # large ones leave the cache
        limit[alike] = float(np.median(times[alike] / amount[alike])) * amount[alike]
    return np.where(times > OF_ALIKE * limit, limit, np.nan)
