"""How a traced step used the CPUs: the counters of this process, and files that are missing or unlike any."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tftracer.capture.traces.cpu_use import CpuReading, cpu_use, read_after, read_before, usable_cpus
from tftracer.storage import untrusted

MS = 1_000_000
LONG = 10**12  # a busy machine may take its time
WORKS_WHEN_ASKED = "print(flush=True); input(); sum(range(10**6)); print(flush=True); input()"


def test_this_process_with_a_thread_that_works() -> None:
    before = read_before(max_ns=LONG)
    worker = threading.Thread(target=lambda: sum(range(500_000)))
    worker.start()
    worker.join()
    use = cpu_use(before, read_after(max_ns=LONG))
    assert use["cpu_s"] > 0 and use["wall_s"] > 0 and use["cpus"] >= 1
    assert use["run_queue_s"] >= 0 and use["busiest_thread_s"] >= 0


def proc(folder: Path, **threads: str) -> str:
    for name, text in threads.items():
        (folder / "self/task" / name).mkdir(parents=True, exist_ok=True)
        (folder / "self/task" / name / "schedstat").write_text(text)
    return str(folder)


def test_waiting_is_added_up_over_threads_new_ones_and_all(tmp_path: Path) -> None:
    before = read_before(proc(tmp_path, a=f"{50 * MS} {10 * MS} 3", b=f"{1 * MS} {2 * MS} 1", odd="?"), LONG)
    after = read_after(proc(tmp_path, a=f"{80 * MS} {15 * MS} 3", b=f"{2 * MS} {2 * MS} 1", new=f"{4 * MS} {1 * MS} 1"), LONG)
    slept = read_after(proc(tmp_path, a=f"{80 * MS} {60_015 * MS} 3"), LONG)._replace(at_ns=before.at_ns + 40 * MS)
    assert cpu_use(before, slept)["run_queue_s"] == pytest.approx(0.001), "Linux may count a sleep as a wait"
    use = cpu_use(before, after._replace(at_ns=before.at_ns + 40 * MS))
    assert use["run_queue_s"] == pytest.approx(0.006) and use["busiest_thread_s"] == pytest.approx(0.030)


def test_the_tracers_own_threads_do_not_count() -> None:
    done = threading.Event()
    own = threading.Thread(target=done.wait, name="tftracer-writer")
    own.start()
    name = str(own.native_id)
    threads = {name: (60 * MS, 50 * MS), "x": (30 * MS, MS)}
    use = cpu_use(CpuReading(0, 0, {name: (0, 0)}), CpuReading(100 * MS, 90 * MS, threads))
    read_late = cpu_use(CpuReading(0, 0, {name: (0, 0)}), CpuReading(40 * MS, 40 * MS, threads))
    done.set()
    own.join()
    assert use["cpu_s"] == pytest.approx(0.030) and use["busiest_thread_s"] == pytest.approx(0.030)
    assert use["run_queue_s"] == pytest.approx(0.001)
    assert read_late["cpu_s"] == pytest.approx(0.030), "no less than the thread that used most, whatever ours did after the step"


def test_processes_that_it_started_are_the_jobs_own() -> None:
    with subprocess.Popen([sys.executable, "-c", WORKS_WHEN_ASKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        before = read_before(max_ns=LONG)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        use = cpu_use(before, read_after(max_ns=LONG))
    assert use["job_cpu_s"] > use["cpu_s"] + 0.005
    assert "job_cpu_s" not in cpu_use(before, read_after(max_ns=LONG))  # it has ended


def test_all_that_a_process_used_counts_that_began_meanwhile() -> None:
    """As the tracer's helper process does in the first step that is traced."""
    use = cpu_use(CpuReading(0, 0, {}, {"1": 40 * MS}), CpuReading(100 * MS, 30 * MS, {}, {"1": 45 * MS, "2": 25 * MS}))
    assert use["job_cpu_s"] == pytest.approx(0.060)


def test_without_a_list_of_children_the_jobs_own_is_not_known(tmp_path: Path) -> None:
    nowhere = proc(tmp_path, a="1 1 1")
    assert "job_cpu_s" not in cpu_use(read_before(nowhere, LONG), read_after(nowhere, LONG))


def test_without_proc_the_clocks_alone_are_known(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none")
    use = cpu_use(read_before(nowhere), read_after(nowhere))
    assert "run_queue_s" not in use and "busiest_thread_s" not in use and use["wall_s"] > 0


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"cpu.max": "50000 100000"}, 0.5),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "25000", "cpu/cpu.cfs_period_us": "100000"}, 0.25),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({"cpu.max": "odd"}, None),
        ({}, None),
    ],
)
def test_a_containers_limit_counts(tmp_path: Path, files: dict[str, str], cpus: float | None) -> None:
    unlimited = usable_cpus(str(tmp_path / "none"))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cpus(str(tmp_path)) == (cpus if cpus is not None else unlimited)


def test_a_reading_that_takes_too_long_is_given_up() -> None:
    before = read_before(max_ns=-1)
    assert before.threads is None and "run_queue_s" not in cpu_use(before, read_after(max_ns=LONG))


def test_what_a_file_says_of_it_is_not_believed() -> None:
    assert untrusted.cpu_use({"wall_s": 0.5, "cpu_s": -1.0, "cpus": "many", "else": 7}) == {"wall_s": 0.5}
    assert untrusted.cpu_use(None) == {}
