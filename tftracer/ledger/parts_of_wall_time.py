"""Describes the ledger in words: parts that add up to the wall time, their items, and the largest part that can shrink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tftracer.contract.ledger import Ledger, LedgerItem, LedgerKind, LedgerPart
from tftracer.contract.session import Run, RunWithoutTraces
from tftracer.contract.stalls import CodeLine, GapProfile, Period, StallCause
from tftracer.ledger.activity import BUILDING, CHECKPOINTS, EVALUATION, INPUT, STEPS, STOPPED, SUSPENDED, TRACER
from tftracer.ledger.add_up_activities import SlowEntry
from tftracer.ledger.rows_of_slow_steps import rows_by_code, with_causes_found_later
from tftracer.ledger.saved_ledger import Entry, LedgerFacts, has_steps
from tftracer.slow.record.sums_by_kind import SlowKinds
from tftracer.trace.units import counted, duration

NAMES: dict[LedgerKind, str] = {
    "start": "Start, until the first step",
    "building": "Building and tracing functions",
    "input": "Waiting for input",
    "steps": "Steps",
    "slow": "Slow steps, beyond the usual",
    "python": "Between steps",
    "evaluation": "Evaluation and prediction",
    "checkpoints": "Checkpoints and summaries",
    "suspended": "Stopped or asleep",
    "tracer": "tftracer",
    "end": "After the last step",
    "unknown": "Not known",
}
_KINDS: dict[int, LedgerKind] = {
    SUSPENDED: "suspended",
    TRACER: "tracer",
    BUILDING: "building",
    CHECKPOINTS: "checkpoints",
    EVALUATION: "evaluation",
    INPUT: "input",
    STEPS: "steps",
}
#: Causes of slow steps whose names say little.
CAUSE_NAMES = {"machine": "no CPU", "unknown": "not known why"}
#: Parts that can become smaller, and how.
_ADVICE: dict[LedgerKind, str] = {
    "start": "Cache what is prepared before the training, and import less.",
    "building": "Pass tensors of one shape and type to compiled functions, or give them an input_signature.",
    "input": "The training waits for its dataset: change the stage that limits its pipeline (Input pipelines).",
    "slow": "See the causes of the slow steps.",
    "python": "See the lines between the steps: move their work out of the loop, or do it less often.",
    "evaluation": "Evaluate less often, or on fewer batches.",
    "checkpoints": "Save less often, or asynchronously.",
}
#: The advice about building functions if no function was traced a second time.
_TRACED_ONCE = "Each function was traced once, when it was called first: in a longer training that weighs less."
#: A shorter time without a CPU is not mentioned: in seconds, and as a share of the wall time.
MIN_NO_CPU_S, MIN_NO_CPU = 1.0, 0.01
#: The same for the CPU time of the tracer's own threads.
MIN_OWN_S, MIN_OWN = 1.0, 0.005
#: The largest part besides the steps is named if it has at least these shares of the wall time and of the time in steps;
#: else the steps are named.
MIN_SHARE, MIN_OF_STEPS = 0.05, 0.25
#: The doubt about waits for input within steps, which are estimated from the pipeline.
EPOCHS = (
    "Steps may have waited for longer than is counted as input: waits at the start and in the last second of each epoch, and of "
    "ten seconds and more, are not known and count as steps."
)
#: The doubt about functions that were traced for each of their calls.
NEVER_AGAIN = (
    "No signature of {} was called a second time, so it is not known how much of its calls is TensorFlow's work on new graphs: "
    "of each call, as much as the shortest call took counts as a step."
)
MAX_ITEMS = 20
WITHIN_STEPS = "within steps, as its pipeline tells"
#: Causes of slow steps that mostly waited for their dataset. For ``py_function``, the step itself may have called the function.
WAITS_FOR_INPUT = ("input", "py_function")
#: Causes of slow steps whose time counts in other parts.
COUNTED_ELSEWHERE: tuple[StallCause, ...] = ("retrace", "checkpoint", "other_run", "input")
SLOW_ELSEWHERE = (
    "Checkpoints, evaluations, tracing and waits for input in slow steps count in their own parts, not as slow steps."
)
#: A line with fewer samples is not listed: it may belong to a slow step nearby, whose time is counted there.
MIN_SAMPLES = 3
NOTHING = "This session was recorded without a ledger: by an older version, or before its process did anything."


def ledger(
    facts: LedgerFacts | None,
    runs: Sequence[RunWithoutTraces],
    gaps_of: Callable[[int], GapProfile | None],
    steps_lost: int = 0,
    kinds_of: Callable[[int], SlowKinds] | None = None,
    periods_of: Callable[[int], Sequence[Period]] | None = None,
) -> Ledger:
    """Return the ledger.

    ``gaps_of``: returns the sampled lines between the steps of a run; None if there are none. ``kinds_of``: returns the kinds of
    a run's slow steps; None: not known. ``periods_of``: returns their periods; None: not known.
    """
    if facts is None or facts.wall_s <= 0:
        return {
            "started_at": None,
            "until": None,
            "duration_s": 0.0,
            "parts": [],
            "largest": None,
            "text": NOTHING,
            "advice": "",
            "doubts": [],
        }
    known = {run["id"]: run for run in runs if not run["origin"]}
    items: dict[LedgerKind, list[LedgerItem]] = {kind: [] for kind in NAMES}
    for entry in facts.entries:
        items[_KINDS[entry.rank]].append(item(_name(entry, known), entry.own_s, entry.times, entry.run_id or None))
    if facts.asleep_s:
        items["suspended"].append(item("the machine was asleep", facts.asleep_s))
    rest: dict[LedgerKind, float] = {"start": facts.start_s, "python": facts.between_s, "end": facts.end_s, "unknown": 0.0}
    if not has_steps(facts):
        rest = {"start": 0.0, "python": 0.0, "end": 0.0, "unknown": sum(rest.values())}
    never_again = _take_first_calls(facts, known, items)
    _take_step_waits(facts, items)
    rows = rows_by_code(facts.slow)
    _take_slow(with_causes_found_later(rows, kinds_of, periods_of) if kinds_of else rows, known, items, rest)
    busiest = max(items["steps"], key=lambda each: each["duration_s"], default=None)
    profile = gaps_of(busiest["run_id"]) if busiest and busiest["run_id"] else None
    profile = None if profile and profile["whole_turns"] else profile
    items["python"] = _lines(profile, rest["python"])
    answer = _ledger(facts, items, rest, profile, steps_lost)
    if kinds_of and any(kind["cause"] in COUNTED_ELSEWHERE for run_id in known for kind in kinds_of(run_id).of_run(run_id)):
        answer["doubts"].append(SLOW_ELSEWHERE)
    answer["doubts"] += [NEVER_AGAIN.format(title.partition(" (")[0]) for title in never_again]
    if answer["largest"] == "building" and not _is_traced_again(facts, known):
        answer["advice"] = _TRACED_ONCE
    return answer


def item(name: str, seconds: float, times: int | None = None, run_id: int | None = None) -> LedgerItem:
    return {"name": name, "duration_s": seconds, "times": times, "run_id": run_id}


def _name(entry: Entry, runs: Mapping[int, RunWithoutTraces]) -> str:
    if entry.name:
        return entry.name
    return runs[entry.run_id]["title"] if entry.run_id in runs else "steps of a run that was not listed"


# ------------------------------------------------------------------------------------- times that belong to another part


def _take_first_calls(
    facts: LedgerFacts, runs: Mapping[int, RunWithoutTraces], items: dict[LedgerKind, list[LedgerItem]]
) -> list[str]:
    """Count as building what a run's first step takes beyond the mean of its other steps: TensorFlow optimizes the graph then.

    Signatures of one function are taken together. If none was called again, the shortest call counts as the usual one, so a
    function that was called once has no excess. Return the titles of functions with several signatures, none called again.
    """
    families: dict[object, list[Entry]] = {}
    for entry in facts.entries:
        if entry.run_id in runs and entry.first_s is not None:
            families.setdefault(function_key(runs[entry.run_id]), []).append(entry)
    usual = {family: _usual_s(entries) for family, entries in families.items()}
    for entry in facts.entries:
        if entry.run_id not in runs or entry.first_s is None:
            continue
        excess = entry.first_s - usual[function_key(runs[entry.run_id])]
        excess = _take(_of_run(items[_KINDS[entry.rank]], entry.run_id), max(0.0, excess))
        if excess > 0:
            items["building"].append(item(f"first call: {runs[entry.run_id]['title']}", excess, 1, entry.run_id))
    never_called_again = [
        entries for entries in families.values() if len(entries) > 1 and all(entry.times == 1 for entry in entries)
    ]
    return [runs[entries[0].run_id]["title"] for entries in never_called_again]


def _usual_s(entries: Sequence[Entry]) -> float:
    """Return the usual time of a call, from the entries of one function."""
    firsts = [entry.first_s or 0.0 for entry in entries]
    later_calls = sum(entry.times - 1 for entry in entries)
    return (sum(entry.own_s for entry in entries) - sum(firsts)) / later_calls if later_calls > 0 else min(firsts)


def _is_traced_again(facts: LedgerFacts, runs: Mapping[int, RunWithoutTraces]) -> bool:
    """Return whether a function was traced more than once, or has several signatures."""
    signatures = Counter(function_key(runs[entry.run_id]) for entry in facts.entries if entry.run_id in runs)
    return max(signatures.values(), default=0) > 1 or any(entry.times > 1 for entry in facts.entries if entry.rank == BUILDING)


def function_key(run: RunWithoutTraces | Run) -> object:
    """Return a key that the runs of one compiled function, one for each signature, have in common."""
    return tuple(run["fetches"]) if run["definition"] else run["id"]


def _take_step_waits(facts: LedgerFacts, items: dict[LedgerKind, list[LedgerItem]]) -> None:
    """Count waits within steps as input, and subtract them from the steps with the most time."""
    for wait in facts.step_waits:
        taken = _take(sorted(items["steps"], key=_longest_first), wait.own_s)
        items["input"].append(item(f"{WITHIN_STEPS}: {wait.name}", taken))


def _take_slow(
    rows: Sequence[SlowEntry],
    runs: Mapping[int, RunWithoutTraces],
    items: dict[LedgerKind, list[LedgerItem]],
    rest: dict[LedgerKind, float],
) -> None:
    """Count slow steps as slow or suspended, and subtract their time from the parts that contain it."""
    for slow in rows:
        seconds = slow.own_s
        if slow.inside:
            waits = [wait for wait in items["input"] if wait["name"].startswith(WITHIN_STEPS)]  # they contain these slow steps
            waited_s = _take(waits, seconds) if slow.cause in WAITS_FOR_INPUT else 0.0
            seconds = waited_s + sum(
                _take(_of_run(items[kind], slow.run_id), seconds - waited_s) for kind in ("steps", "evaluation")
            )
        else:
            seconds = min(seconds, rest["python"])
            rest["python"] -= seconds
        if seconds > 0 and slow.cause == "stopped":
            _add_stop(items["suspended"], seconds, slow.times)
        elif seconds > 0:
            where = "" if slow.inside else " between steps"
            name = (
                f"{CAUSE_NAMES.get(slow.cause) or slow.cause.replace('_', ' ')}{where}{f': {slow.place}' if slow.place else ''}"
            )
            items["slow"].append(item(name, seconds, slow.times, slow.run_id if slow.run_id in runs else None))


def _add_stop(items: list[LedgerItem], seconds: float, times: int) -> None:
    """Add a stop that only the slow-step watch has seen, not the writer's thread."""
    known = next((each for each in items if each["name"] == STOPPED), None)
    if known is None:
        items.append(item(STOPPED, seconds, times))
    else:
        known["duration_s"] += seconds
        known["times"] = (known["times"] or 0) + times


