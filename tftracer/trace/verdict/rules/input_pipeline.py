"""A step that waits for its input: for ops such as IteratorGetNext, or for a stage of tf.data, which only a profile shows."""

from __future__ import annotations

import re

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.tf_data_stages import FORWARDING, AwaitedStage, Path, path_of
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.decode.xplane_reader import STAGE
from tftracer.trace.model import TraceContext
from tftracer.trace.units import counted, duration, percent
from tftracer.trace.verdict.rules.feeds_and_fetches import FEED_BYTES, PYTHON_DTYPES
from tftracer.trace.verdict.step import HELD_UP_NS, Step, evidence_of, mask, sentence

INPUT_SHARE = 0.20  # minimal part of the step in which nothing but input ops runs
#: If usual steps take at least AHEAD times as long as this step, and at least AHEAD_NS longer than its ops, they probably wait
#: for input, although this step does not (``_worked_ahead``).
AHEAD, AHEAD_NS = 2.0, 1_000_000
#: A step with a lower number is not compared with usual steps, because until then the usual time is that of the first steps,
#: which take long for other reasons.
AHEAD_STEPS = 10
#: If the wait in this trace is less than this part of a usual step's time, usual steps may wait longer (``_worked_ahead``).
AHEAD_WAIT = 0.25
#: Usual steps take longer than this step. If the trace shows stages of tf.data, and they work for less than this part of the
#: difference, usual steps do not wait for tf.data.
AHEAD_WORK = 0.1
#: If this step waits for more than this many times the time of a usual step, usual steps cannot wait as long.
FAR_LONGER = 3.0
AT_WORK_SHARE = 0.50  # minimal part of the wait in which tf.data is at work
#: From this many elements on, the text names how many elements a stage gets or gives, because each element costs the stage and
#: its inputs some microseconds.
MANY_ELEMENTS = 1_000
STAGE_PYTHON_SHARE = 0.50  # minimal part of the wait in which a Python function of tf.data runs
#: If ops of tf.data's functions run for this part of the wait (in ``runs_beside``: of the step), the advice is about the
#: functions, and not about the number of elements.
FUNCTIONS_SHARE = 0.50

CPU_ADVICE = (
    "See whether other processes or threads keep the cores busy (top), or whether too few cores are allowed (container limits, "
    "taskset)."
)

_GETS = re.compile(r"(Multi)?(Device)?Iterator\w*GetNext|QueueDequeue|ReaderRead")

#: Settings of a stage that are read from a profile: its parallel calls, whether TensorFlow sets them, its buffer, its name.
SETTINGS = ("parallelism", "autotune", "buffer_size", "buffered_elements", "name")
WORK_AHEAD = (
    "Let the input pipeline work ahead of the step, which helps as far as the machine has idle cores: tf.data with "
    "map(num_parallel_calls=tf.data.AUTOTUNE), prefetch, cache, "
    "interleave over files; more threads for a queue. Or do some of its work once, when the data is written."
)
PYTHON_ADVICE = (
    "Write the Python function with TensorFlow ops: num_parallel_calls helps little where it holds the GIL. Or call it once and "
    "keep what it returns: dataset.cache(), or write the data in that form."
)
ONCE_ADVICE = "put cache() behind the stage if the data fits, or do its work once, when the data is written"
CHEAPER_ADVICE = (
    "Make these functions cheaper. Or put cache() behind their stage if the data fits, or do their work once, when the data is "
    "written."
)
BATCH_FIRST = (
    "Every element costs each stage some microseconds. So batch right behind the source, before map and repeat, and let map work "
    "on whole batches; or keep the data in larger elements."
)
#: Pattern of a stage's name -> advice for it. The first match counts.
ADVICE: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"Generator"),
        "A Python generator makes one element at a time and holds the GIL. Let it make whole batches, read the data with tf.data "
        "itself (TFRecordDataset, from_tensor_slices), or interleave several generators with num_parallel_calls.",
    ),
    (
        re.compile(r"Parallel(Map|Filter|Batch|Interleave)|MapAndBatch"),
        f"Make its function cheaper, or {ONCE_ADVICE}. More calls at a time (num_parallel_calls=tf.data.AUTOTUNE) help only "
        "while cores are idle.",
    ),
    (
        re.compile(r"Map|Filter|Scan"),
        f"map(..., num_parallel_calls=tf.data.AUTOTUNE) runs several calls at a time. Or {ONCE_ADVICE}.",
    ),
    (
        re.compile(r"FlatMap"),
        "interleave(..., num_parallel_calls=tf.data.AUTOTUNE) reads several inputs at a time. Or read fewer, larger files. A "
        "Python generator (from_generator) is a FlatMap, too: let its function do less, or make whole batches.",
    ),
    (
        re.compile(r"Interleave"),
        "interleave(..., num_parallel_calls=tf.data.AUTOTUNE) reads several inputs at a time. Or read fewer, larger files.",
    ),
    (
        re.compile(r"TFRecord|TextLine|FixedLength|\w*Reader|Csv|FileCache|\w*Cache"),
        "Read several files at a time: interleave(..., num_parallel_calls=tf.data.AUTOTUNE); put the data on a faster disk; "
        "cache() it in memory if it fits.",
    ),
    (re.compile(r"Shuffle"), "A smaller shuffle buffer fills sooner; shuffle file names or indices instead of large elements."),
    (re.compile(r"\w*Batch"), "batch(..., num_parallel_calls=tf.data.AUTOTUNE) copies several elements at a time."),
)


