"""Computes the work of each stage of a pipeline, and finds the limiting one. No side effects.

A stage with a buffer (prefetch, parallel map) has separate threads; the stages before it, up to the next buffer, run one after
the other in one of them. A stage limits if its threads work all the time, or if the buffer before its thread is full and the one
behind it empty. TensorFlow times kernels, but neither the overhead of calling a function for each element nor the work of ended
iterators inside flat_map and interleave. The rest of a busy thread's time, which is not timed, belongs to the thread's stage that
calls a function; if several of the thread's stages call functions, the stage is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from typing import Literal, Optional

from tftracer.input_pipelines.dataset_code import is_distributed, keras_makes_batches, kind_of
from tftracer.input_pipelines.model_proto import Model, Node
from tftracer.input_pipelines.saved_pipelines import Pipeline, Reading
from tftracer.input_pipelines.waits import INTERLEAVING, counted_wait, waited_s

#: A thread delays the others if it works for at least this share of its time.
SATURATED = 0.75
#: A buffer counts as full from this share on.
FULL = 0.5
#: The limiting stage takes at least this share of its thread's time.
MIN_SHARE = 0.5
#: A thread whose stages are all timed may limit even if it works for only this share of its time: other threads have its core.
MIN_BUSY = 0.25
#: If the thread that feeds a parallel stage works this many times as much as each thread that calls the stage's function, the
#: feeding thread limits, not these calls.
FAR_BUSIER = 2.0
#: If the waits take at least the share WAITS of the time, the training waits for its input; if they take at most WORKS, the
#: training is the slower side.
WAITS, WORKS = 0.10, 0.05
#: Maximum overhead of calling a function for one element; a larger rest has another reason.
CALL_S = 2e-3
MAX_DEPTH = 200
#: Minimum number of elements of inner datasets from which their work is estimated.
MIN_INNER = 20
#: Minimum number of looks that prove a wait of the training that the ledger does not count.
MIN_LOOKS = 5
#: Stages that read; TensorFlow builds them within a flat_map.
READERS = ("Generator", "TFRecord", "TextLine", "FixedLengthRecord")


@dataclass(eq=False)
class Stage:
    """A stage of a pipeline, and its work between the first and the last look."""

    node: Node
    depth: int
    inner: bool  # whether it is part of a dataset that flat_map or interleave makes
    rate: float | None = None  # elements a second
    element_s: float | None = None  # own time for an element
    busy: float | None = None  # average number of threads that work for it
    buffered: float = 0.0  # average number of elements
    children: list[Stage] = field(default_factory=list)

    @property
    def parallelism(self) -> float | None:
        parameter = self.node.parameters.get("parallelism")
        return max(1.0, parameter.value) if parameter else None

    @property
    def fill(self) -> float:
        return self.fill_of(self.buffered)

    def fill_of(self, buffered: float) -> float:
        """Return the share of the stage's buffer that ``buffered`` elements fill; may exceed 1."""
        parameter = self.node.parameters.get("buffer_size") or self.node.parameters.get("max_buffered_elements")
        room = parameter.value if parameter else self.parallelism or 1.0
        if self.node.name.startswith("MapAndBatch"):  # ``buffered`` also counts the batches that its calls work on
            room = ceil(room / max(1.0, self.node.ratio))
            return max(0.0, buffered - room) / room
        if "Interleave" in self.node.name:  # two thirds of the buffer belong to the next datasets
            return max(0.0, 3 * buffered / max(1.0, room) - 2)
        return buffered / max(1.0, room)

    @property
    def inner_stages(self) -> list[Stage]:
        """The stages of the datasets that this stage makes."""
        return [each for child in self.children if child.inner for each in child.tree()]

    def tree(self) -> Iterator[Stage]:
        """Yield the stage and those below it."""
        yield self
        for child in self.children:
            yield from child.tree()

    @property
    def inner_busy(self) -> float:
        return sum(each.busy or 0.0 for each in self.inner_stages)

    @property
    def calls_function(self) -> bool:
        kind = kind_of(self.node.name)
        reads = any(reader_of(child.node.name) for child in self.children)
        return kind not in ("", "shuffle") and not (kind == "flat_map" and reads)


InLook = tuple[Model, Node]  # a stage in one look


@dataclass
class Thread:
    """A thread, or the threads of one parallel stage."""

    stages: list[Stage]
    threads: float = 1.0
    before: list[Stage] = field(default_factory=list)  # stages with buffers that it takes from

    @property
    def busy(self) -> float:
        return sum(stage.busy or 0.0 for stage in self.stages)


