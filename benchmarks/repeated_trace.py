"""RunMetadata of any number of nodes, made of a real one: for bench_decode.py, bench_analyses.py and bench_page.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

from environments import ROOT, environment

OUT = ROOT / "benchmarks/out"
ORIGINAL = ROOT / ".envs/original/bin/python"
SOURCE = ROOT / "tests/data/dense500_tf2.15_cpu.pb"


def trace_of(nodes: int) -> Path:
    """RunMetadata of so many nodes: the real one of 8,009, cut or repeated."""
    path = OUT / f"page_{nodes}.pb"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        script = ROOT / "benchmarks/original/page.py"
        command = [str(ORIGINAL), str(script), "repeat", str(SOURCE), str(nodes), str(path)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=environment(ours=False))
    return path
