"""Advice on what to change about the limiting stage, and the predicted throughput. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tftracer.input_pipelines.dataset_code import FROM_GENERATOR, Transformation, kind_of
from tftracer.input_pipelines.limiting_stage import SATURATED, Flow, Stage, Thread, reader_of
from tftracer.input_pipelines.waits import INTERLEAVING

MAX_CALLS = 32
#: A function whose CPU share is below this waits for something, so the same cores can run more of its calls at once.
COMPUTING_SHARE = 0.5
#: With fewer idle cores than this, a function that seems to wait may be waiting for a core.
MIN_IDLE = 0.25
#: A smaller predicted speed-up is not reported.
MIN_SPEED_UP = 1.05


class Advice(NamedTuple):
    text: str
    rate: float | None = None  # predicted upper bound, elements a second


def advice(flow: Flow, stage: Stage, steps: Mapping[int, Transformation]) -> Advice:
    """Advise on the limiting stage. ``steps``: node id of a stage -> its transformation in the script."""
    name, kind, target = stage.node.name, kind_of(stage.node.name), _target(flow, stage)
    step = steps.get(stage.node.id)
    if stage in flow.training.stages:
        rate = _min(1 / flow.training.busy * flow.rate if flow.training.busy else None, target)
        return _with_rate(flow, "Add .prefetch(tf.data.AUTOTUNE) at the end: the pipeline then works during the steps.", rate)
    if name == "Generator" or (step and step.name == FROM_GENERATOR):
        return Advice("from_generator runs one Python function in one thread: do less in it, or read with tf.data's own readers.")
    if not flow.counted:
        return _uncounted(kind)
    if name.startswith("Batch"):
        change = _parallel(flow, stage, target, "batch(..., num_parallel_calls={})", is_python=False)
        return change._replace(rate=None)  # the memory's speed is not known
    reader = reader_of(name)
    if reader:
        text = "Read several files at once: interleave({}Dataset, num_parallel_calls=tf.data.AUTOTUNE); or with a larger buffer."
        return Advice(text.format(reader))
    if kind in ("interleave", "flat_map"):
        call = "interleave(..., cycle_length={1}, num_parallel_calls={0})"
        reads_python = any(each.node.name == "Generator" for each in stage.inner_stages)
        datasets = step.input_elements if step else None
        change = _parallel(flow, stage, target, call, is_python=reads_python or bool(step and step.python), max_calls=datasets)
        return _with_refills(flow, stage, steps, target, change)
    if kind == "map":
        change = _parallel(flow, stage, target, "map(..., num_parallel_calls={})", is_python=bool(step and step.python))
        return _with_refills(flow, stage, steps, target, change)
    if kind == "filter":
        return Advice("Filter before other work, or once when the data is written.")
    if kind == "shuffle":
        return Advice("Shuffle file names or indices before decoding, or with a smaller buffer.")
    return Advice("Keep its result with cache() if it is the same in each epoch.")


def _uncounted(kind: str) -> Advice:
    if kind == "filter":
        return Advice("Calling the function for each element takes the time: filter batches, or once when the data is written.")
    if kind == "map":
        return Advice("Calling the function for each element takes longer than its ops: batch() before map(), on whole batches.")
    return Advice("Each element makes a new dataset: batch() first and use map(), or make fewer, longer inner datasets.")


def _with_refills(flow: Flow, stage: Stage, steps: Mapping[int, Transformation], target: float | None, change: Advice) -> Advice:
    """Lower the predicted rate where a shuffle fills its buffer in each epoch: the training and the stage then take turns."""
    shuffled = [steps[each.node.id] for each in flow.stages if each.node.id in steps and stage in each.tree()]
    shares = [min(1.0, each.size / each.input_elements) for each in shuffled if each.size and each.input_elements]
    if not shares or change.rate is None or target is None:
        return change
    share = max(shares)  # part of an epoch's elements that arrive while the shuffle gives nothing out
    seconds = share * (1 / change.rate + 1 / target) + (1 - share) * max(1 / change.rate, 1 / target)
    return _with_rate(flow, change.text, 1 / seconds)


def _parallel(flow: Flow, stage: Stage, target: float | None, call: str, is_python: bool, max_calls: int | None = None) -> Advice:
    """Return advice about more calls at once: how many help (at most ``max_calls``), or what to do if they would not help."""
    busy, calls_now = stage.busy or 0.0, stage.parallelism or 1.0
    if stage.parallelism is not None:
        busy = next((each.pool.busy for each in flow.workers.values() if each.pool and each.pool.stages[0] is stage), busy)
    elif stage.node.node_class in INTERLEAVING:
        busy += stage.inner_busy
    busy = min(busy, calls_now)  # one call may use several threads
    rate_of_one = flow.rate / busy if busy else None  # elements a second with one call at a time
    computes = flow.cpu >= COMPUTING_SHARE * busy
    if not computes and (flow.idle is None or flow.idle < MIN_IDLE):
        instead = " Use TensorFlow ops in place of Python, which runs one thread at a time, or cache()." if is_python else ""
        text = f"The machine has no idle core: more calls at once, {call.format('N', 'N')}, help only if it waits for something."
        return Advice(text + instead)
    if is_python and computes:
        several = call.format("tf.data.AUTOTUNE", flow.cores)
        return Advice(
            "If it computes in Python, which runs one thread at a time, use TensorFlow ops, or cache() its result. If it waits, "
            f"such as for files or a network, set {several}."
        )
    free = flow.cores if flow.idle is None else min(float(flow.cores), flow.cpu + flow.idle)
    by_cores = free / flow.cpu * flow.rate if flow.cpu else None  # if an element needs as much CPU time as now
    target = _min(target, by_cores)
    if not computes and rate_of_one and target:
        calls = min(MAX_CALLS, max_calls or MAX_CALLS, math.ceil(target / rate_of_one))
        if calls > calls_now or calls_now > flow.cores > busy * SATURATED:
            threads = "" if calls <= flow.cores else f" and options.threading.private_threadpool_size = {calls}"
            why = ": TensorFlow and AUTOTUNE stop at a thread a core" if threads else ""
            text = f"It waits more than it computes. Set {call.format(calls, calls)}{threads}{why}."
            return _with_rate(flow, text, _min(calls * rate_of_one, target))
    parallelism = stage.node.parameters.get("parallelism")
    if parallelism and parallelism.tunable and calls_now < flow.cores:
        return Advice(
            f"AUTOTUNE runs {calls_now:.0f} of at most {parallelism.max:.0f} calls at once so far. It may still raise that."
        )
    if calls_now < flow.cores and computes:
        rate = _min(flow.cores * rate_of_one if rate_of_one else None, target)
        auto = call.format("tf.data.AUTOTUNE", flow.cores)
        if rate is not None and rate >= MIN_SPEED_UP * flow.rate:
            return _with_rate(flow, f"Set {auto}.", rate)
        if free < flow.cores:
            return Advice(
                f"The machine has no idle core: {auto} helps only with idle cores. Make the stage cheaper, or cache() its result."
            )
    if computes:
        return Advice("It uses the cores that there are: make it cheaper, cache() its result, or use the tf.data service.")
    return Advice("More calls at once would not help: see what it waits for.")


def _with_rate(flow: Flow, text: str, rate: float | None) -> Advice:
    """Return advice with the predicted rate; without it if the speed-up is less than ``MIN_SPEED_UP``."""
    return Advice(text, rate if rate is not None and rate >= MIN_SPEED_UP * flow.rate else None)


def _target(flow: Flow, stage: Stage) -> float | None:
    """Return the rate that everything else could reach: the training itself, and every other thread."""

    def rate_of(thread: Thread) -> float | None:
        if thread.stages[0] is stage and stage.parallelism is not None:
            return None
        own_stages = {id(each) for each in stage.inner_stages} | {id(stage)}
        busy = sum(each.busy or 0.0 for each in thread.stages if id(each) not in own_stages)
        limit = max((each.node.parameters["parallelism"].max for each in thread.stages[:1] if _is_tuned(each)), default=0.0)
        return max(thread.threads, min(limit, flow.cores)) * flow.rate / busy if busy > 0 else None

    training = 1 / flow.gap_s if flow.gap_s else None
    return _min(training, *(rate_of(thread) for thread in flow.threads if thread.stages))


def _is_tuned(stage: Stage) -> bool:
    parallelism = stage.node.parameters.get("parallelism")
    return parallelism is not None and parallelism.tunable


def _min(*rates: float | None) -> float | None:
    return min((rate for rate in rates if rate is not None), default=None)
