"""Connections that have not proved yet that they belong to the job. Their number is limited: the oldest makes way for a new one.

Each also has a deadline (``protocol.GREETING_S``). On the server's loop.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from tftracer.web.admission import peer_of

#: Enough for the processes of a large job to connect at the same moment.
MAX_STRANGERS = 256
MAX_OF_ONE_PEER = 128


class Stranger(Protocol):
    def drop(self, reason: str) -> None: ...


class Strangers:
    """Oldest first. A peer is an IPv4 address or a network of IPv6."""

    def __init__(self) -> None:
        self._peers: dict[Stranger, str] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, stranger: Stranger, address: str, has_place: bool = True) -> None:
        """If there are too many, the oldest connection of this peer, or of the peer with the most connections, is dropped.

        has_place: strangers may hold one more of the process's file descriptors.
        """
        peer = peer_of(address)
        self._peers[stranger] = peer
        count = Counter(self._peers.values())
        if count[peer] > MAX_OF_ONE_PEER:
            self._drop_oldest(peer)
        elif len(self._peers) > (MAX_STRANGERS if has_place else 1):
            self._drop_oldest(count.most_common(1)[0][0])

    def discard(self, stranger: Stranger) -> None:
        self._peers.pop(stranger, None)

    def _drop_oldest(self, peer: str) -> None:
        oldest = next(stranger for stranger, its_peer in self._peers.items() if its_peer == peer)
        del self._peers[oldest]
        oldest.drop("too many connections wait to be greeted")
