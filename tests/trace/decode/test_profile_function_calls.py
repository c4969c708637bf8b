"""What a profile says of the host beside its ops, made by hand: calls of functions, and the programs that XLA compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from call_count import calls_of
from wire_messages import message, number

from tftracer.trace.decode import xplane_reader
from tftracer.trace.decode.profile_function_calls import HostEvents
from tftracer.trace.decode.xspace import decode_xspace

CALLED, RUN, OP = 7, 1, 2  # a stat, and kinds of events; calls of functions are of kinds 100, 101, ...


def profile(calls: int) -> bytes:
    """Calls of that many functions, 20 us each. Each holds two runs, the second one longer. Each function was compiled twice."""
    space = xplane_reader.plane_messages()["Space"]()
    plane = space.planes.add(name=b"/host:CPU")
    kinds = {RUN: b"EagerKernelExecute", OP: b"a:MatMul", **{100 + call: b"f%d" % call for call in range(calls)}}
    for kind, name in kinds.items():
        entry = plane.event_metadata.add(id=kind)
        entry.value.name, entry.value.display_name = name, name.partition(b":")[2]
    plane.stat_metadata.add(id=CALLED).value.name = b"tf_function_call"
    line = xplane_reader.plane_messages()["Line"](id=1, name=b"python")
    line.events.append(event(OP, 0, 1))
    for call in range(calls):
        stat = message(4, number(1, CALLED) + message(5, b"traced-xla" if call % 2 else b"concrete"))
        line.events.append(event(100 + call, 20 * call, 20, stat))
        line.events.extend([event(RUN, 20 * call + 2, 3), event(RUN, 20 * call + 8, 9)])
    plane.lines.append(line.SerializeToString())
    programs = space.planes.add(name=b"/host:metadata")
    for program in range(2 * calls):
        programs.event_metadata.add(id=program).value.name = b"f%d(%d)" % (program // 2, program)
    return bytes(space.SerializeToString())


def event(kind: int, start: int, duration: int, stats: bytes = b"") -> bytes:
    return number(1, kind) + number(2, start * 10**6) + number(3, duration * 10**6) + stats


def host_of(calls: int) -> HostEvents:
    host = HostEvents.of(decode_xspace(profile(calls)))
    assert host is not None
    return host


def test_calls_of_functions_and_when_what_was_traced_began_to_run() -> None:
    host = host_of(3)
    calls = [(call.name, call.start, call.end, call.was_traced, call.runs_at) for call in host.function_calls()]
    assert calls == [(f"f{i}", 20_000 * i, 20_000 * (i + 1), i == 1, 20_000 * i + 8_000) for i in range(3)]
    assert host.programs == {"f0": 2, "f1": 2, "f2": 2}


def test_calls_and_runs_of_other_threads_are_not_the_steps() -> None:
    host = host_of(3)
    assert host.plane.events.line.tolist() == [0] * 10
    assert len(replace(host, step_line=0).function_calls()) == 3
    assert replace(host, step_line=1).function_calls() == []


def test_ten_times_the_calls_are_ten_times_the_work() -> None:
    few, many = (calls_of(partial(HostEvents.function_calls, host_of(count))) for count in (50, 500))
    assert many < 12 * few
