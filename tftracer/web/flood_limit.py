"""Admission control: limits how much of the training's processor time a flood of requests without the token can take.

An answer to a stranger (a client without a credential) takes about 1 ms of Python in the training's process; 64 such clients
doubled its median step. So connections are accepted at a limited rate, and the head of the first request is read here, before it
is parsed. A request with a credential goes to the HTTP server at once. The others wait in a queue, round robin by peer, and are
served at a limited rate. A connection that sends no head is closed after ``HEAD_S``; if too many wait, the oldest is closed. With
TLS nothing can be read before the handshake, so all connections wait in the queue, and connections that turn out to have a
credential are not counted.

Runs on the server's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import socket
import ssl
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tornado.ioloop import IOLoop
from tornado.iostream import IOStream, SSLIOStream
from tornado.netutil import ssl_wrap_socket

from tftracer.web.answer_rate import TokenBucket
from tftracer.web.request_head import has_end

SHARE = 4  # strangers may hold a quarter of the free file descriptors
MEASURE_INTERVAL_S = 1.0  # counting a thousand open files takes 0.5 ms
#: The folder that lists the open files.
FILES = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")


def free_descriptors() -> int | None:
    """Return how many files this process can still open; None if not known."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        return None if limit == resource.RLIM_INFINITY else limit - sum(1 for _ in FILES.iterdir())
    except OSError:
        return None


