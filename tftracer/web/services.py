"""The services that a server's handlers use. app.py creates them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tornado.websocket import WebSocketHandler

from tftracer.session.answers import SessionSource
from tftracer.web.answer_cache import AnswerCache
from tftracer.web.answer_rate import RateLimit
from tftracer.web.credentials import Access
from tftracer.web.flood_limit import Admission
from tftracer.web.live_feed import LiveFeed
from tftracer.web.logins import OneTimeLinks
from tftracer.web.static_files import Static
from tftracer.web.worker_threads import WorkerThreads


@dataclass
class Services:
    source: SessionSource
    access: Access
    links: OneTimeLinks
    workers: WorkerThreads  # for short work that takes a lock or reads the disk
    answers: AnswerCache
    live: LiveFeed
    sockets: set[WebSocketHandler]  # of browsers, while they are open
    rate_limit: RateLimit
    admission: Admission
    static: Static
    path_prefix: str  # of URLs behind a reverse proxy: "" or "/prefix"
    stop: Callable[[], None]  # stops this server; from any thread
