"""What is said of a growth, and how it goes through the session's file."""

from __future__ import annotations

from dataclasses import replace

from tftracer.memory_growth import saved_memory_growth
from tftracer.memory_growth.answer import memory_growth
from tftracer.memory_growth.growing_types import Thing
from tftracer.memory_growth.growth_proof import Slope
from tftracer.memory_growth.memory_curve import Bin
from tftracer.memory_growth.saved_memory_growth import Growth, MemoryFacts
from tftracer.session.summary_of_session import memory_text

MB = 1_000_000
OPS = Growth(
    0.0, 120.0, 500 * MB, 560 * MB, 0.5 * MB, True, "ops", (Thing("ops", "Operation", 300, 15.0, None, "train.py:9"),), 3, 0.3
)
KNOWN = MemoryFacts((Bin(0.0, 500 * MB, 510 * MB), Bin(10.0, 505 * MB, 512 * MB)), (OPS,), 120.0, 60.0, "")


def test_what_grows_is_named_with_its_line() -> None:
    (growth,) = memory_growth(KNOWN)["growths"]
    assert growth["text"] == (
        "Memory grows by 30 MB/min: 60 MB in 2 min. With it grow ops of graphs (Operation): 300 more, 15 a second, "
        "made at train.py:9."
    )
    assert "build the graph before it" in growth["advice"]
    assert growth["doubts"] == [
        "To find it, all Python objects were listed 3 times: for 0.3 s in all no other thread could run Python."
    ]


def test_what_is_not_known_is_said() -> None:
    unknown = memory_growth(replace(KNOWN, growths=(replace(OPS, kind="unknown", things=()),)))
    assert "No list, dict, text or array that the script's names lead to explains the growth." in unknown["growths"][0]["text"]
    for lists, why in ((1, "a count held the training up"), (0, "so many Python objects")):
        given_up = memory_growth(replace(KNOWN, growths=(replace(OPS, kind="unknown", things=(), lists=lists),)))
        assert why in given_up["growths"][0]["text"] and "three counts" not in given_up["growths"][0]["text"]
    searching = replace(KNOWN, growths=(replace(OPS, kind=""),))
    assert "not known yet" in memory_growth(searching)["growths"][0]["text"]
    assert "the training ended during" in memory_growth(searching, is_live=False)["growths"][0]["text"]
    tensors = Thing("tensors", "EagerTensor", 300, 15.0, 60.0)
    small = memory_growth(replace(KNOWN, growths=(replace(OPS, kind="unknown", things=(tensors,)),)))
    assert "tensors became more, but are too small" in small["growths"][0]["text"]
    assert memory_growth(replace(KNOWN, growths=(), judged_s=30.0))["growth_rate"] is None
    assert memory_growth(replace(KNOWN, growths=()))["growth_rate"] == 0
    assert "only on Linux" in memory_growth(replace(KNOWN, growths=(), unknown="system"))["text"]
    assert memory_growth(None)["growth_rate"] is None


def test_a_growth_that_has_ended_counts_no_more() -> None:
    ended = memory_growth(replace(KNOWN, growths=(replace(OPS, is_growing=False),)))
    assert ended["growth_rate"] == 0
    assert ended["growths"][0]["text"].startswith(
        "Memory grew by 60 MB in 2 min, and then not steadily any more. With it grew ops"
    )


def test_what_is_freed_at_the_end_of_a_training_does_not_make_its_growth_smaller() -> None:
    """It was said: memory grows by 84.8 MB/min: 0 B in 36 s."""
    assert OPS.grown(Slope(0.0, 130.0, 500.0 * MB, 500.0 * MB, 0.5 * MB)) == OPS
    assert OPS.grown(Slope(0.0, 130.0, 500.0 * MB, 570.0 * MB, 0.5 * MB)).end_bytes == 570 * MB


def test_it_comes_back_from_the_file_as_it_was() -> None:
    assert saved_memory_growth.read(saved_memory_growth.record(KNOWN).meta) == KNOWN


def test_a_hostile_record_is_read_only_as_far_as_its_types_go() -> None:
    hostile = {
        "bins": [[1], "x", None, [0, -5, 2**70]],
        "growths": [{"things": [3, {"grown": "x"}], "rate": float("nan")}],
        "unknown": 5,
    }
    memory = memory_growth(saved_memory_growth.read(hostile))
    assert len(memory["at"]) == len(memory["low"]) == len(memory["high"])
    assert memory_text(memory)
