"""Tell whether a step ran on a busy machine, and estimate how long its ops take when nothing delays them."""

from __future__ import annotations

import re

import numpy as np

from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.types import Float64, Int32
from tftracer.trace.verdict.step import Step

WAITING_SHARE = 0.40  # minimal part of the needed CPU time that the step waited for
MIN_LACKED_CPUS = 0.25  # minimal number of CPUs that the step lacked, on average
MIN_WALL_S = 0.010  # shorter steps show nothing: Linux lets a thread run for some milliseconds before the next one
CACHED_BYTES = 1_000_000  # an op that reads and writes fewer bytes works in a core's cache
HELD_UP = 3.0  # an op that takes this many times its usual time in the run was delayed, or had more work
#: An op on a busy machine was interrupted if it takes this many times as long as the median op of its type for as much work.
INTERRUPTED_FACTOR = 5.0
MIN_SIMILAR = 10  # minimal number of executions of a type, for its ops to be compared
SIMILAR_WORK = 2.0  # ops with more than this many times the median work of their type are not compared
#: Bytes per second that an op with hardly any arithmetic reaches on one core, in the cache (measured: 11 to 20 GB/s) and beyond
#: it (measured: 4 to 13 GB/s, but 0.7 GB/s for the transpose of a large matrix on TensorFlow 2.15).
CACHE_RATE, MEMORY_RATE = 1e10, 5e8
#: Kinds of ops with hardly any arithmetic (op_kinds.canonical).
_ONLY_MOVES = re.compile(
    r"Add(N|V2)?|Sub|Mul|Neg|Square|SquaredDifference|Maximum|Minimum|Relu6?(Grad)?|BiasAdd|SelectV2"
    r"|(Conjugate)?Transpose|Cast|Pad(V2)?"
)
#: Types of ops that do no work of their own, and the longest time that one takes if nothing delays it.
_NO_WORK = re.compile(
    r"(Host)?Const|NoOp|ControlTrigger|VarHandleOp|Placeholder(WithDefault)?|ShapeN?|Size|Rank|Reshape|Squeeze|ExpandDims"
    r"|(Ref)?(Switch|Merge|Enter|Exit|NextIteration)|_?LoopCond|_(Device)?(Arg|Retval)"
)
NO_WORK_NS = 20_000.0


def lacked_cpu_s(step: Step) -> float:
    """Return the CPU time that the step's threads lacked because other programs took it; 0 if it is little or unknown."""
    use = step.context.cpu_use
    wall, cpu, queued, cpus = use.get("wall_s", 0.0), use.get("cpu_s"), use.get("run_queue_s"), use.get("cpus")
    job = use.get("job_cpu_s")
    if wall < MIN_WALL_S or cpu is None or job is None or queued is None or cpus is None:
        return 0.0
    lacked = min(queued, cpus * wall - job)  # at most the CPU time that the job itself did not use
    return 0.0 if lacked < MIN_LACKED_CPUS * wall or lacked < WAITING_SHARE * (lacked + cpu) else lacked


def ns_capped_by_bytes(step: Step, work: Work, kinds: list[str]) -> Float64:
    """Return [work] the self times. On a busy machine, ops that only move data get at most the time to move their bytes:
    TensorFlow splits such an op over threads, and the op ends only when the last of them has had a CPU. Ops that do no work get
    ``NO_WORK_NS`` at most. ``kinds``: [op types]."""
    times = _ns_capped_without_work(step, work)
    if not lacked_cpu_s(step) or step.arithmetic is None:
        return times
    only_moves = np.array([_ONLY_MOVES.fullmatch(kind) is not None for kind in kinds] or [False])[work.op]
    moved = step.arithmetic.bytes[work.node]  # NaN: unknown
    rate = np.where(moved < CACHED_BYTES, CACHE_RATE, MEMORY_RATE)
    return np.asarray(np.where(only_moves & (moved > 0), np.fmin(times, moved / rate * 1e9), times))


def ns_without_outliers(step: Step, work: Work) -> Float64:
    """Return [work] the self times without delays of single ops: an op that takes far longer than in other traces of the run gets
    its usual time; on a busy machine, an interrupted op gets the median time of similar ops for as much work, and an op that does
    no work ``NO_WORK_NS`` at most."""
    times = np.fmin(ns_limited_to(step, step.usual_ns, work), _ns_capped_without_work(step, work))
    if not lacked_cpu_s(step) or step.arithmetic is None:
        return times
    return np.fmin(times, _as_similar_ops(work.op, times, step.arithmetic.flops[work.node], step.arithmetic.bytes[work.node]))


def _ns_capped_without_work(step: Step, work: Work) -> Float64:
    """Return [work] the self times; on a busy machine, ops that do no work get at most ``NO_WORK_NS``."""
    if not lacked_cpu_s(step):
        return work.self_ns
    no_work = step.trace.op_types_where(_NO_WORK.fullmatch)[work.op]
    return np.where(no_work, np.fmin(work.self_ns, NO_WORK_NS), work.self_ns)


def ns_limited_to(step: Step, known_ns: Float64 | None, work: Work) -> Float64:
    """Return [work] the self times; an op (name) that takes ``HELD_UP`` times its known time gets the known one, for as many
    executions. ``known_ns``: [names] times in other traces, 0 if an op's is not known; None: no other traces."""
    if known_ns is None or not len(work.node):
        return work.self_ns
    known_ns = known_ns * step.executions_ratio
    total = np.bincount(work.name, work.self_ns, minlength=len(known_ns))
    is_held_up = (known_ns > 0) & (total > HELD_UP * known_ns)
    factor = np.divide(known_ns, total, out=np.ones(len(known_ns)), where=is_held_up)
    return np.asarray(work.self_ns * factor[work.name])


def may_be_held_up(step: Step, work: Work, node: int) -> bool:
    """Tell whether an op may have been held up: it takes ``HELD_UP`` times its shortest time in the run's traces. If no other
    trace tells it: ``INTERRUPTED_FACTOR`` times as long as the median op of its type, of at least ``MIN_SIMILAR``."""
    took = float(step.trace.end[node] - step.trace.start[node])
    shortest_ns = float(step.shortest_ns[step.trace.name[node]]) if step.shortest_ns is not None else 0.0
    if shortest_ns > 0 and (step.usual_ns is None or step.usual_ns[step.trace.name[node]] > 0):
        return took > HELD_UP * shortest_ns
    similar = work.self_ns[step.trace.op[work.node] == step.trace.op[node]]
    return len(similar) >= MIN_SIMILAR and took > INTERRUPTED_FACTOR * float(np.median(similar))


def _as_similar_ops(op: Int32, times: Float64, flops: Float64, moved: Float64) -> Float64:
    """Return [work] the median time of similar ops for as many FLOPs (or bytes), for interrupted ops; NaN for other ops."""
    amount = np.where(flops > 0, flops, moved)
    is_known = (amount > 0) & (times > 0)
    expected = np.full(len(times), np.nan)
    counts = np.bincount(op[is_known]) if is_known.any() else np.zeros(0, np.int64)
    for code in np.flatnonzero(counts >= MIN_SIMILAR).tolist():
        similar = is_known & (op == code)
        similar &= amount <= SIMILAR_WORK * float(np.median(amount[similar]))  # the data of larger ones exceeds the cache
        expected[similar] = float(np.median(times[similar] / amount[similar])) * amount[similar]
    return np.where(times > INTERRUPTED_FACTOR * expected, expected, np.nan)