def input_pipeline(step: Step) -> Sentence | None:
    """Tell that input ops run and nothing else does.

    Work that tf.data does ahead of the step, in its own threads, does not count, because the step does not wait for it.
    """
    selected = step.waits_for_input
    alone = step.cover(selected) - step.activity.compute - step.activity.communication - step.activity.copies
    share = alone.length / step.whole_ns
    if share < INPUT_SHARE or alone.length < AHEAD_WAIT * (step.context.median_s or 0.0) * 1e9:
        ahead = _worked_ahead(step)
        if ahead or share < INPUT_SHARE:
            return ahead
    numbers = {"waited_ns": float(alone.length), "ops": float(selected.sum())}
    if len(step.stages.waited_for):
        at_work = step.cover(mask(step.trace, step.stages.waited_for)) & alone
        if at_work.length < AT_WORK_SHARE * alone.length:
            functions = step.cover(step.stages.ops) & alone
            if (at_work | functions).length >= AT_WORK_SHARE * alone.length:
                return _waits_for_functions(step, alone, at_work, functions, numbers)
            return _thread_does_not_run(step, alone, at_work, numbers)
        awaited = step.stages.awaited_stage(at_work)
        if awaited is not None and awaited.began_before and (reason := _why_not_usual(step, alone)):
            return _waits_only_here(step, alone, reason, numbers)
        if awaited is not None:
            return _waits_for_stage(step, awaited, alone, numbers)
    nodes = step.longest(selected)
    return sentence(
        "input_bound",
        f"Input ops run for {duration(alone.length)} ({percent(share)}) in which nothing else does; the longest is "
        f"{step.describe(nodes[0])}.{seen_before(step.context)}",
        step.context.input_advice or WORK_AHEAD,
        share,
        numbers,
        evidence_of(step, nodes, "budget"),
    )


def runs_beside(step: Step) -> str:
    """Say that functions of tf.data run in other threads for most of the step; "" otherwise.

    For sentences about idle time. If this text is not empty, their advice is ``CHEAPER_ADVICE``.
    """
    functions = step.cover(step.stages.ops) & step.called
    if functions.length < FUNCTIONS_SHARE * step.whole_ns:
        return ""
    longest = step.longest(step.stages.ops)[0]
    return (
        f" Functions of tf.data run in other threads for {duration(functions.length)} of the step (the longest op is "
        f"{step.describe(longest)}): the step may have waited for their result, or for the CPUs that they took."
    )


def seen_before(context: TraceContext) -> str:
    """Return a sentence on what limited the input pipeline just before the trace; "" if nothing did or it is not known."""
    text = context.input_text
    return f" In the seconds before, without a trace, {text[0].lower()}{text[1:]}" if text else ""


