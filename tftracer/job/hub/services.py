"""The services of the hub's handlers, like web.services.Services for the other handlers. One instance per TracingServer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from tftracer.contract.job import Job
from tftracer.contract.live import JobChangesUpdate, JobUpdate
from tftracer.job.hub.hub import Hub
from tftracer.job.hub.step_request import StepRequests
from tftracer.job.hub.traces import JobTraces
from tftracer.job.wire.accepted_addresses import HubAddresses
from tftracer.web.base_handler import Guarded
from tftracer.web.flood_limit import peer_of
from tftracer.web.services import Services

#: Changes are collected for COLLECT_S before they are sent, but in large jobs for one second per PROCESSES_PER_S processes.
COLLECT_S, PROCESSES_PER_S = 0.2, 2000
SILENCE_CHECK_S = 2.0


#: Maximum number of connections that wait to be greeted, in total and from one peer. All processes of a job may connect at once.
MAX_STRANGERS = 256
MAX_OF_ONE_PEER = 128


class Stranger(Protocol):
    def drop(self, reason: str) -> None: ...


class Strangers:
    """Connections that have not proved that they know the token, oldest first. A peer is an IPv4 address or an IPv6 network."""

    def __init__(self) -> None:
        self._peers: dict[Stranger, str] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, stranger: Stranger, address: str, has_place: bool = True) -> None:
        """Add a connection. If there are too many, drop the oldest of this peer, or of the peer with the most connections.

        has_place: whether strangers may use one more of the process's file descriptors.
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


class PageUpdates:
    """Sends changes of the job to all pages (``publish``), if there are any (``has_viewers``)."""

    def __init__(
        self, hub: Hub, publish: Callable[[JobUpdate | JobChangesUpdate], None], has_viewers: Callable[[], bool]
    ) -> None:
        self._hub = hub
        self._publish = publish
        self._has_viewers = has_viewers
        # The loops on which an update and the check are scheduled: the web server may be started again with another loop.
        self._scheduled_on: asyncio.AbstractEventLoop | None = None
        self._checking_on: asyncio.AbstractEventLoop | None = None
        hub.changed = self.schedule

    @property
    def is_scheduled(self) -> bool:
        return self._scheduled_on is not None

    def schedule(self) -> None:
        """Schedule an update. Without viewers nothing happens: a new page gets the whole job."""
        loop = asyncio.get_running_loop()
        if self._scheduled_on is not loop and self._has_viewers():
            self._scheduled_on = loop
            loop.call_later(max(COLLECT_S, len(self._hub.members) / PROCESSES_PER_S), self._send)

    def _send(self) -> None:
        self._scheduled_on = None
        self._publish(self._hub.take_update())

    def check_silence(self) -> None:
        """Check from now on for processes that have stopped sending."""
        loop = asyncio.get_running_loop()
        if self._checking_on is not loop:
            self._checking_on = loop
            loop.call_later(SILENCE_CHECK_S, self._check)

    def _check(self) -> None:
        self._hub.drop_silent()
        asyncio.get_running_loop().call_later(SILENCE_CHECK_S, self._check)


class JobServices:
    """The hub's services. ``publish`` sends a message to all pages; ``has_viewers`` says whether there are any."""

    def __init__(
        self,
        hub: Hub,
        publish: Callable[[JobUpdate | JobChangesUpdate], None] = lambda message: None,
        has_viewers: Callable[[], bool] = lambda: False,
        communication_ops: str = "",
    ) -> None:
        self.hub = hub
        self.traces = JobTraces(hub, communication_ops)
        self.requests = StepRequests(hub)
        self.updates = PageUpdates(hub, publish, has_viewers)
        self.strangers = Strangers()
        self.addresses = HubAddresses()
        self.other_hub: Job | None = None  # the job as far as it is known here, if its hub is another process

    def job_message(self) -> Job | None:
        """Return the job; None if the process has none. May be called from any thread."""
        return self.hub.job_message() if self.hub.members else self.other_hub


class HubHandler(Guarded):
    """The base of the hub's handlers: ``Guarded`` with the job's services."""

    job: JobServices

    def initialize(self, services: Services, job: JobServices) -> None:  # type: ignore[override]
        super().initialize(services)
        self.job = job