def _take(items: Sequence[LedgerItem], seconds: float) -> float:
    """Subtract up to ``seconds`` from the items, and return the subtracted seconds."""
    taken = 0.0
    for each in items:
        part = min(each["duration_s"], seconds - taken)
        each["duration_s"] -= part
        taken += part
    return taken


def _of_run(items: list[LedgerItem], run_id: int) -> list[LedgerItem]:
    return [each for each in items if each["run_id"] == run_id][:1]


def _lines(profile: GapProfile | None, seconds: float) -> list[LedgerItem]:
    """Return the lines between the steps. Each gets the share of that time that it had in the samples."""
    if profile is None:
        return []
    lines = [line for line in profile["python_lines"] if line["share"] * profile["samples"] >= MIN_SAMPLES]
    return [item(_line(line), line["share"] * seconds, None, profile["run_id"]) for line in lines]


def _line(line: CodeLine) -> str:
    where = f"{line['file'].rpartition('/')[2]}:{line['line']}"
    return f"{line['owner'] or line['function']} ({where})"


def _ledger(
    facts: LedgerFacts,
    items: dict[LedgerKind, list[LedgerItem]],
    rest: dict[LedgerKind, float],
    profile: GapProfile | None,
    lost: int,
) -> Ledger:
    seconds = {kind: rest[kind] if kind in rest else sum(each["duration_s"] for each in items[kind]) for kind in NAMES}
    present = {kind: length for kind, length in seconds.items() if length > 0}
    wall_s = sum(present.values())
    shares = permilles(list(present.values()))
    parts: list[LedgerPart] = [
        {
            "kind": kind,
            "name": NAMES[kind],
            "duration_s": length,
            "permille": permille,
            "items": sorted((each for each in items[kind] if each["duration_s"] > 0), key=_longest_first)[:MAX_ITEMS],
            "text": _text(kind, facts, profile),
        }
        for (kind, length), permille in zip(present.items(), shares)
    ]
    largest, text, advice = _largest(present, wall_s)
    doubts = []
    if facts.recorded_s is None:
        doubts.append("When the process began is not known on this system: the ledger begins with the recording.")
    if facts.no_cpu_s is not None and facts.no_cpu_s >= max(MIN_NO_CPU_S, MIN_NO_CPU * wall_s):
        doubts.append(
            f"For {long_duration(facts.no_cpu_s)} ({facts.no_cpu_s / wall_s:.0%}) the training's thread could have run and had "
            "no CPU: other threads and processes had them. The parts above contain that time."
        )
    if facts.own_cpu_s is not None and facts.own_cpu_s >= max(MIN_OWN_S, MIN_OWN * wall_s):
        doubts.append(
            f"Beside the training, threads and processes of tftracer used {long_duration(facts.own_cpu_s)} of CPU time "
            f"({facts.own_cpu_s / wall_s:.1%} of one core). What is listed as tftracer is the time for "
            "which the training waited for it, without slow steps in which one of its threads had Python's lock."
        )
    if sum(wait.own_s for wait in facts.step_waits) >= MIN_SHARE * wall_s:
        doubts.append(EPOCHS)
    if lost:
        doubts.append(f"The queue was full at {counted(lost, 'step')}: their time counts as time between steps.")
    return {
        "started_at": facts.started_at,
        "until": facts.until,
        "duration_s": wall_s,
        "parts": parts,
        "largest": largest,
        "text": text,
        "advice": advice,
        "doubts": doubts,
    }


