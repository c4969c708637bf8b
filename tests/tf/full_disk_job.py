"""A training that is traced onto a disk which fills, and then has space again. Prints what was seen as a line of JSON.

    python full_disk_job.py FOLDER [QUOTA_BYTES]

FOLDER is a file system of some MB, or a folder in which no more than QUOTA_BYTES may lie.
"""

from __future__ import annotations

import contextlib
import errno
import json
import operator
import os
import resource
import sys
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tftracer import TracingServer
from tftracer.errors import StorageError
from tftracer.session.files.saved import open_session
from tftracer.storage.spool import Disk

MAX_STEPS = 300  # a disk that is not full by then never will be
AFTER = 10  # steps on a full disk, and when there is space again
SLACK = 32 << 10  # less than a trace takes, which is some 45 kB


class Quota:
    """Stands for a disk of so many bytes: what is written into the folder by the spool, and by us, less what was given back."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit, self._given_back = folder, limit, 0
        write_at, punch = Disk.write_at, Disk.punch

        def limited(disk: Disk, offset: int, data: bytes) -> None:
            room = self.free()
            write_at(disk, offset, data[:room])
            if room < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def counted(disk: Disk, offset: int, size: int) -> None:
            punch(disk, offset, size)
            self._given_back += size

        for name, method in (("write_at", limited), ("punch", counted), ("free", lambda disk: self.free())):
            setattr(Disk, name, method)

    def free(self) -> int:
        used = 0
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was there just now
                used += path.stat().st_size
        return max(0, self._limit + self._given_back - used)


class Mounted:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def free(self) -> int:
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize


class Job:
    """A session on that disk, and a page's view of it."""

    def __init__(self, folder: Path, disk: Quota | Mounted, keep_traces: int) -> None:
        self.disk, self.ballast = disk, folder / "ballast"
        self.server = TracingServer(server_port=0, spool_dir=folder, keep_traces=keep_traces)
        self.recorder = self.server.recorder
        self.steps = 0

    def page(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(self.server.url.split("?")[0] + path, method=method)
        request.add_header("Authorization", f"Bearer {self.server.token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        return json.load(urllib.request.urlopen(request, timeout=60))

    def problems(self) -> dict[str, str]:
        return {problem["code"]: problem["message"] for problem in self.page("GET", "api/session")["session"]["problems"]}

    def trace_ids(self) -> list[int]:
        return [trace["id"] for run in self.page("GET", "api/session")["runs"] for trace in run["traces"]]

    def fill(self, leave: int) -> None:
        """Something else on the disk takes what is left of it."""
        with self.ballast.open("ab") as file:
            while (more := min(1 << 20, self.disk.free() - leave)) > 0:
                file.write(bytes(more))
                file.flush()

    def reopened(self) -> dict[str, Any]:
        """What the spool holds, every trace of it read."""
        session = open_session(self.recorder.session()["file"])
        traces = [trace for run in session.runs() for trace in run["traces"]]
        assert all(len(session.trace_bytes(trace["id"])) == trace["bytes"] > 0 for trace in traces)
        return {
            "ids": [trace["id"] for trace in traces],
            "damage": session.session()["damage"],
            "steps": sum(run["steps"] for run in session.runs()),
        }

    def saved(self, folder: Path, mounted: bool) -> str:
        """Why the session cannot be saved there."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if not mounted:  # a quota of the system's own, for what does not go through the spool
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            self.server.save_session(folder / "saved.tftrace")
        except StorageError as error:
            return str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return ""


def train(hooks: list[Any], after_step: Callable[[int], bool]) -> list[float]:
    """The losses of a loop that ends when ``after_step`` says so."""
    with tf.Graph().as_default():
        inputs = tf.placeholder(tf.float32, [None, 16], name="x")
        weights = tf.get_variable("w", initializer=np.eye(16, dtype=np.float32))
        hidden = inputs
        for _ in range(150):
            hidden = tf.tanh(tf.matmul(hidden, weights))
        loss = tf.reduce_sum(tf.square(hidden - 1.0))
        train_op = tf.train.GradientDescentOptimizer(1e-5).minimize(loss, tf.train.get_or_create_global_step())
        losses: list[float] = []
        with tf.train.MonitoredSession(hooks=hooks) as session:
            while True:
                given = np.full((4, 16), (len(losses) % 7) / 10, np.float32)
                losses.append(float(session.run([train_op, loss], {inputs: given})[1]))
                if after_step(len(losses)):
                    return losses


def filled(folder: Path, disk: Quota | Mounted) -> dict[str, Any]:
    """All traces are kept until the disk is full; then what else lies there is deleted."""
    job = Job(folder, disk, keep_traces=1000)
    seen: dict[str, Any] = {}
    job.fill(leave=400_000)
    job.page("PUT", "api/tracing", {"all": True})
    full_at = space_at = 0

    def after_step(step: int) -> bool:
        nonlocal full_at, space_at
        assert job.recorder.flush() and step < MAX_STEPS
        if not full_at and "storage" in job.problems():
            full_at = step
        elif full_at and step == full_at + AFTER:
            seen["full"] = {"problems": job.problems(), "ids": job.trace_ids(), "reopened": job.reopened()}
            seen["saving"] = job.saved(folder, isinstance(disk, Mounted))
            seen["files"] = sorted(path.suffix for path in folder.iterdir())
            job.ballast.unlink()
            space_at = step
        elif space_at and step == space_at + AFTER:
            seen["space"] = {"problems": job.problems(), "ids": job.trace_ids(), "reopened": job.reopened()}
            return True
        return False

    seen["losses"] = train([job.server.hook], after_step)
    seen["off"] = job.recorder.queue.off
    job.server.close()
    seen["ended"] = job.reopened()
    Path(job.recorder.session()["file"]).unlink()
    return seen


def replaced(folder: Path, disk: Quota | Mounted) -> dict[str, Any]:
    """Three traces are kept, on a disk that has no room for a fourth: the oldest makes way before the newest is written."""
    job = Job(folder, disk, keep_traces=3)
    seen: dict[str, Any] = {}
    job.page("PUT", "api/tracing", {"all": True})

    def after_step(step: int) -> bool:
        assert job.recorder.flush()
        if step == 3:
            job.fill(leave=SLACK)
        return step == 3 + AFTER

    seen["losses"] = train([job.server.hook], after_step)
    seen["ids"] = job.trace_ids()
    job.ballast.unlink()
    job.server.close()
    seen["ended"] = job.reopened()
    Path(job.recorder.session()["file"]).unlink()
    return seen


def main() -> None:
    tf.disable_eager_execution()
    folder = Path(sys.argv[1])
    disk = Quota(folder, int(sys.argv[2])) if len(sys.argv) > 2 else Mounted(folder)
    seen: dict[str, Any] = {"filled": filled(folder, disk), "replaced": replaced(folder, disk)}
    for part in seen.values():
        part["steps"] = len(part["losses"])
        part["as_without"] = train([], partial(operator.eq, part["steps"])) == part.pop("losses")
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
