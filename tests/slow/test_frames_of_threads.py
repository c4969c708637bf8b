"""Reading the frames of a running thread does not kill the process (it did on Python 3.11, beside garbage collections)."""

from __future__ import annotations

import subprocess
import sys

#: Deep stacks, many collections with a callback in Python, and a sampler: without ``frames_of_threads`` it dies within seconds
#: on Python 3.11.
SAMPLED = """
import gc, sys, threading, time
from tftracer.slow.watch.frames_of_threads import frames_of_threads

def stack_of(frame):
    lines = []
    while frame is not None:
        lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back

kept = []

def deep(depth):
    return deep(depth - 1) if depth else [[] for _ in range(3)]

def work():
    while True:
        for depth in (700, 3, 350, 90):
            deep(depth)
        kept.append([[]] * 3)
        if len(kept) > 5000:
            kept.clear()

gc.callbacks.append(lambda phase, info: time.sleep(0))
worker = threading.Thread(target=work, daemon=True)
worker.start()
sys.setswitchinterval(1e-4)
gc.set_threshold(50, 5, 5)
collections = 0
for _ in range(150_000):
    with frames_of_threads() as frames:
        collections += gc.isenabled()
        stack_of(frames[worker.ident])
print(collections, gc.isenabled())
"""


def test_a_sampler_beside_garbage_collections_does_not_kill_the_process() -> None:
    sampled = subprocess.run([sys.executable, "-c", SAMPLED], capture_output=True, text=True)
    assert (sampled.returncode, sampled.stdout) == (0, "0 True\n"), sampled.stderr[-2000:]


OFF = """
import gc
from tftracer.slow.watch.frames_of_threads import frames_of_threads

gc.disable()
with frames_of_threads():
    pass
print(gc.isenabled())
"""


def test_collections_stay_off_where_the_script_has_switched_them_off() -> None:
    assert subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True, check=True).stdout == "False\n"
