"""Who holds Python's lock, read from memory."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

from job_page import wait_for

from tftracer.slow.watch.read_lock_holder import LockPlace, LockReader
from tftracer.slow.watch.thread_counters import Counters

FINDS_PLACE = """
import ctypes, sys, threading
sys.path[:0] = sys.argv[1:]
from tftracer.slow.watch.read_lock_holder import LockPlace
place = LockPlace()
place.narrow()
thread = threading.Thread(target=place.narrow)
thread.start()
thread.join()
"""
HOLDER = """
print(*place.place, threading.get_ident(), flush=True)
for turn in range(1000):
    sys.stdin.readline()
    ctypes.PyDLL(None).usleep(300_000)  # with the lock
    print("let go", flush=True)
"""


def test_two_threads_find_one_place() -> None:
    place = LockPlace()
    place.narrow()
    thread = threading.Thread(target=place.narrow)
    thread.start()
    thread.join()
    assert place.place is not None


def test_another_process_reads_who_holds_the_lock_and_that_nobody_does() -> None:
    command = [sys.executable, "-c", FINDS_PLACE + HOLDER, *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        address, number, ident = map(int, process.stdout.readline().split())
        reader = LockReader(process.pid)
        reader.begin(address, number)

        def read(thread: int) -> bool:
            at = len(reader.holders(0, 10))
            reader.read(at)
            return reader.holders(at, at) == [(at, thread)]

        wait_for(lambda: read(0))
        process.stdin.write("\n")
        process.stdin.flush()
        wait_for(lambda: read(ident))
        assert process.stdout.readline() == "let go\n"
        wait_for(lambda: read(0))
        process.kill()


WAITER = """
asleep = threading.Lock()
asleep.acquire()

def wait():
    print(place.place[0], threading.get_native_id(), flush=True)
    asleep.acquire()

threading.Thread(target=wait, daemon=True).start()
sys.stdin.readline()
sys.setswitchinterval(100)  # seconds: on a busy machine the other thread would get Python's lock before usleep begins
asleep.release()
ctypes.PyDLL(None).usleep(60_000_000)  # with Python's lock: the other thread has its own now, and waits for Python's
"""


def test_another_process_sees_which_thread_waits_for_the_lock_and_which_for_something_else() -> None:
    command = [sys.executable, "-c", FINDS_PLACE + WAITER, *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        address, native = map(int, process.stdout.readline().split())
        counters = Counters(process.pid)
        counters.lock = address
        counters.watch([native], [], [])

        def wants_lock() -> list[bool]:
            begin = time.perf_counter_ns()
            counters.read(begin)
            return [wants for _, wants in counters.wants_lock(native, begin, begin) or ()]

        wait_for(lambda: wants_lock() == [False])  # it waits for the lock of the script
        process.stdin.write("\n")
        process.stdin.flush()
        wait_for(lambda: wants_lock() == [True])
        process.kill()


def test_a_process_that_may_not_be_read_tells_nothing() -> None:
    reader = LockReader(2**22 + 1)  # no process has this number
    reader.begin(4096, 0)
    for at in range(200):
        reader.read(at)
    assert reader.holders(0, 200) == []
