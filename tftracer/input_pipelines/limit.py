"""How elements go through a pipeline: each stage's work, and the one that limits the others. Pure.

A stage with a buffer of its own (prefetch, parallel map) is worked by threads of its own; those before it, up to the next such
stage, run in one of them, one after the other. A stage limits where its threads work all the time, or where the buffer before its
thread is full and the one behind it empty. TensorFlow times what kernels do and not what it takes to call a function for each
element, nor the work of iterators that have ended inside of flat_map and interleave: that rest of a busy thread's time belongs
to the one stage in it that calls a function, and is nobody's if there are several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, NamedTuple, Optional

from tftracer.input_pipelines.model_proto import Model, Node
from tftracer.input_pipelines.script import gives_batches, is_distributed, kind_of
from tftracer.input_pipelines.sheet import Look, Pipeline

#: Such a share of their time threads work that hold the others up.
SATURATED = 0.75
#: A buffer is full from here on.
FULL = 0.5
#: What limits takes this part of its thread's time.
MOST = 0.5
#: A thread whose stages are all timed may seem this idle and limit: others have its core.
LEAST_BUSY = 0.25
#: The training waits for its input from this share of the time on; below the other, it is the slower side.
WAITS, WORKS = 0.10, 0.05
#: The call of a function for one element takes no longer than this: a rest that is larger is something else.
CALL_S = 2e-3
#: Node classes whose inputs, but the first, come and go.
MANY = (1, 2)
MAX_DEPTH = 200
#: More than 100 elements in a longer time than this: what lay between most of them is not known.
LONG_S = 2.5
#: TensorFlow keeps no longer time between two calls of ``next``.
LONGEST_GAP_S = 10.0
#: Elements that inner datasets have given: of fewer their work is not estimated.
LEAST_INNER = 20
#: Looks that prove that the training waits, where the ledger does not count it.
ENOUGH = 5
#: Stages that read: the flat_map around them is how TensorFlow builds them.
READERS = ("Generator", "TFRecord", "TextLine", "FixedLengthRecord")


@dataclass(eq=False)
class Stage:
    node: Node
    depth: int
    inner: bool  # of a dataset that flat_map or interleave makes
    rate: float | None = None  # elements a second
    element_s: float | None = None  # own time for an element
    busy: float | None = None  # threads that work for it, on average
    buffered: float = 0.0  # elements, on average
    children: list[Stage] = field(default_factory=list)

    @property
    def parallelism(self) -> float | None:
        given = self.node.parameters.get("parallelism")
        return max(1.0, given.value) if given else None

    @property
    def fill(self) -> float:
        return self.fill_of(self.buffered)

    def fill_of(self, buffered: float) -> float:
        """The part of its buffer that is full; may exceed 1."""
        given = self.node.parameters.get("buffer_size") or self.node.parameters.get("max_buffered_elements")
        room = given.value if given else self.parallelism or 1.0
        if self.node.name.startswith("MapAndBatch"):
            room *= 2  # those of a batch that is not complete are counted
        if "Interleave" in self.node.name:  # two thirds are of the datasets that come next
            return max(0.0, 3 * buffered / max(1.0, room) - 2)
        return buffered / max(1.0, room)

    @property
    def inner_stages(self) -> list[Stage]:
        """The stages of the datasets that it makes."""
        return [each for child in self.children if child.inner for each in _all(child)]

    @property
    def inner_busy(self) -> float:
        return sum(each.busy or 0.0 for each in self.inner_stages)

    @property
    def calls_function(self) -> bool:
        kind = kind_of(self.node.name)
        reads = any(reader_of(child.node.name) for child in self.children)
        return kind not in ("", "shuffle") and not (kind == "flat_map" and reads)


class Seen(NamedTuple):
    """A stage in one look."""

    model: Model
    node: Node


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

    pool: Thread | None  # that call its function
    feeder: Thread  # the one that takes from the stages before it

    @property
    def is_saturated(self) -> bool:
        return any(thread is not None and thread.busy >= SATURATED * thread.threads for thread in (self.pool, self.feeder))


@dataclass
class Flow:
    stages: list[Stage]  # as a tree, the last one first
    own: Thread  # the training's, within ``next``
    workers: dict[int, Workers]  # by the node of the stage whose they are
    rate: float  # elements a second that the training takes
    gap_s: float | None  # between two calls of ``next``
    wait: float | None  # share of the time that the training waits in ``next``
    cpu: float  # cores that the process uses
    idle: float | None  # cores of the machine that have nothing to do
    cores: int
    unit: Literal["batches", "elements"]
    limiting: Stage | None = None
    counted: bool = True  # whether TensorFlow times what the limiting stage does

    @property
    def threads(self) -> list[Thread]:
        """Without the training's own."""
        return [thread for each in self.workers.values() for thread in (each.pool, each.feeder) if thread is not None]