@dataclass
class Workers:
    """The threads behind a stage with a buffer."""

    pool: Thread | None  # the threads that call its function
    feeder: Thread  # the thread that takes from the stages before it

    @property
    def is_saturated(self) -> bool:
        return any(thread is not None and thread.busy >= SATURATED * thread.threads for thread in (self.pool, self.feeder))


@dataclass
class Flow:
    """What a pipeline did between the first and the last look."""

    stages: list[Stage]  # in the order of the tree, the last one first
    training: Thread  # the training's thread, within ``next``
    workers: dict[int, Workers]  # node id of a stage -> its threads
    rate: float  # elements a second that the training takes
    gap_s: float | None  # between two calls of ``next``
    wait: float | None  # share of the time that the training waits in ``next``
    cpu: float  # cores that the process uses
    idle: float | None  # idle cores of the machine
    cores: int
    unit: Literal["batches", "elements"]
    counted_wait: float | None = None  # share of the time in calls of ``next`` of all datasets, by the ledger
    limiting: Stage | None = None
    counted: bool = True  # whether TensorFlow times the work of the limiting stage

    @property
    def may_wait(self) -> bool:
        """Whether the ledger counted a wait. It may be for another dataset."""
        return self.counted_wait is not None and self.counted_wait >= WAITS

    @property
    def threads(self) -> list[Thread]:
        """All threads except the training's."""
        return [thread for each in self.workers.values() for thread in (each.pool, each.feeder) if thread is not None]


def flow_of(pipeline: Pipeline) -> Flow | None:
    """Return the flow of a pipeline; None with fewer than two looks."""
    looks = pipeline.looks
    if len(looks) < 2 or looks[-1].at <= looks[0].at:
        return None
    first, last = looks[0], looks[-1]
    seconds = last.at - first.at
    root = _tree(looks)
    rate = max(0, last.model.elements - first.model.elements) / seconds
    training, workers = _threads(root)
    # With a distribution strategy TensorFlow does not time the calls of ``next``.
    counted = counted_wait(looks)
    wait = (counted if is_distributed(pipeline.steps) else _wait(looks, training, counted)) if rate else None
    gap = None if wait is None else (1 - wait) / rate
    cpu = max(0.0, last.cpu_s - first.cpu_s) / seconds
    idle = None if first.idle_s is None or last.idle_s is None else max(0.0, last.idle_s - first.idle_s) / seconds
    unit: Literal["batches", "elements"] = (
        "batches" if keras_makes_batches(pipeline.steps) or _keras_makes_batches(root) else "elements"
    )
    flow = Flow(list(root.tree()), training, workers, rate, gap, wait, cpu, idle, last.model.cores, unit, counted)
    if wait is not None and wait >= WAITS:
        flow.limiting, flow.counted = _limit(workers, training, None, wait, last.model.cores)
    return flow


def _wait(looks: Sequence[Reading], training: Thread, counted: float | None) -> float | None:
    """Return the share of time that the training spends in ``next``; at most ``counted``, the share by the ledger.

    The result is the median over the looks: each look has only the last 100 times between two calls of ``next``, and a long one
    may have come before these. For the same reason the result is None (not known) if the training seems to wait although most
    looks found an element ready.
    """
    pairs = ((waited_s(earlier, later), later.at - earlier.at) for earlier, later in zip(looks, looks[1:]))
    shares = [min(1.0, max(0.0, waited / seconds)) for waited, seconds in pairs if waited is not None]
    if not shares:
        return None
    wait = median(shares)
    if counted is not None:
        return min(wait, counted)
    empty = [sum(not _is_ready(stage, look) for look in looks) / len(looks) for stage in training.before]
    is_proven = len(looks) >= MIN_LOOKS and max(empty, default=training.busy) >= wait / 2
    return wait if wait < WAITS or is_proven else None


def _is_ready(stage: Stage, look: Reading) -> bool:
    """Return whether a look found an element ready in the stage's buffer."""
    node = look.model.nodes.get(stage.node.id)
    return node is not None and (node.buffered > 0 if "buffer_size" in node.parameters else stage.fill_of(node.buffered) >= FULL)


