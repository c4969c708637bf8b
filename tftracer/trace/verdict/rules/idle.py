"""Time in which nothing runs: an idle device, and ops that are ready but do not start."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.budget import parts_of
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.model import DeviceKind
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.gpu_gaps import Gaps
from tftracer.trace.verdict.rules.input_pipeline import CHEAPER_ADVICE, runs_beside
from tftracer.trace.verdict.step import GAP_NS, Step, sentence, spoken

IDLE_SHARE = 0.50  # minimal part of the step in which a device with work does nothing
SCHEDULING_SHARE = 0.50  # minimal part of the step in which ops are scheduled and none runs


def idle_device(step: Step) -> Sentence | None:
    """Name the device that is idle longest of those with work. The verdict drops this if another rule gives a reason."""
    idlest: tuple[float, Group] | None = None
    for group, activity in zip(step.activities.groups, step.activities.each):
        idle = parts_of(activity, step.trace.duration_ns)["idle"]
        if _is_judged(step, group) and len(activity.busy) and (idlest is None or idle > idlest[0]):
            idlest = (idle, group)
    if idlest is None or idlest[0] < IDLE_SHARE * step.whole_ns:
        return None
    idle, group = idlest
    gaps = next((gaps for gaps in step.gaps if gaps.group == group), None)
    beside = "" if gaps else runs_beside(step)
    whole = step.whole_words if step.has_steps else "this profile, which marks no steps"
    return sentence(
        "idle_device",
        f"Nothing is recorded on {spoken(group.title)} for {duration(idle)} ({percent(idle / step.whole_ns)}) of {whole}. "
        + (_reason_on_gpu(gaps, step.has_steps) if gaps else _reason_without_gaps(step, beside)),
        CHEAPER_ADVICE
        if beside
        else "See on the timeline what runs before its work begins and after it ends; give it more to do at a time (larger "
        "batches), or place the ops that run elsewhere on it.",
        idle / step.whole_ns,
        {"idle_ns": idle},
        {"nodes": [], "lane": group.key, "tab": "budget"},
    )


def _is_judged(step: Step, group: Group) -> bool:
    """Tell whether to judge this device: the only one, or a GPU; if some GPUs have kernels with launch times, one of these."""
    if group.kind is not DeviceKind.GPU:
        return len(step.activities.groups) == 1
    with_launch_times = [gaps.group for gaps in step.gaps]
    return not with_launch_times or group in with_launch_times


def _reason_on_gpu(gaps: Gaps, is_step: bool) -> str:
    starved, queued = float(gaps.starved.sum()), float(gaps.queued.sum())
    split = (
        f"for {duration(starved)} the host had not launched its next kernel yet, for {duration(queued)} it had, and the kernel "
        "waited."
    )
    if is_step:
        return f"Of that, {split}"
    span = gaps.span.length
    return (
        f"From its first kernel to its last {duration(span)} pass; between kernels it is idle for "
        f"{percent((starved + queued) / span)} of them: {split}"
    )


def _reason_without_gaps(step: Step, beside: str) -> str:
    if step.host is not None and step.host.programs and not step.shows_xla:
        return "XLA has compiled functions here, and the profile shows nothing of what XLA runs."
    return beside.lstrip() or "The trace does not show why."


def scheduling_delay(step: Step) -> Sentence | None:
    """Tell that ops are ready and none runs. A busy machine causes long gaps, the executor short ones; traces show neither."""
    waiting = step.activity.waiting - step.activity.busy - step.activity.launches
    share = waiting.length / step.whole_ns
    if share < SCHEDULING_SHARE:
        return None
    gaps = waiting.end - waiting.start
    long = gaps[gaps > GAP_NS]
    noun = "gap" if len(long) == 1 else "gaps"
    lengths = (
        f" {duration(float(long.sum()))} of that lie in {len(long):,} {noun} longer than {duration(GAP_NS)}." if len(long) else ""
    )
    start, end = int(waiting.start[gaps.argmax()]), int(waiting.end[gaps.argmax()])
    return sentence(
        "scheduling_delay",
        f"For {duration(waiting.length)} ({percent(share)}) ops are ready to run and none runs.{lengths} The trace does not show "
        "what the threads do then.",
        "Long gaps: see whether other processes keep the machine busy (top), or whether too few cores or threads are allowed "
        "(container limits, taskset, inter_op_parallelism_threads). Short gaps: TensorFlow's own cost of each op and each "
        "call; larger batches or several steps in one call make it weigh less.",
        share,
        {"waiting_ns": float(waiting.length), "long_gaps": float(len(long)), "long_gaps_ns": float(long.sum())},
        {"nodes": [], "start_ns": float(start), "end_ns": float(end), "tab": "scheduling"},
    )