def flow_of(pipeline: Pipeline) -> Flow | None:
    """None: one look tells nothing of it."""
    looks = pipeline.looks
    if len(looks) < 2 or looks[-1].at <= looks[0].at:
        return None
    first, last = looks[0], looks[-1]
    seconds = last.at - first.at
    root = _tree(looks)
    rate = max(0, last.model.elements - first.model.elements) / seconds
    own, workers = _threads(root)
    # Where a distribution strategy hands the elements over, TensorFlow does not time the calls of ``next``.
    wait = (_counted_wait(looks) if is_distributed(pipeline.steps) else _wait(looks, own)) if rate else None
    gap = None if wait is None else (1 - wait) / rate
    cpu = max(0.0, last.cpu_s - first.cpu_s) / seconds
    idle = None if first.idle_s is None or last.idle_s is None else max(0.0, last.idle_s - first.idle_s) / seconds
    unit: Literal["batches", "elements"] = "batches" if gives_batches(pipeline.steps) or _gives_batches(root) else "elements"
    flow = Flow(list(_all(root)), own, workers, rate, gap, wait, cpu, idle, last.model.cores, unit)
    if wait is not None and wait >= WAITS:
        flow.limiting, flow.counted = _limit(workers, own, None, wait, last.model.cores)
    return flow


def _wait(looks: Sequence[Look], own: Thread) -> float | None:
    """The share of time in ``next``: what the times between two calls of it leave. Never more than the ledger counted.

    The median over the looks, for each has the last 100 of these times alone, and something long may have come before them. So
    it is not known, either, where the training is said to wait and most looks found an element ready for it.
    """
    pairs = ((waited_s(earlier, later), later.at - earlier.at) for earlier, later in zip(looks, looks[1:]))
    shares = [min(1.0, max(0.0, waited / seconds)) for waited, seconds in pairs if waited is not None]
    if not shares:
        return None
    wait, counted = median(shares), _counted_wait(looks)
    if counted is not None:
        return min(wait, counted)
    empty = [sum(not _is_ready(stage, look) for look in looks) / len(looks) for stage in own.before]
    is_proven = len(looks) >= ENOUGH and max(empty, default=own.busy) >= wait / 2
    return wait if wait < WAITS or is_proven else None


def _counted_wait(looks: Sequence[Look]) -> float | None:
    """The share of time in ``next`` as the ledger counted it; None where it counted no wait."""
    first, last = looks[0], looks[-1]
    return min(1.0, max(0.0, last.waited_s - first.waited_s) / (last.at - first.at)) if last.waits > first.waits else None


def waited_s(earlier: Look, later: Look) -> float | None:
    """Time in ``next`` between two looks: what the times between two calls of it leave. None: not known.

    It may be below 0: a time between two calls in which a look lies counts for the later look alone. When the first element is
    asked for is not known: until then the training may build its function. So it counts no more than the stages worked.
    """
    passed, seconds = later.model.elements - earlier.model.elements, later.at - earlier.at
    gaps = later.model.gaps_s[-passed:] if passed > 0 else ()
    is_known = gaps and 0 < seconds < LONGEST_GAP_S and (passed <= len(gaps) or seconds < LONG_S)
    if not is_known:
        return None
    waited = seconds - passed * sum(gaps) / len(gaps)
    return waited if earlier.model.elements else min(waited, _worked_ns(later) * 1e-9)


