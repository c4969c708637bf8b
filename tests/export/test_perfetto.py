"""Perfetto's format, read back with Perfetto's own generated classes."""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
from traces import N, make_trace

from tftracer.export.perfetto import write_perfetto
from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.model import TraceContext

DATA = Path(__file__).parents[1] / "data"
FILES = sorted([*DATA.glob("*.pb"), DATA / "foreign" / "step.pb"])
Event = protos.TrackEvent


def answers_of(path: Path) -> Answers:
    return Answers(path.read_bytes(), TraceContext())


def written(answers: Answers) -> bytes:
    file = io.BytesIO()
    write_perfetto(answers, file)
    return file.getvalue()


class Read:
    """A trace as a reader takes it: interned strings resolved, slices from begins and ends on each track."""

    def __init__(self, data: bytes) -> None:
        self.trace = protos.Trace.FromString(data)
        self.tracks: dict[int, Any] = {}
        self.slices: list[dict[str, Any]] = []
        self.counters: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.out: dict[int, dict[str, Any]] = {}
        self.into: dict[int, dict[str, Any]] = {}
        open_: dict[int, dict[str, Any]] = {}
        events, values = {}, {}
        for packet in self.trace.packet:
            if packet.HasField("interned_data"):
                assert packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED
                events = {entry.iid: entry.name for entry in packet.interned_data.event_names}
                values = {entry.iid: entry.str for entry in packet.interned_data.debug_annotation_string_values}
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            event = packet.track_event
            if event.type == Event.TYPE_SLICE_BEGIN:
                assert event.track_uuid not in open_, "a slice begins before the one before it has ended"
                node, label = (values[note.string_value_iid].decode() for note in event.debug_annotations)
                slice_read = {"op": events[event.name_iid], "name": node, "label": label, "start": packet.timestamp}
                open_[event.track_uuid] = {**slice_read, "track": event.track_uuid}
                self.out.update(dict.fromkeys(event.flow_ids, slice_read))
                self.into.update(dict.fromkeys(event.terminating_flow_ids, slice_read))
            elif event.type == Event.TYPE_SLICE_END:
                self.slices.append({**open_.pop(event.track_uuid), "end": packet.timestamp})
            elif event.type == Event.TYPE_COUNTER:
                self.counters[event.track_uuid].append((packet.timestamp, event.counter_value))
        assert not open_

    def device(self, uuid: int) -> str:
        return str(self.tracks[self.tracks[uuid].parent_uuid].name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_op_on_its_device_to_the_nanosecond(path: Path) -> None:
    read = Read(written(answers_of(path)))
    expected = []
    for device in message_class("RunMetadata").FromString(path.read_bytes()).step_stats.dev_stats:
        for node in device.node_stats:
            start = node.all_start_nanos or node.all_start_micros * 1000
            end = start + (node.all_end_rel_nanos or node.all_end_rel_micros * 1000)
            expected.append((device.device, node.node_name, node.timeline_label, start, end))
    slices = [(read.device(s["track"]), s["name"], s["label"], s["start"], s["end"]) for s in read.slices]
    assert sorted(slices) == sorted(expected)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_flows_run_along_the_data_edges(path: Path) -> None:
    answers = answers_of(path)
    read = Read(written(answers))
    assert read.out.keys() == read.into.keys()
    names, graph = answers.trace.names, answers.graph
    edges = {
        (names[answers.trace.name[producer]], names[answers.trace.name[consumer]])
        for producer, consumer, control in zip(graph.producer.tolist(), graph.consumer.tolist(), graph.control.tolist())
        if not control
    }
    assert all((read.out[flow]["name"], read.into[flow]["name"]) in edges for flow in read.out)
    assert all(read.out[flow]["start"] <= read.into[flow]["start"] for flow in read.out)
    if path.stem.startswith("ps_"):
        assert read.out


def test_counters_are_the_allocators_live_bytes() -> None:
    answers = answers_of(DATA / "dense500_tf2.15_cpu.pb")
    read = Read(written(answers))
    for curve in answers.memory()["curves"]:
        (uuid,) = [uuid for uuid in read.counters if read.tracks[uuid].name == curve["allocator"]]
        assert read.tracks[uuid].counter.unit == protos.CounterDescriptor.UNIT_SIZE_BYTES
        assert max(value for _, value in read.counters[uuid]) == curve["peak_bytes"]


def test_an_allocator_without_a_name_has_a_counter_with_one() -> None:
    read = Read(written(answers_of(DATA / "ps_transfers_whole_tf2.15_cpu.pb")))
    assert sorted(read.tracks[uuid].name for uuid in read.counters) == ["(unnamed allocator)"] * 2 + ["mklcpu"] * 2


def test_tracks_hang_below_their_device_in_order() -> None:
    read = Read(written(answers_of(DATA / "ps_worker0_tf2.21_cpu.pb")))
    devices = [track for track in read.tracks.values() if not track.parent_uuid]
    assert [device.sibling_order_rank for device in devices] == [0, 1]
    assert {device.name for device in devices} == {
        "/job:ps/replica:0/task:0/device:CPU:0",
        "/job:worker/replica:0/task:0/device:CPU:0",
    }


def test_two_files_one_after_the_other_are_one_trace() -> None:
    parts = [written(answers_of(DATA / f"horovod_rank{rank}_tf2.15_cpu.pb")) for rank in (0, 1)]
    both = protos.Trace.FromString(b"".join(parts))
    assert len({packet.trusted_packet_sequence_id for packet in both.packet}) == 2
    flows = [flow for packet in both.packet for flow in packet.track_event.flow_ids]
    assert len(flows) == len(set(flows))


def test_any_name_and_no_node_at_all() -> None:
    names = ['quote"', "new\nline", "</script>", "ünï", "\x00"]
    trace = make_trace([N(name, "Op", i * 10, i * 10 + 5) for i, name in enumerate(names)])
    read = Read(written(Answers(None, TraceContext(), trace=trace)))
    assert [each["name"] for each in read.slices] == names
    assert not Read(written(Answers(b"", TraceContext()))).slices
