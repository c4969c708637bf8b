"""Sessions as Parquet: ``tftracer export`` at 8,009, 96,108 and 2^20 nodes, and ten questions in SQL on what it wrote.

    python benchmarks/bench_tables.py

Each size is exported by a process of its own: seconds that passed, seconds of processor time (which other programs on the machine
move less), the files' size, memory. The traces are the real one of 8,009 nodes repeated, so that names are few, and for 2^20
also with a name of its own for each node. The questions are those of docs/sql.rst, each asked three times of a folder that holds
all of these: the first and the best time.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tftracer.trace.decode.descriptors import message_class

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests/data/dense500_tf2.15_cpu.pb"
CAP = 1 << 20
SIZES = {"8,009": (8_009, False), "96,108": (96_108, False), "2^20": (CAP, False), "2^20, distinct names": (CAP, True)}


def write_trace(path: Path, nodes: int, distinct: bool) -> None:
    """The real step, again and again, one after the other, in one device entry; without its graphs."""
    real = message_class("RunMetadata").FromString(SOURCE.read_bytes())
    kept = [node for device in real.step_stats.dev_stats for node in device.node_stats]
    length = max(node.all_start_nanos + node.all_end_rel_nanos for node in kept) - min(node.all_start_nanos for node in kept)
    device = message_class("DeviceStepStats")(device=real.step_stats.dev_stats[0].device)
    with path.open("wb") as file:
        body = bytearray()
        for number in range(nodes):
            node, turn = kept[number % len(kept)], number // len(kept)
            later = message_class("NodeExecStats").FromString(node.SerializeToString()) if turn or distinct else node
            if turn:
                later.all_start_nanos += turn * length
                later.all_start_micros = later.all_start_nanos // 1000
                later.scheduled_nanos, later.scheduled_micros = later.all_start_nanos, later.all_start_micros
            if distinct:
                later.node_name = f"{later.node_name}_{number}"
            body += _field(2, later.SerializeToString())
        stats = _field(1, bytes(device.SerializeToString() + body))
        file.write(_field(1, stats))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    size, head = len(content), bytearray([number << 3 | 2])
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes(head) + bytes([size]) + content


def export_once(path: str, folder: str) -> None:
    from tftracer.scripting.export import export

    began, busy = time.perf_counter(), time.process_time()
    (manifest,) = export([path], folder)
    spent, busy = time.perf_counter() - began, time.process_time() - busy
    size = {name: sum(part["bytes"] for part in parts) / 1e6 for name, parts in manifest["tables"].items()}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    large = ", ".join(f"{name} {size[name]:.2f}" for name in ("slices", "ops", "tensors"))
    files = f"{sum(size.values()):7.2f} MB ({large})"
    print(f"{spent:6.2f} s, {busy:6.2f} s busy, {files}, {memory:,.0f} MB resident", flush=True)


def questions() -> dict[str, str]:
    """Title -> SQL, from the docs; they name tables only."""
    text = (ROOT / "docs/sql.rst").read_text(encoding="utf-8")
    return dict(re.findall(r'^\*\*(\d+\. .*?)\*\*.*?tftracer query [^"]*"(.*?)"$', text, re.MULTILINE | re.DOTALL))


def ask(folder: Path) -> None:
    from tftracer.scripting.query import query

    for title, sql in questions().items():
        times = []
        for _ in range(3):
            began = time.perf_counter()
            rows = len(query([str(folder)], sql).rows)
            times.append(time.perf_counter() - began)
        print(f"{title:70} {times[0] * 1e3:8.0f} / {min(times) * 1e3:6.0f} ms, {rows} rows")


def main() -> None:
    if len(sys.argv) > 1:
        export_once(*sys.argv[1:])
        return
    work = Path(tempfile.mkdtemp(prefix="bench-tables-"))
    try:
        for title, (nodes, distinct) in SIZES.items():
            path = work / f"nodes_{nodes}{'_distinct' if distinct else ''}.pb"
            write_trace(path, nodes, distinct)
            print(f"{title:22} raw {path.stat().st_size / 1e6:7.2f} MB: ", end="", flush=True)
            subprocess.run([sys.executable, __file__, str(path), str(work / "tables")], check=True)
        ask(work / "tables")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
