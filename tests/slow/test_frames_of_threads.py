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
        collections += gc.get_threshold()[0] < 10**9
        stack_of(frames[worker.ident])
print(collections, gc.isenabled(), gc.get_threshold())
"""


def test_a_sampler_beside_garbage_collections_does_not_kill_the_process() -> None:
    sampled = subprocess.run([sys.executable, "-c", SAMPLED], capture_output=True, text=True)
    assert (sampled.returncode, sampled.stdout) == (0, "0 True (50, 5, 5)\n"), sampled.stderr[-2000:]


OFF = """
import gc, os, threading
from tftracer.slow.watch.frames_of_threads import frames_of_threads

def tells(change):
    with frames_of_threads():
        with frames_of_threads():  # another thread of the tracer, say
            change()
    print(gc.isenabled(), gc.get_threshold())

tells(lambda: None)
tells(gc.disable)
tells(lambda: None)
tells(lambda: gc.set_threshold(300, 4, 5))
with frames_of_threads():
    child = os.fork()
    if not child:
        print(gc.get_threshold(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
gc.set_threshold(700, 10, 10)
tells(gc.enable)
"""


def test_what_a_script_does_with_collections_meanwhile_stays() -> None:
    told = subprocess.run([sys.executable, "-u", "-c", OFF], capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == [
        "True (700, 10, 10)",
        "False (700, 10, 10)",
        "False (700, 10, 10)",
        "False (300, 4, 5)",
        "(300, 4, 5)",
        "True (700, 10, 10)",
    ]
