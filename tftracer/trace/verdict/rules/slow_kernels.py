"""Matrix ops that compute far more slowly than the best matrix op, in each of several traces of the run."""

from __future__ import annotations

import numpy as np

from tftracer.contract.analyses import MIN_TRACES
from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.op_kinds import is_matrix_op
from tftracer.trace.analyses.over_traces import OpsOverTraces
from tftracer.trace.arrays.types import Bool, Float64
from tftracer.trace.units import percent
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step, evidence_of, sentence

SLOW_KERNEL_SHARE = 0.10  # minimal part of the op time that slow ops take, in the median of the traces
FAR_BELOW_SHARE = 0.10  # an op is slow if its rate is below this part of the best op's rate
MIN_SHARE = 0.01  # minimal part of the op time, for an op to be compared


def slow_kernel(step: Step) -> Sentence | None:
    """Name matrix ops that are far slower than the best one.

    Use each op's best rate among the traces and among ops of the same kind and FLOPs: a single time may be disturbed.
    """
    times = step.times
    if times is None or len(times.work_ns) < MIN_TRACES or step.arithmetic is None:
        return None
    time = OpTime.of(step)
    matrix = time.of_kinds(is_matrix_op)
    if time.share(matrix) < SLOW_KERNEL_SHARE:
        return None
    rate, share = _rates(step, time, matrix, times)
    if not (share >= MIN_SHARE).any():
        return None
    best = int(np.argmax(np.where(share >= MIN_SHARE, rate, 0.0)))
    slow = (rate < FAR_BELOW_SHARE * rate[best]) & (share >= MIN_SHARE)
    if float(share[slow].sum()) < SLOW_KERNEL_SHARE:
        return None
    selected: Bool = matrix & slow[time.work.name]
    largest = int(np.argmax(np.where(slow, share, 0.0)))
    nodes = time.longest(selected & (time.work.name == largest))
    several = f" {int(slow.sum()):,} such ops take {percent(float(share[slow].sum()))}." if slow.sum() > 1 else ""
    return sentence(
        "slow_kernel",
        f"{step.describe(nodes[0])} takes {percent(float(share[largest]))} of the op time and computes {_rate(rate[largest])} at "
        f"its fastest in {len(times.work_ns):,} traces: {step.trace.names[best]} reaches {_rate(rate[best])}.{several}",
        "Its shape, type or layout may suit the kernel badly (few channels, a depthwise convolution, large filters): try another "
        "layout (data_format), another shape, or ops that do the same, such as separable or smaller filters.",
        float(time.share_of_step(selected)) * (1 - rate[largest] / rate[best]),
        {"rate_flops": float(rate[largest]), "best_flops": float(rate[best]), "traces": float(len(times.work_ns))},
        {**evidence_of(step, nodes, "ops"), "op": step.op(nodes[0])},
    )


def _rates(step: Step, time: OpTime, matrix: Bool, times: OpsOverTraces) -> tuple[Float64, Float64]:
    """Return [names] FLOP/s at the shortest time, and the median share of the op time.

    Both are 0 for an op whose execution count varies between traces.
    """
    assert step.arithmetic is not None
    names, work = len(step.trace.names), time.work
    flops = np.asarray(np.bincount(work.name[matrix], step.arithmetic.flops[work.node[matrix]], names), np.float64)
    rate, share = np.zeros(names), np.zeros(names)
    row_of = {key: row for row, key in enumerate(times.keys)}
    shares = np.nan_to_num(times.total_ns / times.work_ns)
    for name in np.flatnonzero(flops > 0).tolist():
        row = row_of.get(step.trace.names[name])
        if row is not None and times.count[row].min() == times.count[row].max() and times.shortest_ns[row] > 0:
            rate[name] = flops[name] / times.shortest_ns[row] * 1e9
            share[name] = np.median(shares[row])
    return _best_of_equals(time, rate, flops), share


def _best_of_equals(time: OpTime, rate: Float64, flops: Float64) -> Float64:
    """Return [names] the best rate among equal ops (same kind and FLOPs): the slower ones were disturbed."""
    type_of = np.zeros(len(rate), np.int64)
    type_of[time.work.name] = time.work.op
    best: dict[tuple[str, float], float] = {}
    equals = {name: (time.kinds[type_of[name]], float(flops[name])) for name in np.flatnonzero(rate).tolist()}
    for name, key in equals.items():
        best[key] = max(best.get(key, 0.0), float(rate[name]))
    result = rate.copy()
    for name, key in equals.items():
        result[name] = best[key]
    return result


def _rate(flops: float) -> str:
    return f"{flops / 1e9:.3g} GFLOP/s"
