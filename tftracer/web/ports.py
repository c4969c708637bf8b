"""Binds ports and loads certificates. Called from any thread."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
from typing import Any

from tftracer.errors import PortError

PORTS_TRIED = 100


def bind(port: int, ip: str) -> list[socket.socket]:
    """Return sockets that listen at this port or at the next free one. Raises PortError if there is none."""
    end = min(port + PORTS_TRIED, 65536) if port else 1
    problem: Exception | None = None
    for candidate in range(port, end):
        try:
            return listen(candidate, ip)
        except (OSError, ValueError) as error:
            problem = error
            if isinstance(error, (socket.gaierror, ValueError)):  # an unknown address, or an invalid name such as "a..b"
                break
    raise PortError(
        f"No port from {port} to {end - 1} can be bound at {ip or 'any address'}: {problem}. "
        "Choose another server_port (0 takes any free one) or server_ip."
    )


def listen(port: int, ip: str) -> list[socket.socket]:
    """Return a listening socket for each address of ``ip``, all at one port. Raises OSError if it is in use at any of them."""
    sockets: list[socket.socket] = []
    problem: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(
        socket.getaddrinfo(ip or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    ):
        same_port = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(open_listener(family, kind, protocol, (address[0], same_port, *address[2:])))
        except OSError as error:  # for example, this machine has no IPv6
            problem = error
            if error.errno == errno.EADDRINUSE:
                break
    if sockets and (problem is None or problem.errno != errno.EADDRINUSE):
        return sockets
    for opened in sockets:
        opened.close()
    raise problem or OSError(f"{ip} is no address")


def open_listener(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # otherwise a stopped server's port is in use for a minute
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def tls_context(certfile: str | None, keyfile: str | None) -> ssl.SSLContext | None:
    """Load the certificate; return None if none is given. Raises PortError if it is unusable: never falls back to plain HTTP."""
    if not certfile:
        if keyfile:
            raise PortError("A keyfile needs its certfile; give both, or none to serve plain HTTP.")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certfile, keyfile, password="")  # otherwise OpenSSL would ask at the terminal
    except (OSError, ValueError) as problem:
        raise PortError(
            f"The certificate {certfile} (key {keyfile or 'in it'}) cannot be used: {problem}. "
            "Give PEM files; the key without a passphrase."
        ) from problem
    return context


def netloc(host: str, port: int) -> str:
    """Join host and port as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def own_address() -> str:
    """Return this machine's address in its network. Sends no packet and no name query."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"
