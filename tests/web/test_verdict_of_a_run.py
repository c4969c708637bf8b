"""The verdict of a trace over HTTP: from four traces of its run on it speaks of rates, too."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import msgpack
from recording import DATA, TRAIN, recording, step
from web_client import no_stray_logs, serving

__all__ = ["no_stray_logs"]  # a fixture

RAW = [
    trace["raw"]
    for trace in msgpack.unpackb(lzma.decompress((DATA / "compute_steps" / "slow_kernel_1_tf2.21.xz").read_bytes()))["traces"]
]


def codes(asking: Any, trace: int) -> list[str]:
    return [sentence["code"] for sentence in asking.get(f"/api/traces/{trace}/verdict").json["sentences"]]


def test_a_slow_op_is_named_from_the_fourth_trace_on(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=100) as recorder:
        for number, raw in enumerate(RAW[:3], 1):
            step(recorder, number, (TRAIN,), raw=raw)
        assert recorder.flush()
        with serving(recorder) as asking:
            first = asking.get("/api/traces/1/verdict")
            assert "slow_kernel" not in codes(asking, 1)
            assert asking.get("/api/traces/1/verdict", If_None_Match=first.headers["Etag"]).status == 304
            step(recorder, 4, (TRAIN,), raw=RAW[3])
            assert recorder.flush()
            assert asking.get("/api/traces/1/verdict", If_None_Match=first.headers["Etag"]).status == 200
            assert "slow_kernel" in codes(asking, 1) and "slow_kernel" in codes(asking, 4)


def test_traces_of_another_run_do_not_count(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=100) as recorder:
        for number, raw in enumerate(RAW[:4], 1):
            step(recorder, number, (TRAIN,) if number > 1 else ("loss:0",), raw=raw)
        assert recorder.flush()
        with serving(recorder) as asking:
            assert not any("slow_kernel" in codes(asking, number) for number in range(1, 5))
