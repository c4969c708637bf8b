"""Sessions for the browser tests, made of real traces: what a job would have recorded, without the job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recording import Tensor, captured

from tftracer.session.live import Recorder

DATA = Path(__file__).parent.parent / "data"
#: The step of the gallery's run in which each trace was taken.
DENSE, COST, PS, HOROVOD, OTHER_HOROVOD = range(20, 120, 20)
TRACES = {
    DENSE: "dense500_tf2.15_cpu.pb",
    COST: "conv_costgraph_tf2.21_cpu.pb",
    PS: "ps_worker0_tf2.21_cpu.pb",
    HOROVOD: "horovod_rank0_tf2.15_cpu.pb",
    OTHER_HOROVOD: "horovod_rank1_tf2.15_cpu.pb",
}
#: Beside this file: its traces' ids follow its steps' order.
IDS = {step: number for number, step in enumerate(TRACES, start=1)}


def write_session(
    folder: Path,
    name: str,
    traces: dict[int, bytes],
    fetches: Sequence[str] = ("train", "loss:0"),
    feeds: Sequence[str] = ("x:0",),
    host: str = "trainer-1",
    command: str = "train.py --layers 500",
) -> Path:
    """A saved session of one run with 300 steps, which get slower from step 200 on; ``traces``: RunMetadata by step."""
    recorder = Recorder(spool_dir=folder, keep_traces=len(traces) + 1).start()
    recorder.store.set_facts(host=host, command=command, tensorflow="2.15.1")
    try:
        fetched, fed = tuple(map(Tensor, fetches)), tuple(map(Tensor, feeds))
        for step in range(1, 301):
            start = step * 20_000_000
            duration = 8_000_000 + (step * 7919 % 13) * 100_000 + (4_000_000 if step >= 200 else 0)
            raw = traces.get(step, b"")
            capture = captured(recorder, raw) if raw else None
            recorder.queue.events.append((fetched, fed, None, start, start + duration * (2 if raw else 1), 1, capture))
        assert recorder.flush()
        recorder.save(str(folder / name))
    finally:
        recorder.close()
    return folder / name


def write_gallery(folder: Path) -> Path:
    """The session of the real traces."""
    return write_session(folder, "gallery.tftrace", {step: (DATA / name).read_bytes() for step, name in TRACES.items()})
