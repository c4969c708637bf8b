"""The addresses that a hub accepts as its own, so that it rejects connections through a relay at another address.

In its proof, an agent states the address that it was configured with, and the address and certificate that it found there. On a
direct connection, the found address is the hub's end of the connection. Through a tunnel, a container's published port or a proxy
it is another one; then the hub accepts only addresses from its own configuration. Pure except for reading the certificate.
"""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tftracer.job.wire.handshake import Endpoint
from tftracer.web.credentials import Location, is_loopback


@dataclass
class HubAddresses:
    """The addresses that the hub accepts as its own.

    ``names``: names of this host, accepted with the hub's own port. ``forwarded``: other host:port that lead here.
    """

    names: set[str] = field(default_factory=set)
    forwarded: set[str] = field(default_factory=set)
    proxy: str = ""  # host:port of the reverse proxy that base_url names; TLS ends there
    certificate: str = ""  # digest of the hub's certificate; "" without TLS

    def allow(self, entries: str) -> None:
        """Accept the entries of ``TFTRACER_ALLOWED_HOSTS``: names and name:port, separated by commas."""
        for location in Location.of_list(entries):
            if location.port is None:
                self.names.add(location.host)
            else:
                self.forwarded.add(address(location.host, location.port))

    def know(self, hosts: Iterable[str]) -> None:
        """Accept host names that the job's configuration gives for the hub, except loopback, where other programs may listen."""
        self.names.update(host.lower() for host in hosts if not is_loopback(host))

    def behind(self, base_url: str) -> None:
        """Accept the address of a reverse proxy. ``base_url``: its public URL, or only a path, which changes nothing."""
        parts = urlsplit(base_url)
        location = Location.parse(parts.netloc)
        if location is not None:
            self.proxy = address(location.host, location.port or (443 if parts.scheme == "https" else 80))

    def accepts(self, endpoint: Endpoint, own: str) -> bool:
        """Return whether an agent's endpoint is this hub. ``own``: ip:port of this end of the connection."""
        if self.proxy and endpoint.dialled == self.proxy:
            return True  # the agent has verified the proxy's certificate, which is not the hub's
        host, _, port = endpoint.dialled.rpartition(":")
        named = host.strip("[]") in self.names and port == own.rpartition(":")[2]
        direct = bool(own) and endpoint.peer == own
        accepted = direct or named or endpoint.dialled in self.forwarded
        return accepted and endpoint.certificate == self.certificate


def address(host: str, port: int) -> str:
    """Return ``host:port`` in a canonical form: lower case, IPv6 in brackets and compressed, no zone."""
    plain = host.strip("[]").partition("%")[0].lower()
    try:
        ip = ipaddress.ip_address(plain)
        plain = str(getattr(ip, "ipv4_mapped", None) or ip)
    except ValueError:
        plain = plain.rstrip(".")
    return f"[{plain}]:{port}" if ":" in plain else f"{plain}:{port}"


def digest_of(certificate: bytes | None) -> str:
    """Return the digest of a certificate in DER form; "" for none."""
    return hashlib.sha256(certificate).hexdigest() if certificate else ""


def digest_of_file(certfile: str | None) -> str:
    """Return the digest of the first certificate in a PEM file, the one that a server sends; "" if it cannot be read."""
    try:
        text = Path(certfile).read_text(encoding="latin-1") if certfile else ""
        _, begins, rest = text.partition("-----BEGIN CERTIFICATE-----")
        body, ends, _ = rest.partition("-----END CERTIFICATE-----")
        return digest_of(ssl.PEM_cert_to_DER_cert(begins + body + ends)) if ends else ""
    except (OSError, ValueError):
        return ""


def own_end(stream: Any) -> str:
    """Return ip:port of this end of a Tornado stream; "" if it is closed or not a network socket."""
    return _address_of(stream, "getsockname")


def other_end(stream: Any) -> str:
    """Return ip:port of the other end."""
    return _address_of(stream, "getpeername")


def _address_of(stream: Any, which: str) -> str:
    try:
        host, port = getattr(stream.socket, which)()[:2]
        return address(host, port)
    except (AttributeError, OSError, ValueError):
        return ""