def _tree(looks: Sequence[Reading]) -> Stage:
    """Build the tree of stages; return its root, which is the last stage."""
    first, last = looks[0], looks[-1]
    seconds = last.at - first.at
    seen: set[int] = set()

    def by_number(number: int) -> list[InLook]:
        return [(each.model, each.model.nodes[number]) for each in looks if number in each.model.nodes]

    def stage(number: int, depth: int, inner: bool, parent: Stage | None, in_looks: Sequence[InLook]) -> Stage | None:
        """Make a stage and those below it. ``in_looks``: this stage in each look, or another epoch's stage at its position."""
        node = last.model.nodes.get(number)
        if node is None or number in seen or depth > MAX_DEPTH:
            return None
        seen.add(number)
        result = Stage(node, depth, inner)
        first_node = first.model.nodes.get(number)
        if first_node is not None:
            elements, spent = node.elements - first_node.elements, node.processing_ns - first_node.processing_ns
            result.rate = max(0, elements) / seconds
            result.busy = max(0, spent) * 1e-9 / seconds
        if first_node is None or not elements:
            longest_used = max((node for _, node in in_looks), key=lambda node: node.elements)
            elements, spent = longest_used.elements, longest_used.processing_ns
        result.element_s = spent * 1e-9 / elements if elements > 0 else None
        if first_node is None and parent is not None and parent.rate is not None and parent.node.ratio:
            result.rate = parent.rate * parent.node.ratio  # a new stage: each epoch may create it again
            result.busy = None if result.element_s is None else result.element_s * result.rate
        result.buffered = sum(node.buffered for _, node in in_looks) / len(in_looks)
        has_changing_inputs = node.node_class in INTERLEAVING
        for position, child in enumerate(node.inputs):
            comes_and_goes = has_changing_inputs and position > 0
            seen_below = by_number(child) if comes_and_goes else _below(in_looks, position)
            below = stage(child, depth + 1, inner or comes_and_goes, result, seen_below)
            if below is not None:
                result.children.append(below)
        if has_changing_inputs and result.rate:
            _estimate_inner(result, first)
        return result

    root = stage(last.model.root, 0, False, None, by_number(last.model.root))
    assert root is not None
    return root


def _below(above: Sequence[InLook], position: int) -> list[InLook]:
    """Return a stage's input at this position in each look, if it has the same name as in the newest look."""
    nodes = [(model, model.nodes.get(node.inputs[position])) for model, node in above if position < len(node.inputs)]
    last = nodes[-1][1] if nodes else None
    return [(model, node) for model, node in nodes if node is not None and last and node.name == last.name]


def _estimate_inner(stage: Stage, first: Reading) -> None:
    """Estimate the work of inner datasets from those that exist now: TensorFlow does not keep the work of ended ones."""
    inner = [child for child in stage.children[1:] if child.inner]
    elements = sum(child.node.elements for child in inner)
    if elements < MIN_INNER or all(child.node.id in first.model.nodes for child in inner):
        return
    for each in (each for child in inner for each in child.tree()):
        share = (stage.rate or 0.0) / elements
        each.rate, each.busy = each.node.elements * share, each.node.processing_ns * 1e-9 * share


def _keras_makes_batches(stage: Stage) -> bool:
    if "Batch" in stage.node.name and not stage.node.name.startswith("Unbatch"):
        return True
    inputs = [child for child in stage.children if not child.inner]
    is_same = stage.node.node_class not in INTERLEAVING and not stage.node.name.startswith(("Unbatch", "Window", "Group"))
    return is_same and bool(inputs) and all(map(_keras_makes_batches, inputs))


def _threads(root: Stage) -> tuple[Thread, dict[int, Workers]]:
    """Return the training's thread, and node id -> threads of each stage with a buffer."""
    training = _add_stages(root, Thread([root]))
    workers: dict[int, Workers] = {}
    waiting = list(training.before)
    while waiting:
        stage = waiting.pop()
        pool = None
        if stage.parallelism is not None:
            pool = Thread([stage, *stage.inner_stages], stage.parallelism)
        feeder = _add_stages(stage, Thread([] if pool else [stage]))
        workers[stage.node.id] = Workers(pool, feeder)
        waiting += feeder.before
    return training, workers


def _add_stages(stage: Stage, thread: Thread) -> Thread:
    """Add the stages below this one, up to the next buffers, to the thread; the stages with these buffers to ``before``."""
    for child in stage.children:
        if child.inner and stage.parallelism is not None:
            continue  # its pool runs it
        if child.node.is_async and not child.inner:
            thread.before.append(child)
        else:
            thread.stages.append(child)
            _add_stages(child, thread)
    return thread


