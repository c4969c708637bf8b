"""What a training did beside its steps, as the verdict on a trace says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from recording import RAW, recording, step

from tftracer.contract.ledger import Ledger, LedgerKind, LedgerPart
from tftracer.ledger.largest_part_beside_steps import beside_steps


def ledger_of(**seconds: float) -> Ledger:
    kinds: dict[str, LedgerKind] = {"start": "start", "steps": "steps", "checkpoints": "checkpoints", "evaluation": "evaluation"}
    kinds["slow"] = "slow"
    parts: list[LedgerPart] = [
        {
            "kind": kinds[kind],
            "name": kind.title(),
            "duration_s": length,
            "permille": 0,
            "items": [{"name": f"{kind} of it", "duration_s": length, "times": 1, "run_id": 1 if kind == "steps" else None}],
            "text": "",
        }
        for kind, length in seconds.items()
    ]
    return {
        "started_at": 0.0,
        "until": 1.0,
        "duration_s": 1.0,
        "parts": parts,
        "largest": None,
        "text": "",
        "advice": "",
        "doubts": [],
    }


@pytest.mark.parametrize(
    ("checkpoints", "evaluation", "share", "text"),
    [
        (3.0, 1.0, ("checkpoints", 0.3), "Checkpoints (checkpoints of it)"),
        (1.0, 5.0, ("evaluation", 0.5), "Evaluation (evaluation of it)"),
    ],
)
def test_the_largest_part_is_told_as_a_share_of_the_training_without_its_start(
    checkpoints: float, evaluation: float, share: tuple[str, float], text: str
) -> None:
    steps = 10.0 - checkpoints - evaluation
    assert beside_steps(ledger_of(start=50.0, steps=steps, checkpoints=checkpoints, evaluation=evaluation), "steps of it") == (
        *share,
        text,
    )


def test_slow_steps_count_with_their_known_causes() -> None:
    ledger = ledger_of(steps=4.0, slow=6.0)
    ledger["parts"][0]["items"][0]["name"] = "Adam"
    items = [("no CPU", 3.0), ("lock: thread publisher", 2.0), ("python: load() (a.py:3)", 0.5), ("not known why", 0.5)]
    ledger["parts"][1]["items"] = [{"name": name, "duration_s": length, "times": 1, "run_id": 1} for name, length in items]
    assert beside_steps(ledger, "Adam") == ("slow", 0.25, "lock: thread publisher")
    ledger["parts"][1]["items"] = ledger["parts"][1]["items"][:1]
    assert beside_steps(ledger, "Adam") is None


def test_steps_of_other_runs_count_if_they_take_most() -> None:
    """A judge read "31% of the time from step to step" of a loop in which another session.run took 85%."""
    ledger = ledger_of(steps=9.0, checkpoints=1.0)
    items = [("Assign_12", 8.0, 2), ("Adam", 1.0, 1)]
    ledger["parts"][0]["items"] = [{"name": name, "duration_s": took, "times": 1, "run_id": run} for name, took, run in items]
    assert beside_steps(ledger, "Adam") == ("steps", 0.8, "Assign_12")
    assert beside_steps(ledger, "Assign_12") is None
    for each, name in zip(ledger["parts"][0]["items"], ("step (48)", "step (32)")):
        each["name"] = name
    assert beside_steps(ledger, "step (16)") is None  # the same function with other arguments


def test_little_is_not_told() -> None:
    assert beside_steps(ledger_of(steps=9.0, checkpoints=1.0), "steps of it") is None
    assert beside_steps(ledger_of(), "") is None


def test_a_trace_keeps_it_and_a_ledger_that_fails_costs_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Ledger:
        raise ValueError("no ledger")

    for told, expected in (
        (lambda: ledger_of(steps=1.0, checkpoints=1.5), (0.6, "Checkpoints (checkpoints of it)")),
        (fail, (None, "")),
    ):
        with recording(tmp_path) as recorder:
            monkeypatch.setattr(recorder.store.model, "ledger_message", told)
            step(recorder, 1, raw=RAW)
            assert recorder.flush()
            ((trace,),) = (run["traces"] for run in recorder.runs())
            context = recorder.trace_context(trace["id"])
            assert (context.beside_share, context.beside_text) == expected
