"""The structure of a profile, beside an independent reading of the same bytes."""

from __future__ import annotations

import numpy as np
import plain_protobuf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_messages import message

from tftracer.errors import FormatError
from tftracer.trace.decode import xplane_reader
from tftracer.trace.decode.xplane_stats import having, stats_of

FILES = ["convnet_tf2.15.xplane.pb", "convnet_tf2.21.xplane.pb", "eager_tf2.21.xplane.pb"]
FILES += ["xla_cpu_tf2.21.xplane.pb.gz", "gpu_v100_excerpt.xplane.pb.gz", "gpu_mi300_excerpt.xplane.pb.gz"]
STATS = ["shape", "annotation", "correlation_id", "id", "memcpy_details", "hlo_op", "group_id"]


@pytest.mark.parametrize("name", FILES)
def test_events_and_their_stats_as_another_reader_has_them(name: str) -> None:
    raw = plain_protobuf.content(name)
    space = xplane_reader.read_space(raw)
    for plane, plain in zip(space.planes, plain_protobuf.planes(raw)):
        assert plane.name == plain.name
        assert [plane.metadata[kind].name.decode("utf-8", "replace") for kind in plane.events.kind.tolist()] == [
            event.name for event in plain.events
        ]
        assert plane.events.start.tolist() == [event.start_ns for event in plain.events]
        assert plane.events.duration.tolist() == [event.duration_ns for event in plain.events]
        stats = stats_of(plane, np.arange(len(plain.events)), STATS)
        for stat_name, stat in stats.items():
            expected = [event.stats.get(stat_name) for event in plain.events]
            assert stat.has.tolist() == [value is not None for value in expected]
            for row in np.flatnonzero(stat.has).tolist():
                value = expected[row]
                same = stat.text(row) == value if isinstance(value, str) else (int(stat.number[row]) - value) % (1 << 64) == 0
                assert same, (stat_name, row)


def test_events_written_in_another_order_or_without_numbers() -> None:
    space = xplane_reader.plane_messages()["Space"]()
    line = xplane_reader.plane_messages()["Line"](timestamp_ns=5)
    line.events.append(b"\x18\xd0\x0f\x10\xe8\x07\x08\x03")  # duration 2000, offset 1000, metadata 3
    line.events.append(b"")
    line.events.append(b"\x08\x01\x22\x00")  # an empty stat
    space.planes.add(name=b"/host:CPU", lines=[line.SerializeToString()])
    events = xplane_reader.read_space(space.SerializeToString()).planes[0].events
    assert events.kind.tolist() == [3, 0, 1]
    assert events.start.tolist() == [6, 5, 5]
    assert events.duration.tolist() == [2, 0, 0]


def test_events_with_other_fields_among_them() -> None:
    """Fields that lie between events: what the profiler writes one after the other, others may not."""
    line = xplane_reader.plane_messages()["Line"](id=7)
    line.events.append(b"\x08\x01")
    raw = line.SerializeToString() + b"\x18\x02" + line.SerializeToString()  # timestamp_ns in the middle
    space = xplane_reader.plane_messages()["Space"]()
    space.planes.add(name=b"/host:CPU", lines=[raw])
    events = xplane_reader.read_space(space.SerializeToString()).planes[0].events
    assert events.kind.tolist() == [1, 1]
    assert events.start.tolist() == [2, 2]


def test_lines_behind_what_the_profiler_writes_after_them() -> None:
    line = xplane_reader.plane_messages()["Line"](id=7, name=b"python", timestamp_ns=3, events=[b"\x08\x01"])
    first, second = xplane_reader.plane_messages()["Plane"](name=b"/host:CPU"), xplane_reader.plane_messages()["Plane"]()
    first.event_metadata.add(id=1).value.name = b"op"
    second.lines.append(line.SerializeToString())
    (plane,) = xplane_reader.read_space(message(1, first.SerializeToString() + second.SerializeToString())).planes
    assert (plane.name, plane.kind_name(1), plane.events.start.tolist()) == ("/host:CPU", "op", [3])
    assert [(one.thread, one.name) for one in plane.lines] == [(7, "python")]


@pytest.mark.parametrize("name", FILES)
def test_the_events_that_have_a_stat(name: str) -> None:
    raw = plain_protobuf.content(name)
    for plane, plain in zip(xplane_reader.read_space(raw).planes, plain_protobuf.planes(raw)):
        for stat in STATS:
            rows, values = having(plane, stat)
            assert rows.tolist() == [row for row, event in enumerate(plain.events) if stat in event.stats]
            assert values.has.all()


def test_a_graph_travels_behind_the_profile() -> None:
    raw = plain_protobuf.content("eager_tf2.21.xplane.pb")
    space = xplane_reader.read_space(
        xplane_reader.with_plane(raw, xplane_reader.DEFINITIONS_PLANE, "__inference_f_1", b"library")
    )
    plane = space.plane(xplane_reader.DEFINITIONS_PLANE)
    assert plane is not None
    assert [(one.name, one.content) for one in plane.metadata.values()] == [(b"__inference_f_1", b"library")]
    assert len(space.planes) == len(xplane_reader.read_space(raw).planes) + 1


@given(st.integers(0, 27_000))
def test_a_profile_that_is_cut_short_is_refused_or_read(size: int) -> None:
    raw = plain_protobuf.content("convnet_tf2.15.xplane.pb")[:size]
    try:
        xplane_reader.read_space(raw)
    except FormatError as error:
        assert "Profile the step again" in str(error) or "Byte" in str(error)


@given(st.binary(max_size=200), st.integers(0, 27_000))
def test_damaged_profiles_raise_nothing_but_format_errors(noise: bytes, at: int) -> None:
    raw = bytearray(plain_protobuf.content("convnet_tf2.15.xplane.pb"))
    raw[at : at + len(noise)] = noise
    try:
        space = xplane_reader.read_space(bytes(raw))
        for plane in space.planes:
            stats_of(plane, np.arange(len(plane.events.start)), ["id", "shape"])
    except FormatError:
        pass
