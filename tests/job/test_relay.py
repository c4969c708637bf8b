"""An attacker without the token who relays the connection between an agent and its hub can read it at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from job_page import PATIENCE_S, wait_for
from job_relay import Attack, Relay, make_certificate
from local_jobs import Jobs, Rank, Tunnel, goes_on

from tftracer.job.agent.discovery import Target, hub_file, publish_hub
from tftracer.job.wire import protocol
from tftracer.job.wire.handshake import TAG_BYTES

#: What an attacker would send.
SHUT_DOWN = protocol.pack("http", request=1, method="POST", path="/api/shutdown", headers={}, body=b"")
TRACE = protocol.pack("trace", job_trace=1, run_title="train_op", step=1000)


def make_hub(jobs: Jobs) -> Rank:
    first = jobs.rank(0, 2, token="shared").train()
    first.joined(1)
    hub_file(first.job()["name"]).unlink()
    return first


@pytest.fixture
def relay(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A relay whose address the hub accepts as its own; the hub is ``jobs.ranks[0]``."""
    made = Relay()
    monkeypatch.setenv("TFTRACER_ALLOWED_HOSTS", f"127.0.0.1:{made.port}")
    made.to = make_hub(jobs).port
    yield made
    made.close()


def behind(port: int, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> Rank:
    """A process that is configured with this port as its hub's."""
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{port}")
    return jobs.rank(1, 2, token="shared").train()


def job_problem(rank: Rank) -> str:
    return next((p["message"] for p in rank.recorder.session()["problems"] if p["code"] == "job"), "")


def test_a_relay_at_another_address_is_refused(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = make_hub(jobs)
    tunnel = Tunnel(hub.port)
    second = behind(tunnel.port, jobs, monkeypatch)
    problem = wait_for(lambda: job_problem(second), "the refusal")
    assert f"TFTRACER_ALLOWED_HOSTS=127.0.0.1:{tunnel.port}" in problem and "tunnel" in problem
    assert [p["title"] for p in hub.job()["processes"]] == ["rank 0"]
    goes_on(second)
    tunnel.cut()


def test_a_relay_at_an_accepted_address_works(relay: Relay, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = jobs.ranks[0], behind(relay.port, jobs, monkeypatch)
    first.joined(2)
    wait_for(second.recorder.runs, "a first step")
    assert first.trace()["state"] == "ready" and not job_problem(second)


def flip(from_hub: bool, bit: int) -> Attack:
    def attack(hub: bool, number: int, data: bytes) -> list[bytes]:
        if hub is not from_hub or number < 2:
            return [data]
        at = bit % (8 * len(data))
        return [data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]]

    return attack


def inject(from_hub: bool, message: bytes) -> Attack:
    """Adds the message without a tag, and with a wrong tag."""

    def attack(hub: bool, number: int, data: bytes) -> list[bytes]:
        return [data, message, bytes(TAG_BYTES) + message] if hub is from_hub and number == 2 else [data]

    return attack


def repeat(hub: bool, number: int, data: bytes) -> list[bytes]:
    return [data, data] if number == 2 else [data]


def leave_out(hub: bool, number: int, data: bytes) -> list[bytes]:
    return [] if not hub and number == 2 else [data]


def reorder() -> Attack:
    held: list[bytes] = []

    def attack(hub: bool, number: int, data: bytes) -> list[bytes]:
        if hub or number not in (2, 3):
            return [data]
        held.insert(0, data)
        return list(held) if number == 3 else []

    return attack


def reflect() -> Attack:
    """Sends the agent its own message in place of the hub's."""
    lines: list[bytes] = []

    def attack(hub: bool, number: int, data: bytes) -> list[bytes]:
        if not hub and number > 0:
            lines.append(data)
        return lines[-1:] if hub and number == 2 and lines else [data]

    return attack


def as_of_another_connection() -> Attack:
    """Sends the hub's first sealed message of one connection again in the next one."""
    first: list[bytes] = []

    def attack(hub: bool, number: int, data: bytes) -> list[bytes]:
        if not hub or number != 2:
            return [data]
        first.append(data)
        return [data, data] if len(first) == 1 else [first[0]]

    return attack


ATTACKS: dict[str, Callable[[], Attack]] = {
    "shut down": lambda: inject(True, SHUT_DOWN),
    "trace": lambda: inject(True, TRACE),
    "speak for the agent": lambda: inject(False, protocol.pack("bye")),
    "flip a bit of the hub's tag": lambda: flip(True, 3),
    "flip a bit of the hub's message": lambda: flip(True, 8 * TAG_BYTES + 77),
    "flip a bit of the agent's message": lambda: flip(False, 8 * TAG_BYTES + 77),
    "replay": lambda: repeat,
    "leave out": lambda: leave_out,
    "reorder": reorder,
    "reflect": reflect,
    "replay in another connection": as_of_another_connection,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_relay_cannot_speak(relay: Relay, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    relay.attack = ATTACKS[name]()
    first, second = jobs.ranks[0], behind(relay.port, jobs, monkeypatch)
    for _ in range(2):
        relay.ended.get(timeout=PATIENCE_S)  # the attack was noticed, and once more
    assert second.server.url and not second.recorder.queue.requests.slow_path
    assert not any(run["traces"] for run in second.recorder.runs())
    goes_on(second)
    goes_on(first)
    relay.attack = lambda from_hub, number, data: [data]
    first.joined(2)


def test_the_page_says_that_a_message_was_altered(relay: Relay, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    relay.attack = inject(True, SHUT_DOWN)
    second = behind(relay.port, jobs, monkeypatch)
    assert "was changed, repeated or left out on its way" in wait_for(lambda: job_problem(second), "the word")


def test_a_job_meets_under_tls(jobs: Jobs, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "hub")
    first = jobs.rank(0, 2, certfile=cert, keyfile=key).train()
    jobs.rank(1, 2).train()
    wait_for(lambda: len(members(first)) == 2, "both")


def test_a_relay_with_another_certificate_is_refused(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "hub")
    relay = Relay(make_certificate(tmp_path, "relay"))
    monkeypatch.setenv("TFTRACER_ALLOWED_HOSTS", f"127.0.0.1:{relay.port}")
    first = jobs.rank(0, 2, certfile=cert, keyfile=key)
    wait_for(lambda: members(first), "the hub")
    relay.to, name = first.port, first.membership.pages.message()["name"]
    publish_hub(name, Target("127.0.0.1", relay.port, first.server.token, secure=True))
    second = jobs.rank(1, 2)
    assert "does not know 127.0.0.1" in wait_for(lambda: job_problem(second), "the refusal")
    assert len(members(first)) == 1
    relay.close()


def members(rank: Rank) -> list[Any]:
    job = rank.membership.pages.message()
    return job["processes"] if job else []
