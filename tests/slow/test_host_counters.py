"""What is read from /proc, with the texts of real machines, and with files that are missing or unlike any."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tftracer.slow.watch import host_counters
from tftracer.slow.watch.host_counters import HostCounters

STAT = b"4242 (tf) data (x) R 1 4242 4242 0 -1 4194304 9000 0 17 0 250 50 0 0 20 0 8 0 100 0 0"
CPU = b"cpu  100 5 45 900 30 2 3 15 0 0\ncpu0 50 2 20 450 15 1 1 7 0 0\n"
PRESSURE = b"some avg10=1.00 avg60=0.50 avg300=0.10 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"
IO = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n"


def test_the_texts_are_understood() -> None:
    assert host_counters.parse_schedstat(b"961460 96974 2\n") == (961460, 96974)
    assert host_counters.parse_major_faults(STAT) == 17  # after a name with spaces and brackets
    assert host_counters.parse_process_ticks(STAT) == 300
    assert host_counters.parse_cpu(CPU) == (155, 15)
    assert host_counters.parse_cpu(b"cpu  1 2 3 4\n") == (6, 0)  # an old kernel
    assert host_counters.parse_pressure(PRESSURE) == 123456
    assert host_counters.parse_io(IO) == (4096, 8192)


def proc(folder: Path, **files: bytes) -> str:
    whole = {"self/task/7/schedstat": b"1000000000 500000000 3", "self/task/7/stat": STAT, "self/stat": STAT, "stat": CPU}
    whole |= {"self/io": IO, "pressure/cpu": PRESSURE, "pressure/io": PRESSURE, "pressure/memory": PRESSURE}
    for name, text in (whole | {name.replace("_", "/"): text for name, text in files.items()}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return str(folder)


def test_a_change_has_seconds_and_bytes(tmp_path: Path) -> None:
    host = HostCounters(proc(tmp_path))
    before = host.read(7)
    (tmp_path / "self/task/7/schedstat").write_bytes(b"1400000000 600000000 9")
    (tmp_path / "self/io").write_bytes(IO.replace(b"8192", b"1008192"))
    after = host.read(7)
    change = host.change(before, after)
    assert change.on_cpu_s == pytest.approx(0.4) and change.run_queue_s == pytest.approx(0.1)
    assert change.written_bytes == 1_000_000 and change.read_bytes == 0 and change.steal_s == 0
    assert change.seconds == pytest.approx((after.at_ns - before.at_ns) * 1e-9) and change.cpus == os.cpu_count()
    host.close()


def test_what_is_missing_is_unknown_and_nothing_else_suffers(tmp_path: Path) -> None:
    folder = proc(tmp_path, pressure_io=b"", self_io=b"Permission denied", stat=b"nothing of the kind")
    (tmp_path / "pressure/cpu").unlink()
    (tmp_path / "self/task/7/schedstat").unlink()
    host = HostCounters(folder)
    reading = host.read(7)
    change = host.change(reading, host.read(7))
    missing = [
        change.on_cpu_s,
        change.run_queue_s,
        change.cpu_pressure_s,
        change.io_pressure_s,
        change.read_bytes,
        change.machine_cpu_s,
    ]
    assert missing == [None] * 6 and change.memory_pressure_s == 0 and change.process_cpu_s == 0 and change.major_faults == 0
    host.close()


def test_a_system_without_proc_tells_nothing(tmp_path: Path) -> None:
    host = HostCounters(str(tmp_path / "none"))
    assert not host.read(7).counters and not host.read(None).counters
    assert set(host.change(host.read(7), host.read(7))[1:]) == {None, os.cpu_count()}


def test_this_machine_counts_the_work_of_this_thread() -> None:
    host = HostCounters()
    native = threading.get_native_id()
    before = host.read(native)
    while (change := host.change(before, host.read(native))).seconds < 0.05 or change.on_cpu_s == 0.0:
        sum(range(10_000))
    if "on_cpu_s" in before.counters:
        assert change.on_cpu_s is not None and 0 < change.on_cpu_s <= change.seconds + 0.01
    host.close()
    host.close_thread(native)


def test_the_files_of_a_thread_that_has_ended_are_opened_anew_for_its_successor(tmp_path: Path) -> None:
    host = HostCounters(proc(tmp_path))
    file = tmp_path / "self/task/7/schedstat"
    assert host.read(7).counters["on_cpu_s"] == 1_000_000_000
    file.unlink()
    file.write_bytes(b"2000000000 500000000 3")
    assert host.read(7).counters["on_cpu_s"] == 1_000_000_000  # the old file, open still
    host.close_thread(7)
    assert host.read(7).counters["on_cpu_s"] == 2_000_000_000
    host.close()