def _worked_ahead(step: Step) -> Sentence | None:
    """Tell that usual steps probably wait for input: they take far longer than this step's ops, which did not have to wait."""
    usual_ns, ns, nodes = (step.context.median_s or 0.0) * 1e9, step.trace.duration_ns, _input_ops_of_short_step(step)
    if not nodes or (_hardly_works(step, usual_ns - ns) and not _waits_in_other_traces(step, nodes[0], usual_ns)):
        return None
    return _short_step(
        step,
        f"The step asks for its input ({step.describe(nodes[0])}): while TensorFlow starts and collects traces, the input "
        "pipeline works ahead. So usual steps probably wait for input, and this trace does not show for how long.",
        nodes,
    )


def _short_step(step: Step, reason: str, nodes: list[int]) -> Sentence:
    """Tell that usual steps take far longer than this one, and the possible reason."""
    usual_ns, ns = (step.context.median_s or 0.0) * 1e9, step.trace.duration_ns
    return sentence(
        "input_bound",
        f"The ops of this step take {duration(ns)}, a usual step of the run {duration(usual_ns)}. {reason}"
        f"{seen_before(step.context)}",
        step.context.input_advice or WORK_AHEAD,
        1 - ns / usual_ns,
        {"usual_step_ns": usual_ns, "ops_ns": float(ns)},
        evidence_of(step, nodes, "budget"),
    )


def _input_ops_of_short_step(step: Step) -> list[int]:
    """Return the ops that get the input, the longest first, if usual steps take far longer than this one; else []."""
    usual_ns, ns = (step.context.median_s or 0.0) * 1e9, step.trace.duration_ns
    took_ns = ns if step.is_session else (step.context.step_s or 0.0) * 1e9
    feeds_data = any((v["bytes"] or 0) >= FEED_BYTES or v["dtype"] in ("string", *PYTHON_DTYPES) for v in step.context.fed or [])
    is_early = (step.context.step or 0) < AHEAD_STEPS
    if feeds_data or is_early or usual_ns < AHEAD * max(took_ns, ns, 1.0) or usual_ns - ns < AHEAD_NS:
        return []
    gets = step.trace.op_types_where(_GETS.match)[step.trace.op]
    return step.longest(step.process_nodes & gets)


def may_wait_in_usual_steps(step: Step) -> Sentence | None:
    """Tell that usual steps take far longer than this one, which gets its input, and that the reason is not known."""
    nodes = _input_ops_of_short_step(step)
    if not nodes:
        return None
    return _short_step(
        step,
        f"The rest of usual steps is not in this trace. They may wait for input ({step.describe(nodes[0])}): while TensorFlow "
        "starts and collects traces, the input pipeline works ahead.",
        nodes,
    )


def _waits_in_other_traces(step: Step, node: int, usual_step_ns: float) -> bool:
    """Tell whether the op that gets the input takes a notable part of a usual step in other traces of the run."""
    return step.usual_ns is not None and float(step.usual_ns[step.trace.name[node]]) >= AHEAD_WAIT * usual_step_ns


def _hardly_works(step: Step, missing_ns: float) -> bool:
    """Tell whether the trace shows tf.data's stages, and they work for far less than ``missing_ns``, which usual steps add."""
    stages = step.stages.members | step.stages.ops
    return bool(stages.any()) and step.cover(stages).length < AHEAD_WORK * missing_ns


def _waits_for_functions(step: Step, alone: Cover, at_work: Cover, functions: Cover, numbers: dict[str, float]) -> Sentence:
    """Tell that functions of tf.data run in other threads, which may take the CPU from the thread that asks for the batch."""
    share = alone.length / step.whole_ns
    nodes, ops = step.longest(step.waits_for_input), step.longest(step.stages.ops)
    return sentence(
        "input_bound",
        f"The step waits {duration(alone.length)} ({percent(share)}) for {step.describe(nodes[0])}. For "
        f"{duration(functions.length)} of that functions of tf.data run in other threads (the longest op is "
        f"{step.describe(ops[0])}); the thread that asks for the batch runs for {duration(at_work.length)}."
        f"{seen_before(step.context)}",
        step.context.input_advice or (PYTHON_ADVICE if step.python_ops[ops[0]] else CHEAPER_ADVICE),
        share,
        {**numbers, "at_work_ns": float(at_work.length), "functions_ns": float(functions.length)},
        evidence_of(step, ops, "budget"),
    )