# ----------------------------------------------------------------------------------------------------- the limiting stage


Limit = tuple[Optional[Stage], bool]  # the stage, and whether TensorFlow times its work


def _limit(workers: Mapping[int, Workers], thread: Thread, pool: Thread | None, available: float, cores: int) -> Limit:
    """Find the limiting stage among those of ``thread``, of the calls that it feeds (``pool``), and of the threads before it.

    ``available``: the share of time in which ``thread`` could work for the training.
    """
    if pool is not None and pool.busy >= SATURATED * pool.threads:
        return pool.stages[0], True
    if thread.busy >= SATURATED * available:
        makers = [stage for stage in thread.stages if not stage.inner and stage.inner_busy >= MIN_SHARE * available]
        top, busy = _top(thread)
        return (top if busy >= MIN_SHARE * available else makers[0] if makers else None), True
    suppliers = [(stage, workers[stage.node.id]) for stage in thread.before]
    late = [each for stage, each in suppliers if stage.fill < FULL or each.is_saturated]
    if late:
        if len(late) > 1:  # prefer those whose calls use all threads that TensorFlow has for calls, one per core
            late = [each for each in late if each.pool and each.pool.busy >= SATURATED * min(each.pool.threads, cores)] or late
        limits = {_limit(workers, each.feeder, each.pool, 1.0, cores) for each in late}
        return limits.pop() if len(limits) == 1 else (None, True)
    return _limit_outside_kernels(thread, available, pool, cores)


def _limit_outside_kernels(thread: Thread, available: float, pool: Thread | None, cores: int) -> Limit:
    """Find the stage that takes the time outside kernels."""
    top, busy = _top(thread) if thread.stages else (None, 0.0)
    if busy >= MIN_SHARE * available:
        return top, True
    if pool is not None and pool.busy >= SATURATED * min(pool.threads, cores):
        return pool.stages[0], True  # its calls use all of TensorFlow's threads for functions
    has_callers = bool(thread.before) or any(stage.calls_function for stage in thread.stages)
    if pool is not None and not has_callers and thread.busy < MIN_SHARE <= pool.busy / min(pool.threads, cores):
        return pool.stages[0], True  # no other stage with work is before the empty buffer
    callers = [stage for stage in thread.stages if not stage.inner and _may_take(stage, available - thread.busy)]
    if pool is not None and _may_take(pool.stages[0], pool.threads - pool.busy):
        if busy >= max(MIN_BUSY * available, FAR_BUSIER * pool.busy / pool.threads):
            return (None if callers else top), True
        callers.append(pool.stages[0])
    if not callers and not thread.before and pool is None and thread.busy >= MIN_BUSY * available:
        # All stages of the thread are timed, but the machine has no core for it.
        return (top if busy >= MIN_SHARE * thread.busy else None), True
    return (callers[0] if len(callers) == 1 else None), False


def _may_take(stage: Stage, untimed: float) -> bool:
    """Return whether the overhead of calling a stage's function may explain the untimed work (in threads)."""
    if not stage.calls_function:
        return False
    calls = max([stage.rate or 0.0, *(child.rate or 0.0 for child in stage.children[:1])])
    return stage.node.node_class in INTERLEAVING or untimed <= CALL_S * calls


def reader_of(name: str) -> str:
    """Return the reader in a stage's name, such as "FixedLengthRecord"; "" for a stage that does not read."""
    return next((reader for reader in READERS if name.startswith(reader)), "")


def _top(thread: Thread) -> tuple[Stage, float]:
    """Return the stage that takes most of the thread's time, and that time. A reader and the flat_map that TensorFlow puts around
    it are one stage."""
    busy_by_stage = {id(stage): stage.busy or 0.0 for stage in thread.stages}
    for stage in thread.stages:
        reader = _reader_of(stage)
        if reader is not None and id(reader) in busy_by_stage:
            busy_by_stage[id(reader)] += busy_by_stage.pop(id(stage))
    top = max((stage for stage in thread.stages if id(stage) in busy_by_stage), key=lambda stage: busy_by_stage[id(stage)])
    return _reader_of(top) or top, busy_by_stage[id(top)]


def _reader_of(stage: Stage) -> Stage | None:
    """Return the reader if the stage is a flat_map that TensorFlow put around one; else None."""
    return next((child for child in stage.children if reader_of(child.node.name)), None)
