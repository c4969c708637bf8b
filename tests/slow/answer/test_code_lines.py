"""Stacks as lines and as a tree."""

from __future__ import annotations

import pytest
from made_stalls import LOADING, RUN, SAVE, SAVER, SAVING, SORT, TRAIN, WAITING

from tftracer.slow.answer.code_lines import MAX_NODES, code_lines, stack_tree
from tftracer.slow.watch_results import FoldedStack


def test_libraries_are_folded_into_the_script_s_nearest_line() -> None:
    first, second = code_lines([LOADING, SAVING])
    assert (first["file"], first["line"], first["function"], first["kind"]) == ("/home/me/train.py", 88, "load_batch", "script")
    assert first["calls"] == "sort (numpy/_core/fromnumeric.py)" and first["share"] == pytest.approx(0.25 / 0.3)
    assert (second["owner"], second["kind"], second["calls"]) == (
        "CheckpointSaverHook",
        "hook",
        "save (tensorflow/python/training/saver.py)",
    )


def test_a_hook_s_lines_are_one_at_its_most_frequent_place() -> None:
    rare = SAVING._replace(frames=(TRAIN, RUN, SAVER._replace(line=7), SAVE), seconds=0.01)
    (line,) = code_lines([rare, SAVING])
    assert line["line"] == 620 and line["share"] == pytest.approx(1.0)


def test_what_no_script_called_is_named_by_its_innermost_line() -> None:
    (line,) = code_lines([FoldedStack("worker", (RUN, SORT), 2, 0.01)])
    assert (line["kind"], line["function"], line["calls"]) == ("library", "sort", "")


def test_no_stacks_make_no_lines() -> None:
    assert code_lines([]) == [] and code_lines([FoldedStack("empty", (), 1, 0.1)]) == []


def test_a_tree_has_threads_as_roots_and_shares_what_stacks_share() -> None:
    tree = stack_tree([LOADING, SAVING, WAITING])
    names = [tree["frames"][frame]["function"] for frame in tree["frame"]]
    assert names == ["MainThread", "main", "load_batch", "sort", "run", "after_run", "save", "reader", "load_batch"]
    assert tree["parent"] == [-1, 0, 1, 2, 1, 4, 5, -1, 7]
    assert tree["seconds"] == [0, 0, 0, 0.25, 0, 0, 0.05, 0, 0.015] and tree["samples_left_out"] == 0
    assert [frame["kind"] for frame in tree["frames"]].count("thread") == 2 and len(tree["frames"]) == 8


def test_a_tree_is_bounded_and_counts_what_is_left_out() -> None:
    many = [LOADING._replace(frames=(TRAIN._replace(line=line),), samples=1) for line in range(2 * MAX_NODES)]
    tree = stack_tree(many)
    assert len(tree["parent"]) <= MAX_NODES and tree["samples_left_out"] + sum(tree["samples"]) == 2 * MAX_NODES