def _worked_ns(look: Look) -> int:
    return sum(node.processing_ns for node in look.model.nodes.values())


def _is_ready(stage: Stage, look: Look) -> bool:
    node = look.model.nodes.get(stage.node.id)
    return node is not None and (node.buffered > 0 if "buffer_size" in node.parameters else stage.fill_of(node.buffered) >= FULL)


def _tree(looks: Sequence[Look]) -> Stage:
    first, last = looks[0], looks[-1]
    seconds = last.at - first.at
    seen: set[int] = set()

    def by_number(number: int) -> list[Seen]:
        return [Seen(each.model, each.model.nodes[number]) for each in looks if number in each.model.nodes]

    def stage(number: int, depth: int, inner: bool, above: Stage | None, same: Sequence[Seen]) -> Stage | None:
        """``same``: it, as the looks saw it; where each epoch makes it anew, the one in its place."""
        node = last.model.nodes.get(number)
        if node is None or number in seen or depth > MAX_DEPTH:
            return None
        seen.add(number)
        made = Stage(node, depth, inner)
        was = first.model.nodes.get(number)
        if was is not None:
            elements, spent = node.elements - was.elements, node.processing_ns - was.processing_ns
            made.rate = max(0, elements) / seconds
            made.busy = max(0, spent) * 1e-9 / seconds
        if was is None or not elements:
            most = max((each.node for each in same), key=lambda each: each.elements)
            elements, spent = most.elements, most.processing_ns
        made.element_s = spent * 1e-9 / elements if elements > 0 else None
        if was is None and above is not None and above.rate is not None and above.node.ratio:
            made.rate = above.rate * above.node.ratio  # made anew for each epoch, say
            made.busy = None if made.element_s is None else made.element_s * made.rate
        made.buffered = sum(each.node.buffered for each in same) / len(same)
        many = node.node_class in MANY
        for place, child in enumerate(node.inputs):
            comes_and_goes = many and place > 0
            seen_below = by_number(child) if comes_and_goes else _below(same, place)
            below = stage(child, depth + 1, inner or comes_and_goes, made, seen_below)
            if below is not None:
                made.children.append(below)
        if many and made.rate:
            _estimate_inner(made, first)
        return made

    root = stage(last.model.root, 0, False, None, by_number(last.model.root))
    assert root is not None
    return root


def _below(above: Sequence[Seen], place: int) -> list[Seen]:
    """The input at this place, as the looks saw it."""
    nodes = [(model, model.nodes.get(node.inputs[place])) for model, node in above if place < len(node.inputs)]
    return [Seen(model, node) for model, node in nodes if node is not None and nodes[-1][1] and node.name == nodes[-1][1].name]


def _estimate_inner(stage: Stage, first: Look) -> None:
    """Of datasets that come and go, from what those do that are there now: what the others did is not kept."""
    inner = [child for child in stage.children[1:] if child.inner]
    elements = sum(child.node.elements for child in inner)
    if elements < LEAST_INNER or all(child.node.id in first.model.nodes for child in inner):
        return
    for each in (each for child in inner for each in _all(child)):
        share = (stage.rate or 0.0) / elements
        each.rate, each.busy = each.node.elements * share, each.node.processing_ns * 1e-9 * share


def _all(stage: Stage) -> Iterator[Stage]:
    yield stage
    for child in stage.children:
        yield from _all(child)


def _gives_batches(stage: Stage) -> bool:
    if "Batch" in stage.node.name and not stage.node.name.startswith("Unbatch"):
        return True
    inputs = [child for child in stage.children if not child.inner]
    is_same = stage.node.node_class not in MANY and not stage.node.name.startswith(("Unbatch", "Window", "Group"))
    return is_same and bool(inputs) and all(map(_gives_batches, inputs))


