"""Strangers' connections leave the script its file descriptors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tftracer.web.flood_limit import FileRoom

SCRIPT = """
import contextlib, os, resource, socket, sys, threading, time

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
from fake_source import FakeSource
from tftracer.web.app import Options, WebServer

server = WebServer(FakeSource(), Options(port=0))
server.start()
flood = r'''
import contextlib, resource, socket, sys
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))  # a stranger's own is no limit
port, held, made = int(sys.argv[1]), {"127.0.0.2": [], "127.0.0.3": []}, 0
kinds = [b"", b"GET / HTTP/1.1", b"GET / HTTP/1.1\\r\\n\\r\\n", b"GET /api/job/agents HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n"]
while True:
    for source, connections in held.items():
        one = socket.socket()
        one.bind((source, 0))
        one.settimeout(30)
        with contextlib.suppress(OSError):
            one.connect(("127.0.0.1", port))
            one.sendall(kinds[made % len(kinds)])
        connections.append(one)
        while len(connections) > 200:
            connections.pop(0).close()
        made += 1
        if made == 1200:
            print("FLOOD", flush=True)
'''
import subprocess
strangers = subprocess.Popen([sys.executable, "-c", flood, str(server.port)], stdout=subprocess.PIPE)
try:
    opened = 0
    ends = threading.Event()
    said = []
    threading.Thread(target=lambda: (said.append(strangers.stdout.readline()), ends.set()), daemon=True).start()
    while not ends.is_set():
        with contextlib.ExitStack() as files:
            for _ in range(40):
                files.enter_context(open(os.devnull))
                opened += 1
    assert said == [b"FLOOD\\n"], "the strangers ended early"
    print("opened", opened)
finally:
    strangers.kill()
    strangers.wait()
    server.stop()
"""


def test_no_file_of_the_script_fails_to_open_beside_a_flood() -> None:
    """256 descriptors, two addresses, 1,200 connections of which 400 stay open, and the script's files, 40 at a time."""
    folders = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    environment = {**os.environ, "PYTHONPATH": folders}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[1]) > 0


@pytest.mark.parametrize(("left", "places"), [(100, 25), (1, 1), (0, 1), (-3, 1), (4000, 1000)])
def test_strangers_take_a_quarter_of_what_is_left(left: int, places: int) -> None:
    room = FileRoom(lambda: left, lambda: 0.0)
    held = 0
    while room.has_place(held) and held < 5000:
        held += 1
    assert held == places


def test_what_strangers_hold_is_not_the_scripts() -> None:
    room = FileRoom(lambda: 80, lambda: 0.0)
    assert room.has_place(20)
    assert not room.has_place(25)


def test_where_the_system_does_not_say_the_other_limits_hold() -> None:
    assert FileRoom(lambda: None, lambda: 0.0).has_place(10_000)
