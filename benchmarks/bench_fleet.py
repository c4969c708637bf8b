"""``tftracer fleet`` over 1,000 ranks with 10 traces each: DuckDB alone, and two Dask workers of which one is killed midway.

    python benchmarks/bench_fleet.py [RANKS]

The partitions are real Horovod traces whose times differ by rank and step (tests/made_fleet.py). The answers must be the same.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from made_fleet import make_fleet  # noqa: E402

from tftracer.fleet.ask import ask  # noqa: E402
from tftracer.scripting.find_partitions import partitions  # noqa: E402

STEPS = 10


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        folder = Path(name)
        began = time.perf_counter()
        expected = make_fleet(folder, "job", ranks, STEPS)
        files = list(folder.rglob("*.parquet"))
        rows, size = sum(each.rows for each in partitions(folder).whole), sum(file.stat().st_size for file in files)
        print(f"{ranks:,} ranks x {STEPS} traces: {rows:,} rows, {len(files):,} files, {size / 1e6:.0f} MB; "
              f"made in {time.perf_counter() - began:.0f} s; load {os.getloadavg()[0]:.1f}")  # fmt: skip
        alone = timed("DuckDB in this process", lambda: ask(str(folder)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"  memory at most {peak:.0f} MB, of which the reading is a part")
        with_workers(folder, alone, loses_one=False)
        with_workers(folder, alone, loses_one=True)
        first = alone.ranks[0]
        assert (first["rank"], alone.layers[0]["layer"]) == (expected["slow"], expected["layer"])


def with_workers(folder: Path, alone: Any, loses_one: bool) -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        if loses_one:
            threading.Thread(target=kill_one, args=[cluster], daemon=True).start()
        what = "two Dask workers, one killed midway" if loses_one else "two Dask workers"
        assert timed(what, lambda: ask(str(folder), cluster.scheduler_address)) == alone, "the answers differ"


def kill_one(cluster: LocalCluster) -> None:
    """As soon as a worker has finished a part of the work."""
    with Client(cluster.scheduler_address) as client:
        processes = client.run(os.getpid)
    workers = cluster.scheduler.workers
    while not (busy := [address for address, worker in list(workers.items()) if worker.has_what]):
        time.sleep(0.01)
    os.kill(processes[busy[0]], signal.SIGKILL)
    print(f"  killed a worker with {len(workers[busy[0]].has_what)} finished parts")


def timed(what: str, work: Any) -> Any:
    began, processor = time.perf_counter(), time.process_time()
    answer = work()
    print(f"{what:40} {time.perf_counter() - began:7.2f} s, {time.process_time() - processor:7.2f} s of processor time here; "
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
    return answer


if __name__ == "__main__":
    main()
