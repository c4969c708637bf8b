"""The step's use of the machine's CPUs, as recorded around the step (``TraceContext.cpu_use``)."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.model import DeviceKind
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step, evidence_of, sentence
from tftracer.trace.verdict.undelayed_op_times import WAITING_SHARE, lacked_cpu_s

COMPUTING_SHARE = 0.50  # minimal part of the step in which ops run
RECORDED_SHARE = 0.40  # minimal part of the measured time that the step takes: in the rest TensorFlow collects the trace
BUSIEST_SHARE = 0.75  # minimal part of the process's CPU time: one thread that used this much did nearly all of the work
BUSIEST_OF_WAITING = 0.85  # the same where threads waited for CPUs
RUNNABLE = 0.6, 2.2  # minimum and maximum of the average number of threads that ran or were ready to run
IN_TURNS = 1.1  # if on average at most this many threads were runnable, the threads ran one after another
LARGE_NS = 200_000  # an op this long has work for several threads
INTERRUPTED = 10  # an op that takes this many times its usual time was interrupted, because its work is the same as usual
LARGE_SHARE = 0.50  # minimal part of the op time that goes into ops of LARGE_NS or longer


def busy_machine(step: Step) -> Sentence | None:
    """Tell that threads waited for CPUs which the job itself did not use."""
    use, lacked = step.context.cpu_use, lacked_cpu_s(step)
    if not lacked:
        return None
    wall, cpu, queued, cpus, job = (use[key] for key in ("wall_s", "cpu_s", "run_queue_s", "cpus", "job_cpu_s"))
    runs = step.activity.compute | step.cover(step.python_functions)  # a free CPU shortens only the time in which these run
    share = lacked / (lacked + cpu) * (runs.length + step.around.before_ns + step.around.after_ns) / step.whole_ns
    part = "most" if lacked >= cpu else "a part"
    return sentence(
        "busy_machine",
        f"The machine was busy: your threads waited for a CPU for {part} of the time in which they had "
        f"work: {duration(queued * 1e9)}, summed over all threads, in the {duration(wall * 1e9)} around the step, in which "
        f"TensorFlow also collects the trace. The process and those that it started used {job / wall:.2g} of the "
        f"{_count(cpus)} that they may use: other programs had the rest.",
        "See what else runs on the machine (top), and which limits of CPU time the container or the job has. The times of single "
        "ops in this trace are longer than they would be; trace the step again on a quiet machine before you compare them.",
        share,
        {"run_queue_ns": queued * 1e9, "cpu_ns": job * 1e9, "wall_ns": wall * 1e9, "cpus": cpus},
        {"nodes": []},
    )


def one_core(step: Step) -> Sentence | None:
    """Tell that one thread at a time did nearly all of the work, though the ops are large enough for several."""
    use = step.context.cpu_use
    wall, cpu, cpus = use.get("wall_s", 0.0), use.get("cpu_s", 0.0), use.get("cpus", 0.0)
    busiest, queued = use.get("busiest_thread_s"), use.get("run_queue_s")
    if not wall or not cpu or cpus < 2 or busiest is None or queued is None or step.context.lock_holder:
        return None  # not known, or the busiest thread may be the one that holds Python's lock
    waited = queued >= WAITING_SHARE * (queued + cpu)  # if so, other threads may have had work, but no CPU
    runnable, is_one = (cpu + queued) / wall, busiest >= (BUSIEST_OF_WAITING if waited else BUSIEST_SHARE) * cpu
    if not RUNNABLE[0] <= runnable <= (RUNNABLE[1] if is_one else IN_TURNS):
        return None
    if not _has_work_for_several(step, wall):
        return None
    time = OpTime.of(step)
    large = time.work.duration >= LARGE_NS
    nodes = time.longest(large)
    return sentence(
        "one_core",
        f"{_threads(busiest / cpu if is_one else None, runnable)}: the process may use {_count(cpus)}. Ops of "
        f"{duration(LARGE_NS)} or longer take {percent(time.share(large))} of the op time; the longest is "
        f"{step.describe(nodes[0])}.",
        "See whether threads are limited to one: intra_op_parallelism_threads, TF_NUM_INTRAOP_THREADS, OMP_NUM_THREADS. If they "
        "are not, TensorFlow may be unable to split these ops.",
        (1 - 1 / cpus) * step.activity.compute.length / step.whole_ns,
        {"busiest_thread_ns": busiest * 1e9, "cpu_ns": cpu * 1e9, "wall_ns": wall * 1e9, "cpus": cpus},
        evidence_of(step, nodes, "ops"),
    )


def _threads(busiest: float | None, runnable: float) -> str:
    if busiest is None:
        return f"On average {runnable:.1f} threads of the process ran, or were ready to, in this step"
    return f"One thread used {percent(min(busiest, 1.0))} of the CPU time of this step"


def _has_work_for_several(step: Step, wall: float) -> bool:
    """Tell whether the step computes on CPUs for most of the measured time, mostly in large ops."""
    if any(group.kind is not DeviceKind.CPU for group in step.activities.groups):
        return False
    if step.ns < RECORDED_SHARE * wall * 1e9 or step.activity.compute.length < COMPUTING_SHARE * step.ns:
        return False
    time = OpTime.of(step)
    large = time.work.duration >= LARGE_NS
    if step.usual_ns is not None:  # a delayed op has no more work than usual
        usual = step.usual_ns[time.work.name]
        large &= (usual == 0) | (time.work.duration <= INTERRUPTED * usual)
    return time.share(large) >= LARGE_SHARE


def _count(cpus: float) -> str:
    return f"{cpus:.2g} CPUs" if cpus != 1 else "one CPU"