def _threads(root: Stage) -> tuple[Thread, dict[int, Workers]]:
    own = _run(root, Thread([root]))
    workers: dict[int, Workers] = {}
    waiting = list(own.before)
    while waiting:
        stage = waiting.pop()
        pool = None
        if stage.parallelism is not None:
            pool = Thread([stage, *stage.inner_stages], stage.parallelism)
        feeder = _run(stage, Thread([] if pool else [stage]))
        workers[stage.node.id] = Workers(pool, feeder)
        waiting += feeder.before
    return own, workers


def _run(stage: Stage, thread: Thread) -> Thread:
    """With what runs in the thread that takes from this stage's inputs."""
    for child in stage.children:
        if child.inner and stage.parallelism is not None:
            continue  # its pool runs it
        if child.node.is_async and not child.inner:
            thread.before.append(child)
        else:
            thread.stages.append(child)
            _run(child, thread)
    return thread


# ------------------------------------------------------------------------------------------------------------ what limits


Limit = tuple[Optional[Stage], bool]  # the stage, and whether TensorFlow times what it does


def _limit(workers: Mapping[int, Workers], thread: Thread, pool: Thread | None, available: float, cores: int) -> Limit:
    """``available``: the share of time in which this thread could work for the training."""
    if pool is not None and pool.busy >= SATURATED * pool.threads:
        return pool.stages[0], True
    if thread.busy >= SATURATED * available:
        makers = [stage for stage in thread.stages if not stage.inner and stage.inner_busy >= MOST * available]
        top = _top(thread)
        return (_reader_of(top) if (top.busy or 0.0) >= MOST * available else makers[0] if makers else None), True
    behind = [(stage, workers[stage.node.id]) for stage in thread.before]
    late = [each for stage, each in behind if stage.fill < FULL or each.is_saturated]
    if late:
        if len(late) > 1:  # those whose calls all run, where there are any: TensorFlow has a thread a core for them
            late = [each for each in late if each.pool and each.pool.busy >= SATURATED * min(each.pool.threads, cores)] or late
        found = {_limit(workers, each.feeder, each.pool, 1.0, cores) for each in late}
        return found.pop() if len(found) == 1 else (None, True)
    return _rest(thread, available, pool, cores)


def _rest(thread: Thread, available: float, pool: Thread | None, cores: int) -> Limit:
    """Whose the time is that no kernel took."""
    if thread.stages and (_top(thread).busy or 0.0) >= MOST * available:
        return _reader_of(_top(thread)), True
    if pool is not None and pool.busy >= SATURATED * min(pool.threads, cores):
        return pool.stages[0], True  # as many calls as TensorFlow has threads for functions
    has_callers = bool(thread.before) or any(stage.calls_function for stage in thread.stages)
    if pool is not None and not has_callers and thread.busy < MOST <= pool.busy / min(pool.threads, cores):
        return pool.stages[0], True  # nothing else lies before its empty buffer
    callers = [stage for stage in thread.stages if not stage.inner and _may_take(stage, available - thread.busy)]
    if pool is not None and _may_take(pool.stages[0], pool.threads - pool.busy):
        callers.append(pool.stages[0])
    if not callers and not thread.before and pool is None and thread.busy >= LEAST_BUSY * available:
        top = _reader_of(_top(thread))  # all of the thread's stages are timed, on a machine that has no core for it
        return (top if (top.busy or 0.0) >= MOST * thread.busy else None), True
    return (callers[0] if len(callers) == 1 else None), False


def _may_take(stage: Stage, rest: float) -> bool:
    """Whether the calls of a stage's function may take so many threads."""
    if not stage.calls_function:
        return False
    calls = max([stage.rate or 0.0, *(child.rate or 0.0 for child in stage.children[:1])])
    return stage.node.node_class in MANY or rest <= CALL_S * calls


def reader_of(name: str) -> str:
    """ "FixedLengthRecord" of a stage's name; "" of one that does not read."""
    return next((reader for reader in READERS if name.startswith(reader)), "")


def _top(thread: Thread) -> Stage:
    return max(thread.stages, key=lambda stage: stage.busy or 0.0)


def _reader_of(stage: Stage) -> Stage:
    """The reader that a flat_map of TensorFlow's own stands for."""
    return next((child for child in stage.children if reader_of(child.node.name)), stage)
