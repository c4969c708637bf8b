"""Which stage of tf.data a step waits for: on stages written down for it, and on real profiles."""

from __future__ import annotations

from collections.abc import Sequence

import plain_protobuf
import pytest
from traces import TF_DATA, N, make_trace

from tftracer.trace.analyses.tf_data_stages import AwaitedStage, Stages, path_of
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import NodeKind, Trace

MS = 1_000_000


def stage(path: str, start: float, end: float) -> N:
    name = f"Iterator::Root{path}"
    return N(name, name.rsplit("::", 1)[-1], int(start * MS), int(end * MS), TF_DATA, NodeKind.INPUT)


def awaited_stage(nodes: Sequence[N], wait: float = 50) -> AwaitedStage:
    holder = Stages.of(make_trace([stage("", 0, wait), *nodes])).awaited_stage(Cover.span(0, int(wait * MS)))
    assert holder is not None
    return holder


def test_a_stage_that_runs_while_the_step_waits() -> None:
    holder = awaited_stage([stage("::Prefetch", 0, 50), stage("::Prefetch::Map", 1, 49), stage("::Prefetch::Map::Repeat", 1, 2)])
    assert (holder.path, holder.began_before, holder.cover.length) == (("Root", "Prefetch", "Map"), False, 48 * MS)
    assert holder.inputs_ns == MS


def test_the_lowest_of_the_stages_that_run() -> None:
    below = [stage("::Batch", 0, 50), *(stage("::Batch::Map", i, i + 0.9) for i in range(50))]
    assert awaited_stage(below).path == ("Root", "Batch", "Map")
    assert awaited_stage([*below, *(stage("::Batch::Map::TFRecord", i, i + 0.1) for i in range(50))]).path == (
        "Root",
        "Batch",
        "Map",
    )
    assert awaited_stage([*below, *(stage("::Batch::Map::TFRecord", i, i + 0.8) for i in range(50))]).path[-1] == "TFRecord"


def test_inputs_that_are_read_in_turn_count_together() -> None:
    below = [stage("::Interleave", 0, 50), *(stage(f"::Interleave[{i}]::Map", i * 10, i * 10 + 9) for i in range(5))]
    assert awaited_stage(below).path == ("Root", "Interleave", "Map")
    two = [stage("::Zip", 0, 50), stage("::Zip[0]::Map", 0, 20), stage("::Zip[1]::Filter", 20, 42)]
    assert awaited_stage(two).path == ("Root", "Zip", "Filter")


@pytest.mark.parametrize("behind", ["", "::Shuffle", "::Shuffle::Take"])
def test_a_stage_that_was_at_work_before_the_profile_began(behind: str) -> None:
    """Of its execution nothing is recorded, and its next one is cut off: it is known by what it reads."""
    path = f"::Prefetch{behind}::ParallelMapV2"
    holder = awaited_stage([stage("::Prefetch", 0, 50), stage(f"{path}::Repeat", 49, 49.1)])
    assert (holder.path[-1], holder.began_before, holder.inputs_ns) == ("ParallelMapV2", True, 100_000)


def test_a_quick_source_is_not_blamed_where_what_passes_it_on_is_cut_off() -> None:
    cut_off = "::Prefetch::Map::FiniteRepeat::FromTensor"
    holder = awaited_stage([stage("::Prefetch", 0, 50), stage(cut_off, 49, 49.1)])
    assert (holder.path[-1], holder.began_before, holder.inputs_ns) == ("Map", True, 100_000)
    filtered = awaited_stage([stage("::Prefetch", 0, 50), stage("::Prefetch::Map::Filter::TFRecord", 49, 49.1)])
    assert filtered.path[-1] == "Filter"  # it may be at work itself, or be what Map waits for


def test_what_reads_a_slow_stage_in_parallel_is_not_blamed() -> None:
    holder = awaited_stage(
        [stage("::ParallelMapV2", 0, 50), stage("::ParallelMapV2::Map", 0, 48), stage("::ParallelMapV2::Map::Repeat", 0, 1)]
    )
    assert holder.path[-1] == "Map" and not holder.began_before


def test_a_parallel_stage_whose_inputs_come_quickly_works_itself() -> None:
    holder = awaited_stage([stage("::ParallelMapV2", 0, 50), stage("::ParallelMapV2::Repeat", 20, 20.1)])
    assert holder.path[-1] == "ParallelMapV2" and not holder.began_before


def test_nothing_is_known_of_what_lies_beneath() -> None:
    holder = awaited_stage([stage("::Prefetch", 0, 50)])
    assert (holder.path, holder.began_before, holder.inputs_ns) == (("Root", "Prefetch"), True, None)


def test_a_trace_without_tf_data() -> None:
    stages = Stages.of(make_trace([N("a", "MatMul", 0, MS)]))
    assert not stages.nodes and not stages.ops.any() and stages.awaited_stage(Cover.span(0, MS)) is None


def test_paths() -> None:
    assert path_of("Iterator::Root::Interleave[2]::Map") == ("Root", "Interleave", "Map")
    assert path_of("Iterator::Root::FlatMap[0]::Generator") == ("Root", "FlatMap", "Generator")
    assert path_of("Iterator::Root::Prefetch::Generator") == ()  # of a distribution strategy
    assert path_of("MatMul") == ()


def profile(name: str) -> tuple[Trace, AwaitedStage, Stages]:
    trace = decode_xspace(plain_protobuf.content(f"{name}.xplane.pb.gz"))
    stages = Stages.of(trace)
    holder = stages.awaited_stage(Cover.of(trace.start[stages.roots], trace.end[stages.roots]))
    assert holder is not None
    return trace, holder, stages


@pytest.mark.parametrize(
    ("name", "path", "began_before"),
    [
        ("slow_map_tf2.21", "Root Prefetch Map", False),
        ("slow_map_begun_before_tf2.15", "Root Prefetch Map", True),
        ("slow_map_mirrored_tf2.21", "Root Prefetch Rebatch Map", False),
    ],
)
def test_real_steps_that_wait_for_a_map(name: str, path: str, began_before: bool) -> None:
    _, holder, _ = profile(name)
    assert (" ".join(holder.path), holder.began_before) == (path, began_before)


def test_the_ops_of_a_map_are_those_of_its_threads() -> None:
    trace, _, stages = profile("slow_map_tf2.21")
    assert {trace.ops[code] for code in trace.op[stages.ops].tolist()} >= {"PyFunc"}
    assert not (stages.ops & (trace.kind != NodeKind.INPUT)).any()


def test_a_stage_that_only_passes_elements_on_is_not_what_holds_a_step_up() -> None:
    """It waits for an element that was under way before the trace began. One that fills its buffer gets many."""
    waits = awaited_stage([stage("::Shuffle", 0, 50), stage("::Shuffle::ParallelMapV2", 50, 51)])
    assert waits is not None and waits.path[-1] == "ParallelMapV2" and waits.began_before
    slow = [stage("::Shuffle::ParallelMapV2", start, start + 1) for start in (-90, -40, 49)]
    assert awaited_stage([stage("::Shuffle", 0, 50), *slow]).path[-1] == "ParallelMapV2"
    fills = awaited_stage([stage("::Shuffle", 0, 50), *(stage("::Shuffle::Range", i, i + 0.1) for i in range(50))])
    assert fills is not None and fills.path[-1] == "Shuffle" and not fills.began_before