def _thread_does_not_run(step: Step, alone: Cover, at_work: Cover, numbers: dict[str, float]) -> Sentence:
    """Tell that the thread in which the op asks for input ran for less than AT_WORK_SHARE of the wait."""
    share, usual_ns = alone.length / step.whole_ns, (step.context.median_s or 0.0) * 1e9
    nodes = step.longest(step.waits_for_input)
    is_only_here = 0 < usual_ns <= alone.length
    usual = f" Usual steps take {duration(usual_ns)} in all, so they hardly wait." if is_only_here else ""
    return sentence(
        "scheduling_delay",
        f"The step waits {duration(alone.length)} ({percent(share)}) for {step.describe(nodes[0])}, but tf.data is at work for "
        f"only {duration(at_work.length)} of that. In the rest of the time, the thread that asks tf.data for the batch does not "
        f"run. The trace does not show why.{usual}",
        CPU_ADVICE,
        share,
        {**numbers, "at_work_ns": float(at_work.length), **({HELD_UP_NS: float(alone.length)} if is_only_here else {})},
        evidence_of(step, nodes, "budget"),
    )


def _why_not_usual(step: Step, alone: Cover) -> str:
    """Say why usual steps cannot wait this long; "" if they may."""
    usual, rest = (step.context.median_s or 0.0) * 1e9, step.whole_ns - alone.length
    if alone.length > FAR_LONGER * usual > 0:
        return f"far longer than usual steps take in all ({duration(usual)}), so usual steps hardly wait"
    if 0 < usual <= rest:
        return (
            f"and takes {duration(rest)} without this wait, no less than usual steps take in all ({duration(usual)}), so usual "
            "steps hardly wait"
        )
    return ""


def _waits_only_here(step: Step, alone: Cover, reason: str, numbers: dict[str, float]) -> Sentence:
    """Tell that the stage which the step waited for began before the trace, and that usual steps cannot wait this long."""
    share = alone.length / step.whole_ns
    return sentence(
        "input_bound",
        f"The step waits {duration(alone.length)} ({percent(share)}) for tf.data, {reason}. The stage that worked then began "
        f"before the trace, so its time is not recorded.{seen_before(step.context)}",
        f"{step.context.input_advice} {CPU_ADVICE} Trace another step to see whether it waits, too.".lstrip(),
        share,
        {**numbers, "usual_step_ns": (step.context.median_s or 0.0) * 1e9, HELD_UP_NS: float(alone.length)},
        evidence_of(step, step.longest(step.waits_for_input), "budget"),
    )


def _waits_for_stage(step: Step, awaited: AwaitedStage, alone: Cover, numbers: dict[str, float]) -> Sentence:
    share = alone.length / step.whole_ns
    settings = _settings(step)
    awaited, elements = _stage_with_many_elements(step, awaited, alone)
    ran = (awaited.cover & alone).length
    python = step.cover(step.stages.ops & step.python_ops) & alone
    in_python = python.length >= STAGE_PYTHON_SHARE * alone.length
    functions = step.cover(step.stages.ops) & alone
    explanation = (
        _explain_begun_before(awaited, settings)
        if awaited.began_before
        else _explain_recorded(awaited, settings.get(awaited.path, {}), ran)
    )
    text = f"The step waits {duration(alone.length)} ({percent(share)}) for tf.data. {explanation}"
    if elements >= MANY_ELEMENTS:
        verb = "gets" if step.stages.inputs(awaited.path) else "gives"
        text += f" It {verb} {elements:,} elements one by one in that time."
    if in_python:
        text += f" A Python function of tf.data runs for {duration(python.length)} of that time."
    if awaited.path[1:2] and not any(name == "Prefetch" for name in awaited.path):
        text += " Nothing is prefetched."
    text += seen_before(step.context)
    nodes = step.longest(mask(step.trace, step.stages.nodes[awaited.path])) or step.longest(step.waits_for_input)
    numbers |= {"stage_ns": float(ran)} if not awaited.began_before else {}
    return sentence(
        "input_bound",
        text,
        step.context.input_advice or _advice(awaited.path, elements, in_python, functions.length / max(alone.length, 1)),
        share,
        {**numbers, **({"python_ns": float(python.length)} if in_python else {})},
        evidence_of(step, nodes, "budget"),
    )


