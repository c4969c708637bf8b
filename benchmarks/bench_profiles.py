"""A profile (XSpace) of 10^6 events to lanes, beside protobuf's own C parse of the same bytes with all of its fields.

The events of a real profile are repeated with later times. Both are timed in CPU seconds of their thread, in turns; the first
turn is printed beside the median, since a server decodes a trace once. ``peak/raw``: the largest resident memory over what the
process had before, as a multiple of the raw bytes.
"""

from __future__ import annotations

import gzip
import lzma
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tftracer.trace.decode.private_messages import BYTES, INT, REAL, UINT, Schema, message_classes
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.timeline_lanes import lay_out

DATA = Path(__file__).parents[1] / "tests" / "data" / "xspace"
PROFILES = {"ResNet50, CPU": "resnet50_tf2.21.xplane.pb.xz", "BERT, V100": "gpu_v100_excerpt.xplane.pb.gz"}
EVENTS = 1_000_000
TURNS = 5
#: xplane.proto as its own readers have it.
WHOLE: Schema = {
    "XSpace": [
        ("planes", 1, "XPlane", True),
        ("errors", 2, BYTES, True),
        ("warnings", 3, BYTES, True),
        ("hostnames", 4, BYTES, True),
    ],
    "XPlane": [
        ("id", 1, INT, False),
        ("name", 2, BYTES, False),
        ("lines", 3, "XLine", True),
        ("event_metadata", 4, "Entry", True),
        ("stat_metadata", 5, "Entry", True),
        ("stats", 6, "XStat", True),
    ],
    "XLine": [
        ("id", 1, INT, False),
        ("name", 2, BYTES, False),
        ("timestamp_ns", 3, INT, False),
        ("events", 4, "XEvent", True),
        ("duration_ps", 9, INT, False),
        ("display_id", 10, INT, False),
        ("display_name", 11, BYTES, False),
    ],
    "XEvent": [
        ("metadata_id", 1, INT, False),
        ("offset_ps", 2, INT, False),
        ("duration_ps", 3, INT, False),
        ("stats", 4, "XStat", True),
        ("num_occurrences", 5, INT, False),
    ],
    "XStat": [
        ("metadata_id", 1, INT, False),
        ("double_value", 2, REAL, False),
        ("uint64_value", 3, UINT, False),
        ("int64_value", 4, INT, False),
        ("str_value", 5, BYTES, False),
        ("bytes_value", 6, BYTES, False),
        ("ref_value", 7, UINT, False),
    ],
    "Entry": [("key", 1, INT, False), ("value", 2, "Metadata", False)],
    "Metadata": [
        ("id", 1, INT, False),
        ("name", 2, BYTES, False),
        ("metadata", 3, BYTES, False),
        ("display_name", 4, BYTES, False),
        ("stats", 5, "XStat", True),
    ],
}


def repeated(raw: bytes, space_class: Any) -> tuple[bytes, int]:
    """(the profile with its events over and over, how many events that are)."""
    space = space_class.FromString(raw)
    lines = [line for plane in space.planes for line in plane.lines]
    once = sum(len(line.events) for line in lines)
    times = -(-EVENTS // once)
    starts = [line.timestamp_ns * 1000 + event.offset_ps for line in lines for event in line.events]
    length = max(starts) - min(starts) + 10**9
    for line in lines:
        events = list(line.events)
        for turn in range(1, times):
            for event in events:
                line.events.add().CopyFrom(event)
                line.events[-1].offset_ps += turn * length
    return bytes(space.SerializeToString()), once * times


def seconds(call: Callable[[], Any]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def lanes(raw: bytes) -> None:
    lay_out(decode_xspace(raw))


def peak(raw: bytes) -> float:
    process, highest, done = psutil.Process(), [0], threading.Event()
    before = process.memory_info().rss

    def watch() -> None:
        while not done.wait(0.001):
            highest[0] = max(highest[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    lanes(raw)
    done.set()
    watcher.join()
    return (highest[0] - before) / len(raw)


def main() -> None:
    space_class = message_classes("bench.xplane", WHOLE)["XSpace"]
    print("profile               events     bytes   C parse, s   decode and lanes, s   ratio   first ratio   peak/raw")
    for title, name in PROFILES.items():
        data = (DATA / name).read_bytes()
        small = gzip.decompress(data) if name.endswith(".gz") else lzma.decompress(data)
        lanes(small)
        raw, events = repeated(small, space_class)
        memory = peak(raw)
        rows = [(seconds(lambda: space_class.FromString(raw)), seconds(lambda: lanes(raw))) for _ in range(TURNS)]  # noqa: B023
        parse, decode = (statistics.median(column) for column in zip(*rows))
        first = rows[0][1] / rows[0][0]
        times = f"{parse:12.2f} {decode:21.2f} {decode / parse:7.2f} {first:13.2f}"
        print(f"{title:16} {events:11,} {len(raw):9,} {times} {memory:10.2f}")


if __name__ == "__main__":
    main()
