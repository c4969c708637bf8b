"""A profile of several steps, cut: each step has what the definition says, and the profile is taken apart once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Optional

import plain_protobuf
from call_count import calls_of
from hypothesis import given
from hypothesis import strategies as st
from wire_messages import message, number

from tftracer.trace.decode import xplane_reader
from tftracer.trace.decode.profile_cut import steps

MARK, OP, KERNEL = 1, 2, 3
STEP_NUM, CORRELATION = 7, 8

#: (kind, start and duration in us, what its stat says, None for no stat)
Made = tuple[int, int, int, Optional[int]]


def profile(host: list[Made], device: list[Made]) -> bytes:
    space = xplane_reader.plane_messages()["Space"](hostnames=[b"here"])
    for name, events in ((b"/host:CPU", host), (b"/device:GPU:0", device)):
        plane = space.planes.add(name=name)
        for kind, kind_name in ((MARK, b"train"), (OP, b"a:MatMul"), (KERNEL, b"kernel")):
            plane.event_metadata.add(id=kind).value.name = kind_name
        for stat, stat_name in ((STEP_NUM, b"step_num"), (CORRELATION, b"correlation_id")):
            plane.stat_metadata.add(id=stat).value.name = stat_name
        line = xplane_reader.plane_messages()["Line"](id=1, name=b"Stream #1(Compute)")
        line.events.extend(event(made) for made in events)
        plane.lines.append(line.SerializeToString())
    space.planes.add(name=b"/host:metadata").event_metadata.add(id=4).value.name = b"jit_step(4)"
    return bytes(space.SerializeToString())


def event(made: Made) -> bytes:
    kind, start, duration, told = made
    stat = STEP_NUM if kind == MARK else CORRELATION
    stats = b"" if told is None else message(4, number(1, stat) + number(4, told))
    return number(1, kind) + number(2, start * 10**6) + number(3, duration * 10**6) + stats


def marks(count: int) -> list[Made]:
    """Steps of 10 us, every 20."""
    return [(MARK, 20 * step, 10, step + 1) for step in range(count)]


times = st.integers(0, 90)
host_events = st.lists(st.tuples(st.just(OP), times, st.integers(0, 90), st.sampled_from([None, 1, 2, 3, 4])), max_size=8)
device_events = st.lists(st.tuples(st.just(KERNEL), times, st.integers(0, 30), st.sampled_from([None, 2, 3, 4, 5])), max_size=8)


@given(host_events, device_events)
def test_each_step_has_what_the_definition_says(host: list[Any], device: list[Any]) -> None:
    host = list(
        {told if told is not None else (start, i): (k, start, d, told) for i, (k, start, d, told) in enumerate(host)}.values()
    )
    parts = list(steps(profile([*marks(4), *host], device)))
    assert [(step.number, step.start, step.end) for step, _ in parts] == [
        (i + 1, 20_000 * i, 20_000 * i + 10_000) for i in range(4)
    ]
    launched = {told: start for _, start, _, told in host if told is not None}
    for place, (_, part) in enumerate(parts):
        planes = {plane.name: plane for plane in plain_protobuf.planes(part)}
        start, end, following = 20 * place, 20 * place + 10, 20 * place + 20 if place < 3 else 1000
        overlapping = [made for made in [*marks(4), *host] if made[1] < end and made[1] + made[2] >= start]
        assert as_made(planes["/host:CPU"]) == as_expected(overlapping)
        own = [made for made in device if start <= launched.get(made[3], made[1]) < following]
        assert as_made(planes["/device:GPU:0"]) == as_expected(own)
        assert list(planes) == ["/host:CPU", "/device:GPU:0", "/host:metadata"]
        assert [entry.value.name for entry in xplane_reader.read_space(part).planes[2].message.event_metadata] == [b"jit_step(4)"]
        assert xplane_reader.read_space(part).hostnames == ["here"]


def as_made(plane: plain_protobuf.PlainPlane) -> Counter[tuple[str, int, int, Any]]:
    stat = {"train": "step_num"}
    numbers = [event.stats.get(stat.get(event.name, "correlation_id")) for event in plane.events]
    return Counter((e.name, e.start_ns, e.duration_ns, t) for e, t in zip(plane.events, numbers))


def as_expected(made: list[Made]) -> Counter[tuple[str, int, int, Any]]:
    names = {MARK: "train", OP: "a:MatMul", KERNEL: "kernel"}
    return Counter((names[kind], start * 1000, duration * 1000, told) for kind, start, duration, told in made)


def test_eight_times_the_steps_are_eight_times_the_work() -> None:
    """No step of a profile reads all of it again."""
    cut(profile_of(10))  # what is set up once
    few, many = (calls_of(partial(cut, profile_of(count))) for count in (100, 800))
    assert many < 9 * few


def profile_of(count: int) -> bytes:
    """Steps that launch a kernel each."""
    ops: list[Made] = [(OP, 20 * step + 1, 5, step + 1) for step in range(count)]
    kernels: list[Made] = [(KERNEL, 20 * step + 4, 5, step + 1) for step in range(count)]
    return profile([*marks(count), *ops], kernels)


def cut(raw: bytes) -> list[bytes]:
    return [part for _, part in steps(raw)]