def _stage_with_many_elements(step: Step, awaited: AwaitedStage, alone: Cover) -> tuple[AwaitedStage, int]:
    """Return the stage to name, and how many elements it gets (a source: gives) during the wait. If the awaited stage only
    forwards many elements, it is the stage above that asks for them: they delay that stage."""
    stages = step.stages

    def gets(path: Path) -> int:
        inputs = [stages.nodes[below] for below in stages.inputs(path)] or [stages.nodes[path]]
        return max((int(alone.contains(step.trace.start[rows]).sum()) for rows in inputs), default=0)

    path = awaited.path
    while FORWARDING.fullmatch(path[-1]) and len(path) > 1 and gets(path[:-1]) >= MANY_ELEMENTS:
        path = path[:-1]
    if path != awaited.path and len(stages.nodes[path]):
        awaited = AwaitedStage(path, False, stages.cover(path), None)
    return awaited, gets(awaited.path)


def _settings(step: Step) -> dict[Path, dict[str, str]]:
    recorded = step.host.settings(re.compile(STAGE), SETTINGS) if step.host is not None else {}
    return {path_of(name): settings for name, settings in recorded.items()}


def _explain_recorded(awaited: AwaitedStage, settings: dict[str, str], ran: int) -> str:
    calls = _at_a_time(awaited, settings)
    return f"The stage that holds it up is {_described(awaited.path)}, which runs for {duration(ran)} of that{calls}."


def _at_a_time(awaited: AwaitedStage, settings: dict[str, str]) -> str:
    """Say how many calls a stage runs at once, or how full its buffer is, if known."""
    parallelism, filled, size = (_count(settings, name) for name in ("parallelism", "buffered_elements", "buffer_size"))
    if parallelism is not None:
        calls = counted(parallelism, "call")
        return f", {calls} at a time{' (set by TensorFlow)' if settings.get('autotune') == 'true' else ''}"
    if filled is not None and size is not None and filled + 1 < size:
        return f"; its buffer holds {filled:,} of {size:,} elements"
    return ", one call at a time" if awaited.path[-1] in ("Map", "Filter", "FlatMap", "Interleave") else ""


def _count(settings: dict[str, str], name: str) -> int | None:
    """Return this setting as a number; None if it is missing or not a number, since the profile may be any file."""
    text = settings.get(name, "")
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def _explain_begun_before(awaited: AwaitedStage, settings: dict[Path, dict[str, str]]) -> str:
    stage = awaited.path[-1]
    if FORWARDING.fullmatch(stage):
        source = re.fullmatch(r"inject/prefetch_(\w+?)(?:Dataset\w*)?/.*", settings.get(awaited.path, {}).get("name", ""))
        source_name = f", {source.group(1)}," if source else ""
        return (
            f"{_described(awaited.path)} has nothing ready: what it reads from{source_name} was at work before the trace began, "
            "so its time is not recorded."
        )
    inputs = f"; what it reads took {duration(awaited.inputs_ns)}" if awaited.inputs_ns is not None else ""
    return (
        f"The stage that holds it up is probably {_described(awaited.path)}: it was at work before the trace began, so its own "
        f"time is not recorded{inputs}."
    )


def _described(path: Path) -> str:
    """Describe a stage and its place: ``Map (Root > Prefetch > Map)``."""
    return f"{path[-1]} ({' > '.join(path)})"


def _advice(path: Path, elements: int, in_python: bool, functions_share: float) -> str:
    """Choose the advice. ``functions_share``: the share of the wait in which ops of tf.data's functions run."""
    if elements >= MANY_ELEMENTS and not in_python and functions_share < FUNCTIONS_SHARE:
        return BATCH_FIRST
    if in_python and path[-1] != "Generator":
        return PYTHON_ADVICE
    return next((advice for pattern, advice in ADVICE if pattern.match(path[-1])), WORK_AHEAD)
