"""What TensorFlow says of the devices of its process, and its own matrix products: on a CPU, which has no name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import tensorflow as tf

from tftracer.roof.with_tensorflow import DTYPES
from tftracer.session.process.gpu_profiling import gpu_devices


def test_devices_are_described_as_tensorflow_describes_them() -> None:
    assert gpu_devices("CPU") == [{"name": "", "compute_capability": ""}]
    assert gpu_devices() == []
    assert gpu_devices("CPU", {}) == []  # nothing is imported for the question
    assert gpu_devices("CPU", {"tensorflow": object()}) == []


def test_the_command_measures_with_tensorflow_too(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("TFTRACER_SPOOL_DIR", None)
    command = [sys.executable, "-m", "tftracer", "roof", "--seconds", "0.001", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    (cpu,) = json.loads(done.stdout)["devices"]
    rates = {rate["dtype"]: rate for rate in cpu["rates"]}
    assert rates.keys() == set(DTYPES) and all(rate["flops_per_s"] > 1e6 for rate in rates.values())
    assert rates["bfloat16"]["by"] == f"TensorFlow {tf.__version__}"  # NumPy has none
