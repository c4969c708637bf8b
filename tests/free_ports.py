"""Ports for servers that must be told theirs before they start."""

from __future__ import annotations

import contextlib
import random
import socket

#: Below the ports that a system hands out by itself (Linux: from 32768): until the server starts, no connection may take it.
RANGE = (20_000, 32_000)


def free_port() -> int:
    """A port at which nobody listens."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different ones. Not of the shared generator: suites that run beside each other may seed it alike."""
    tried = random.SystemRandom().sample(range(*RANGE), 20 * count)
    free = [port for port in tried if is_free(port)]
    assert len(free) >= count
    return free[:count]


def is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind(("", port))
        return True
    return False