class FileRoom:
    """Limits the file descriptors of strangers to a quarter of those that are free, measured at most once per second.

    If a process may open 256 files (macOS's default), 256 connections of strangers would make the script's ``open()`` fail.
    """

    def __init__(self, left: Callable[[], int | None] = free_descriptors, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = left
        self._clock = clock
        self._measured_at = float("-inf")
        self._places: int | None = None

    def has_place(self, held: int) -> bool:
        """Return whether there is room for one more connection of a stranger.

        ``held``: the number of strangers' connections. The first one always has room: it may be a user's.
        """
        if self._clock() >= self._measured_at + MEASURE_INTERVAL_S:
            self._measured_at = self._clock()
            left = self._left()
            self._places = None if left is None else max(1, (left + held) // SHARE)
        return self._places is None or held < self._places


#: Accepting a connection, reading its head and keeping it takes about 0.3 ms on a busy machine.
ACCEPTS_PER_S, ACCEPT_BURST = 150, 250
#: Answered requests without a credential. This also limits guessing of tokens.
STRANGERS_PER_S, STRANGER_BURST = 20, 100
#: A larger head counts as several requests: parsing 64 kB of short lines takes 35 ms.
BYTES_PER_REQUEST = 2000
#: Connections that have sent no request yet or that wait in the queue: in total, and of one peer.
#: 200 pages may connect at once through one proxy: all connections may be open before the first head has arrived.
MAX_ARRIVALS, MAX_ARRIVALS_OF_PEER = 320, 256
#: Requests without a credential that are answered at the same time.
MAX_STRANGERS = 64
HEAD_S = 10.0  # a client may take this time for the head of its first request
STRANGER_S = 10.0  # the rest of a request without a credential and its answer may take this time
MAX_HEAD_BYTES = 1 << 16
MAX_HEAD_PIECES = 100  # maximum pieces of a head: each costs an iteration of the loop, whatever its size
ACCEPTS_AT_ONCE = 16
NO_FILES_S = 1.0  # if accepting fails, for example for lack of file descriptors, the next attempt comes after this time
Serve = Callable[[IOStream, tuple[Any, ...]], None]


def peer_of(address: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 address: a machine may use any of its 2^64 addresses."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.IPv6Address(int(parsed) >> 64 << 64))


class ReadAheadStream(IOStream):
    """A stream that begins with bytes that were already read from its socket."""

    def __init__(self, connection: socket.socket, ahead: bytes) -> None:
        super().__init__(connection)
        self._ahead = memoryview(ahead)

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        if not self._ahead:
            return super().read_from_fd(buf)
        size = min(len(buf), len(self._ahead))
        buf[:size] = self._ahead[:size]
        self._ahead = self._ahead[size:]
        return size


class Arrival:
    """A connection whose first request has not been served yet."""

    def __init__(self, connection: socket.socket, address: tuple[Any, ...]) -> None:
        self.socket = connection
        self.address = address
        self.peer = peer_of(str(address[0])) if address else ""
        self.head = b""
        self.pieces = 0
        self.deadline: asyncio.TimerHandle | None = None
        self.is_watched = False  # whether the loop watches it for data

    def is_gone(self) -> bool:
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True


class Admission:
    """Admits connections. ``has_credential`` checks the head of a request. ``context``: for TLS; None: plain HTTP."""

    def __init__(self, has_credential: Callable[[bytes], bool], context: ssl.SSLContext | None = None) -> None:
        self._has_credential = has_credential
        self._context = context
        self._io = IOLoop.current()
        self._loop = asyncio.get_running_loop()
        self._serve: Serve = lambda stream, address: stream.close()
        self._listeners: Sequence[socket.socket] = ()
        self._listening = False
        self._accepts = TokenBucket(ACCEPTS_PER_S, ACCEPT_BURST)
        self._answers = TokenBucket(STRANGERS_PER_S, STRANGER_BURST)
        self._arrivals: dict[str, OrderedDict[Arrival, None]] = {}  # by peer, oldest first
        self._waiting: OrderedDict[str, deque[Arrival]] = OrderedDict()  # by peer, round robin
        self._strangers: OrderedDict[IOStream, asyncio.TimerHandle] = OrderedDict()  # being answered
        self._room = FileRoom()
        self._other_strangers: Callable[[], int] = lambda: 0
        self._turn_timer: asyncio.TimerHandle | None = None
        self._resume_timer: asyncio.TimerHandle | None = None

    def start(self, listeners: Sequence[socket.socket], serve: Serve, other_strangers: Callable[[], int]) -> None:
        """Start to accept connections.

        ``serve`` gets admitted connections. ``other_strangers``: counts strangers' connections that have become WebSockets.
        """
        self._serve = serve
        self._other_strangers = other_strangers
        self._listeners = listeners
        self._listen()

    def has_place(self) -> bool:
        """Return whether strangers may use one more file descriptor of the process."""
        return self._room.has_place(sum(map(len, self._arrivals.values())) + len(self._strangers) + self._other_strangers())

    def stop(self) -> None:
        """Stop accepting, and close the connections that were not admitted."""
        self._pause()
        self._listeners = ()
        for arrivals in list(self._arrivals.values()):
            for arrival in list(arrivals):
                self._drop(arrival)

    def mark_authenticated(self, stream: IOStream) -> None:
        """Stop counting a connection as a stranger's, because a request on it had a valid credential."""
        if self.forget_stream(stream):
            self._refund_accept()
            self._answers.refund()
            self._take_turns()

    def forget_stream(self, stream: IOStream) -> bool:
        """Forget a connection that is closed, or has become a WebSocket. Return whether it counted as a stranger's."""
        timer = self._strangers.pop(stream, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _close(self, stream: IOStream) -> None:
        self.forget_stream(stream)
        stream.close()

    # -------------------------------------------------------------------------------------------------------- accepting

    def _listen(self) -> None:
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        if not self._listening:
            self._listening = True
            for listener in self._listeners:
                self._io.add_handler(listener, self._accept, IOLoop.READ)

    def _refund_accept(self) -> None:
        self._accepts.refund()
        self._listen()

    def _pause(self, seconds: float | None = None) -> None:
        """Leave new connections in the kernel's queue for some seconds; None: until ``_listen`` is called."""
        if self._listening:
            self._listening = False
            for listener in self._listeners:
                self._io.remove_handler(listener)
        if seconds is not None:
            self._resume_timer = self._loop.call_later(seconds, self._listen)

    def _accept(self, listener: socket.socket, events: int) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            wait_s = self._accepts.wait_s()
            if wait_s:
                self._pause(wait_s)
                return
            try:
                connection, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError:
                self._pause(NO_FILES_S)
                return
            self._accepts.spend()
            self._add_arrival(Arrival(connection, address))

    def _add_arrival(self, arrival: Arrival) -> None:
        self._make_room(arrival.peer)
        arrival.socket.setblocking(False)
        self._arrivals.setdefault(arrival.peer, OrderedDict())[arrival] = None
        if self._context is not None:
            self._wait_in_turn(arrival)
            return
        arrival.deadline = self._loop.call_later(HEAD_S, self._drop, arrival)
        self._read(arrival)

    def _make_room(self, peer: str) -> None:
        """Close the oldest connection of this peer if it has too many, or of the peer with the most if there are too many in all.

        If files run short, strangers that are being answered are closed, too.
        """
        while not self.has_place() and (self._arrivals or self._strangers):
            if self._arrivals:
                self._drop_oldest(max(self._arrivals.values(), key=len))
            else:
                self._close(next(iter(self._strangers)))
        from_peer = self._arrivals.get(peer)
        if from_peer is not None and len(from_peer) >= MAX_ARRIVALS_OF_PEER:
            self._drop_oldest(from_peer)
        elif sum(map(len, self._arrivals.values())) >= MAX_ARRIVALS:
            self._drop_oldest(max(self._arrivals.values(), key=len))

    def _drop_oldest(self, arrivals: OrderedDict[Arrival, None]) -> None:
        """Drop the oldest connection, or admit it if it has sent a credential that was not read yet."""
        oldest = next(iter(arrivals))
        if oldest.is_watched:
            self._read(oldest)
        if oldest in arrivals:
            self._drop(oldest)

    def _drop(self, arrival: Arrival) -> None:
        self._forget(arrival)
        arrival.socket.close()

    def _forget(self, arrival: Arrival) -> None:
        """Remove a connection from the arrivals and from the queue."""
        self._unwatch(arrival)
        if arrival.deadline is not None:
            arrival.deadline.cancel()
        arrivals = self._arrivals[arrival.peer]
        del arrivals[arrival]
        if not arrivals:
            del self._arrivals[arrival.peer]
        queue = self._waiting.get(arrival.peer)
        if queue is not None:
            with contextlib.suppress(ValueError):
                queue.remove(arrival)
            if not queue:
                del self._waiting[arrival.peer]

    # ---------------------------------------------------------------------------------------------------------- reading

    def _read(self, arrival: Arrival) -> None:
        try:
            data = arrival.socket.recv(MAX_HEAD_BYTES)
        except (BlockingIOError, InterruptedError):
            self._watch(arrival)
            return
        except OSError:
            data = b""
        unread = max(0, len(arrival.head) - 2)  # the last two bytes may be the beginning of the head's end
        arrival.head += data
        arrival.pieces += 1
        if not data:
            self._drop(arrival)
        elif has_end(arrival.head, unread):
            self._unwatch(arrival)
            self._admit_or_queue(arrival)
        elif len(arrival.head) >= MAX_HEAD_BYTES or arrival.pieces >= MAX_HEAD_PIECES:
            self._drop(arrival)
        else:
            self._watch(arrival)

    def _watch(self, arrival: Arrival) -> None:
        if not arrival.is_watched:
            arrival.is_watched = True
            self._io.add_handler(arrival.socket, lambda connection, events: self._read(arrival), IOLoop.READ)

    def _unwatch(self, arrival: Arrival) -> None:
        if arrival.is_watched:
            arrival.is_watched = False
            self._io.remove_handler(arrival.socket)

    def _admit_or_queue(self, arrival: Arrival) -> None:
        if self._has_credential(arrival.head):
            self._refund_accept()
            self._admit(arrival)
        else:
            self._wait_in_turn(arrival)

    # ---------------------------------------------------------------------------------------------------------- waiting

    def _wait_in_turn(self, arrival: Arrival) -> None:
        if arrival.deadline is not None:
            arrival.deadline.cancel()
        self._waiting.setdefault(arrival.peer, deque()).append(arrival)
        self._take_turns()

    def _take_turns(self) -> None:
        """Admit as many connections as the rate allows, one of each peer in turn."""
        if self._turn_timer is not None:
            self._turn_timer.cancel()
            self._turn_timer = None
        while self._waiting:
            wait_s = self._answers.wait_s()
            if wait_s:
                self._turn_timer = self._loop.call_later(wait_s, self._take_turns)
                return
            peer, queue = self._waiting.popitem(last=False)
            self._waiting[peer] = queue  # the peer's next connection comes after those of all other peers
            arrival = queue[0]
            if arrival.is_gone():
                self._drop(arrival)
            else:
                self._answers.spend(max(1, len(arrival.head) / BYTES_PER_REQUEST))
                self._admit(arrival, stranger=True)

    # --------------------------------------------------------------------------------------------------------- admitting

    def _admit(self, arrival: Arrival, stranger: bool = False) -> None:
        self._forget(arrival)
        try:
            stream = self._stream(arrival)
        except (OSError, ValueError):  # the client has disconnected
            arrival.socket.close()
            return
        if stranger:
            self._add_stranger(stream)
        self._serve(stream, arrival.address)

    def _add_stranger(self, stream: IOStream) -> None:
        if len(self._strangers) >= MAX_STRANGERS:
            self._close(next(iter(self._strangers)))
        self._strangers[stream] = self._loop.call_later(STRANGER_S, self._close, stream)

    def _stream(self, arrival: Arrival) -> IOStream:
        if self._context is None:
            return ReadAheadStream(arrival.socket, arrival.head)
        return SSLIOStream(ssl_wrap_socket(arrival.socket, self._context, server_side=True, do_handshake_on_connect=False))
