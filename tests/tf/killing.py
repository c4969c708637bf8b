"""Kills a tracing job at a random moment and looks at what it left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tftracer.session.files.saved import open_session
from tftracer.storage.spool_folder import ended_spools

JOB = Path(__file__).with_name("killed_job.py")
#: Traces that the job keeps.
KEEP = 4


class Kill(NamedTuple):
    """What one kill met with."""

    announced: int  # traces told as done
    cut: bool  # inside a record
    rewriting: bool  # the spool was being replaced by a smaller one


def start(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.Popen([sys.executable, str(JOB), str(folder), str(KEEP)], stdout=subprocess.PIPE, env=environment)


def kill_and_look(folder: Path, chance: random.Random) -> Kill:
    """Kill a job after some of its traces and part of the next; every trace announced must be there."""
    job = start(folder)
    assert job.stdout is not None
    lines: list[list[str]] = []
    wanted = chance.randint(1, 60)
    while sum(line[0] == "DONE" for line in lines) < wanted:
        line = job.stdout.readline().decode().split()
        assert line, "the job ended by itself"
        lines.append(line)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a random part of what comes next: some traces take 100 ms
        job.wait(timeout=chance.uniform(0, 0.1))
        raise AssertionError("the job ended by itself")
    os.kill(job.pid, signal.SIGKILL)
    lines += [line.split() for line in job.stdout.read().decode().splitlines() if len(line.split()) == 3]
    job.wait()
    job.stdout.close()
    return look(folder, lines)


def look(folder: Path, lines: list[list[str]]) -> Kill:
    path = next(line[1] for line in lines if line[0] == "SPOOL")
    assert [spool.path for spool in ended_spools(folder)] == [Path(path)]
    session = open_session(path)
    done = {int(line[1]): int(line[2]) for line in lines if line[0] == "DONE"}
    gone = {int(line[1]) for line in lines if line[0] == "GONE"}
    kept = {trace["id"]: trace for run in session.runs() for trace in run["traces"]}
    missing = sorted(done.keys() - gone - kept.keys())
    # A removal is announced after it was written, so the announcement of the last one may be missing. Then all places are taken.
    made_way = len(missing) == 1 and len(kept) >= KEEP and missing[0] < max(kept)
    assert not missing or made_way, f"traces {missing} were announced and are lost; there are {sorted(kept)}"
    for trace_id in done.keys() & kept.keys():
        assert len(session.trace_bytes(trace_id)) == done[trace_id]
    Path(path).unlink()
    return Kill(len(done), "inside a record" in session.session()["cut"], bool(list(folder.glob("*.new"))))
