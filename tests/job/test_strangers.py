"""Connections that have not proved yet that they know the token keep no process out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from job_page import wait_for
from local_jobs import Jobs

from tftracer.job.hub import services
from tftracer.job.hub.services import MAX_OF_ONE_PEER, MAX_STRANGERS, Strangers
from tftracer.web import flood_limit


class Silent:
    def __init__(self) -> None:
        self.dropped = ""

    def drop(self, reason: str) -> None:
        self.dropped = reason


def test_the_oldest_connection_of_a_peer_makes_way() -> None:
    waiting = Strangers()
    made = [Silent() for _ in range(MAX_OF_ONE_PEER + 2)]
    for one in made:
        waiting.add(one, "10.0.0.1")
    assert [bool(one.dropped) for one in made] == [True] * 2 + [False] * MAX_OF_ONE_PEER
    assert len(waiting) == MAX_OF_ONE_PEER


def test_the_peer_with_the_most_connections_makes_way() -> None:
    waiting, one = Strangers(), Silent()
    waiting.add(one, "10.0.0.1")
    many = {peer: [Silent() for _ in range(count)] for peer, count in (("2001:db8::", 120), ("10.0.0.2", 135))}
    for peer, each in many.items():
        for number, silent in enumerate(each):
            waiting.add(silent, f"{peer}{number + 1:x}" if ":" in peer else peer)
    late = [Silent() for _ in range(20)]
    for number, silent in enumerate(late):
        waiting.add(silent, f"10.1.0.{number}")
    assert len(waiting) == MAX_STRANGERS and not one.dropped and not any(silent.dropped for silent in late)
    assert sum(bool(silent.dropped) for silent in many["10.0.0.2"]) >= 12


def test_a_joined_process_does_not_count() -> None:
    waiting, one = Strangers(), Silent()
    waiting.add(one, "10.0.0.1")
    waiting.discard(one)
    waiting.discard(one)
    assert not len(waiting) and not one.dropped


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Eight connections of one peer, so that a test needs few sockets, and no deadline."""
    monkeypatch.setattr(services, "MAX_OF_ONE_PEER", 8)
    monkeypatch.setattr("tftracer.job.wire.protocol.GREETING_S", 3600.0)
    yield


def knock(port: int) -> socket.socket:
    """A connection as an agent makes it, which then sends nothing."""
    silent = socket.create_connection(("127.0.0.1", port))
    silent.sendall(
        b"GET /api/job/agents HTTP/1.1\r\nHost: localhost\r\nAuthorization: tftracer-agent\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    assert silent.recv(12) == b"HTTP/1.1 101"
    return silent


def test_silent_connections_lock_nobody_out(few: None, jobs: Jobs) -> None:
    first = jobs.rank(0, 2, token="shared")
    first.joined(1)
    with ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(knock(first.port))
        second = jobs.rank(1, 2, token="shared").train()
        first.joined(2)
        wait_for(second.recorder.runs, "a first step")


def test_a_silent_connection_ends_by_itself(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tftracer.job.wire.protocol.GREETING_S", 0.05)
    with knock(jobs.rank(0, 1).port) as silent:
        received = b""
        while part := silent.recv(4096):
            received += part
    assert b"no greeting" in received


def test_a_process_joins_while_strangers_flood_the_port(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request shows that it knows the token, so it does not queue with those of strangers."""
    monkeypatch.setattr(flood_limit, "STRANGERS_PER_S", 1e-6)
    monkeypatch.setattr(flood_limit, "STRANGER_BURST", 2)
    first = jobs.rank(0, 2, token="shared")
    first.joined(1)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(knock(first.port))
        jobs.rank(1, 2, token="shared")
        first.joined(2)
