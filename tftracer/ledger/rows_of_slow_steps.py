"""Adds up the ledger's rows of slow steps: all lines of a hook, and those whose cause was found only later."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from tftracer.contract.stalls import Period, SlowKind, StallCause
from tftracer.ledger.add_up_activities import SlowEntry
from tftracer.slow.record.sums_by_kind import (
    CODE_CAUSES,
    HAS_CODE,
    HOOK_CAUSES,
    UNSPECIFIC_CAUSES,
    KindKey,
    Places,
    SlowKinds,
    group_key,
    kind_key,
)

#: Causes of rows without a place, whose slow steps may have been explained later by a period -> the causes that explain them
#: (StepsOfPeriods.of_known_cause); None: any known cause.
EXPLAINED_LATER: dict[str, tuple[StallCause, ...] | None] = {
    **dict.fromkeys(CODE_CAUSES, HAS_CODE),
    "unknown": None,
    "tensorflow": ("py_function", "input"),
    "input": ("py_function", "input"),
}


def rows_by_code(slow: Sequence[SlowEntry]) -> list[SlowEntry]:
    """Add up the rows of a callback or hook: all of its lines are one row."""
    rows: dict[tuple[int, str, str, bool], SlowEntry] = {}
    places: dict[tuple[int, str, str, bool], Places] = defaultdict(Places)
    for row in slow:
        code = row.place.partition(" (")[0] if row.cause in HOOK_CAUSES else row.place
        key = (row.run_id, row.cause, code, row.inside)
        places[key].add(row.place, row.own_s)
        sum_so_far = rows.get(key)
        if sum_so_far is None:
            rows[key] = row
        else:
            place = places[key].text
            rows[key] = replace(sum_so_far, place=place, own_s=sum_so_far.own_s + row.own_s, times=sum_so_far.times + row.times)
    return list(rows.values())


def with_causes_found_later(
    rows: Iterable[SlowEntry],
    kinds_of: Callable[[int], SlowKinds],
    periods_of: Callable[[int], Sequence[Period]] | None = None,
) -> list[SlowEntry]:
    """Move slow steps whose cause was found later from rows without a place to the rows of that cause.

    A slow step is counted here when it ends. If its cause is not known then, it may turn out later to belong to a period.

    ``kinds_of``: returns the sums of a run's slow steps. ``periods_of``: returns its periods; None: not known.
    """
    moved = list(rows)
    for run_id in {row.run_id for row in moved}:
        kinds = {kind_key(run_id, kind["cause"], kind["place"]): kind for kind in kinds_of(run_id).of_run(run_id)}
        of_periods = periods_of and set(map(group_key, periods_of(run_id)))
        # kind -> number of slow steps that its rows lack; below 0: that they have too many
        missing: Counter[KindKey] = Counter({key: kind["times"] for key, kind in kinds.items()})
        for row in moved:
            if row.run_id == run_id:
                missing[_key(row)] -= row.times
        for index, row in enumerate(moved):
            is_unexplained = not row.place and row.cause in EXPLAINED_LATER and missing[_key(row)] < 0
            if row.run_id == run_id and is_unexplained:
                possible = {
                    key: kind
                    for key, kind in kinds.items()
                    if _may_explain(row, kind) and (of_periods is None or group_key(kind) in of_periods)
                }
                moved[index] = _move(row, min(row.times, -missing[_key(row)]), possible, missing, moved)
    return moved


def _may_explain(row: SlowEntry, kind: SlowKind) -> bool:
    """Return whether the slow steps of a row may count as those of a kind by now.

    Between steps, all waits for input count as input, also those for a Python function of the dataset: such a kind lacks slow
    steps that no row has.
    """
    causes = EXPLAINED_LATER[row.cause]
    is_known = kind["cause"] not in UNSPECIFIC_CAUSES if causes is None else kind["cause"] in causes and bool(kind["place"])
    return is_known and (row.inside or kind["cause"] not in ("input", "py_function"))


def _move(
    row: SlowEntry, surplus: int, kinds: dict[KindKey, SlowKind], missing: Counter[KindKey], rows: list[SlowEntry]
) -> SlowEntry:
    """Move up to ``surplus`` slow steps of a row to rows of kinds that miss some, and return what remains of the row."""
    for key, times in missing.most_common():
        kind = kinds.get(key)
        count = min(surplus, times)
        if kind is None or count <= 0 or (kind["where"] == "inside") != row.inside:
            continue
        own_s = row.own_s * count / row.times
        index = next((at for at, each in enumerate(rows) if _key(each) == key and each.inside == row.inside), None)
        if index is None:
            rows.append(SlowEntry(row.run_id, kind["cause"], kind["place"], row.inside, own_s, count))
        else:
            rows[index] = replace(rows[index], own_s=rows[index].own_s + own_s, times=rows[index].times + count)
        row = replace(row, own_s=row.own_s - own_s, times=row.times - count)
        missing[key] -= count
        missing[_key(row)] += count
        surplus -= count
    return row


def _key(row: SlowEntry) -> KindKey:
    return kind_key(row.run_id, cast("StallCause", row.cause), row.place)  # in a hostile file any text: then it equals no kind's