def _longest_first(each: LedgerItem) -> float:
    return -each["duration_s"]


def _text(kind: LedgerKind, facts: LedgerFacts, profile: GapProfile | None) -> str:
    if kind == "start" and facts.recorded_s is not None:
        return f"The recording began {long_duration(facts.recorded_s)} after the process did."
    if kind == "steps" and not facts.step_waits:
        return (
            "Steps that take their batch from a dataset themselves (Keras's fit, Estimators) contain that wait: trace a step to "
            "see it."
        )
    if kind == "python":
        if profile and profile["python_lines"]:
            return (
                f"Estimated: the lines were sampled for {profile['duration_s'] or 0:.0f} s, and each gets the share of all this "
                "time that it had in these samples."
            )
        return "Its lines were not sampled."
    if kind == "unknown":
        return "No step was seen."
    return ""


def _largest(seconds: Mapping[LedgerKind, float], wall_s: float) -> tuple[LedgerKind | None, str, str]:
    """Return the largest part that can shrink, its sentence, and the advice. The start counts only if it is
    longer than the steps, because it occurs only once."""
    steps_s = seconds.get("steps", 0.0)
    parts = [kind for kind in seconds if kind in _ADVICE and (kind != "start" or seconds[kind] > steps_s)]
    kind = max(parts, key=lambda kind: seconds[kind], default=None)
    if kind is not None and seconds[kind] >= max(MIN_SHARE * wall_s, MIN_OF_STEPS * steps_s):
        return (
            kind,
            f"{NAMES[kind]}: {long_duration(seconds[kind])}, {seconds[kind] / wall_s:.0%} of the wall time.",
            _ADVICE[kind],
        )
    if "steps" in seconds:
        return "steps", f"The steps themselves take {seconds['steps'] / wall_s:.0%}.", "A traced step shows what it consists of."
    return None, "", ""


def permilles(lengths: Sequence[float]) -> list[int]:
    """Return the shares in permille, which add up to exactly 1000: those with the largest remainders are rounded up."""
    total = sum(lengths)
    exact = [1000 * length / total for length in lengths]
    rounded = [int(each) for each in exact]
    for index in sorted(range(len(exact)), key=lambda index: rounded[index] - exact[index])[: 1000 - sum(rounded)]:
        rounded[index] += 1
    return rounded


def long_duration(seconds: float) -> str:
    """Format seconds as ``11 h 3 min``, ``4 min 12 s``, ``3.2 s``."""
    minutes, hours = round(seconds) // 60, round(seconds / 60) // 60
    if hours:
        return f"{hours:,} h {round(seconds / 60) % 60} min"
    return f"{minutes} min {round(seconds) % 60} s" if minutes else duration(seconds * 1e9)
