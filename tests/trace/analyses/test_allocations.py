"""Memory of profiles: each allocation and freeing as plain reading has it."""

from __future__ import annotations

import plain_protobuf
from plain_protobuf import Event

from tftracer.trace.analyses.allocations import AllocatedTensors
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

V100 = "gpu_v100_excerpt.xplane.pb.gz"


def plain_events() -> list[Event]:
    (host,) = [plane for plane in plain_protobuf.planes(plain_protobuf.content(V100)) if plane.name == "/host:CPU"]
    return sorted((e for e in host.events if e.name in ("MemoryAllocation", "MemoryDeallocation")), key=lambda e: e.start_ns)


def test_what_allocators_of_a_gpu_recorded() -> None:
    events = plain_events()
    memory = Answers(plain_protobuf.content(V100), TraceContext()).memory()
    for curve in memory["curves"]:
        recorded = [int(e.stats["bytes_allocated"]) for e in events if e.stats["allocator_name"] == curve["allocator"]]
        assert curve["bytes"][-1] == recorded[-1]
        assert curve["peak_bytes"] <= max(recorded)
    assert {(c["allocator"], c["device"]) for c in memory["curves"]} >= {
        ("GPU_4_bfc", "/device:GPU:4"),
        ("gpu_host_bfc", "/host:CPU"),
    }
    allocated = sum(e.name == "MemoryAllocation" for e in events)
    assert 0 < memory["tensors_total"] <= allocated
    assert all(tensor["alloc_ns"] < tensor["free_ns"] for tensor in memory["tensors"])


def test_a_tensor_belongs_to_the_op_that_allocated_it_and_lives_until_its_address_is_freed() -> None:
    answers = Answers(plain_protobuf.content(V100), TraceContext())
    tensors = [t for t in answers.memory()["tensors"] if t["allocator"] == "GPU_4_bfc" and t["node"] >= 0]
    assert len(tensors) > 300
    trace = answers.trace
    assert all(trace.start[t["node"]] <= t["alloc_ns"] <= trace.end[t["node"]] for t in tensors)
    freed = [t for t in tensors if t["free_ns"] < trace.duration_ns]
    assert freed
    curve, lived = answers.memory()["curves"][0], answers.tensors
    assert isinstance(lived, AllocatedTensors)
    alive = lived.alive(curve)
    assert len(alive)
    assert (lived.time[lived.alloc_event[alive]] <= curve["peak_ns"]).all() and (lived.free_ns[alive] > curve["peak_ns"]).all()


def test_what_the_listed_tensors_of_a_gpu_lack_is_what_it_held_before() -> None:
    """Tensors that were allocated before the profile are in the curve and have no row: as many bytes at each moment."""
    memory = Answers(plain_protobuf.content(V100), TraceContext()).memory()
    assert memory["tensors_total"] == len(memory["tensors"])
    working = memory["curves"][0]
    own = [t for t in memory["tensors"] if (t["device"], t["allocator"]) == (working["device"], working["allocator"])]
    listed = [sum(t["bytes"] for t in own if t["alloc_ns"] <= at < t["free_ns"]) for at in working["time_ns"]]
    assert len(own) > 700
    assert {alive - of_rows for alive, of_rows in zip(working["bytes"], listed)} == {4_013_337_088.0}


def test_a_profile_without_allocations_has_no_memory() -> None:
    memory = Answers(plain_protobuf.content("eager_tf2.21.xplane.pb"), TraceContext()).memory()
    assert memory["tensors"] == [] == memory["curves"]
