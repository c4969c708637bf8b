"""Checks tokens, cookies, host names and origins. access_check.py applies this to requests.

A request is allowed if its ``Host`` is a name of this server (against DNS rebinding), its ``Origin`` is this server (against
cross-site requests), and it has the token or a login. Used only on the server's loop.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from tftracer.errors import UsageError
from tftracer.web.logins import Logins, derive, is_equal
from tftracer.web.request_head import cookie_value, fields, query_token

#: Host names of a loopback server, and of the local end of a tunnel.
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARDS = frozenset({"", "0.0.0.0", "::"})
#: The scheme of the Authorization header of a job's processes; browsers never send it.
AGENT_SCHEME = "tftracer-agent"


def choose_token(token: str | None) -> str:
    """Return the given token, or that of the environment (TFTRACER_TOKEN), or a new one of 256 random bits.

    Raises TypeError or UsageError for a token that cannot be sent in a header or a URL.
    """
    if token is None:
        token = os.environ.get("TFTRACER_TOKEN", "").strip() or secrets.token_urlsafe(32)
    elif not isinstance(token, str):
        raise TypeError(f"token must be a string, not {type(token).__name__}")
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise UsageError("token must be one or more printable ASCII characters; leave it out to have one made")
    return token


def agent_credential(token: str, nonce: str) -> str:
    """Return the credential of a job's process, which only saves it from waiting in the queue of unauthenticated clients.

    An attacker who records and reuses it gets no more access than an unauthenticated client: the connection's keys come from the
    greeting (job/wire/handshake.py).
    """
    return f"{nonce} {derive(token, f'agent {nonce}')}"


@dataclass(frozen=True)
class Location:
    """Host and port of a Host header or an Origin; the port is None if it is left out."""

    host: str
    port: int | None

    @classmethod
    def parse(cls, netloc: str) -> Location | None:
        """Parse a Host header; None if it is invalid."""
        if not netloc or any(c in netloc for c in "/\\@?# \t,"):
            return None
        try:
            parts = urlsplit("//" + netloc)
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        return cls(host.rstrip("."), port) if host else None

    @classmethod
    def of_list(cls, text: str) -> list[Location]:
        """Parse names and name:port, separated by commas (``TFTRACER_ALLOWED_HOSTS``); invalid entries are left out."""
        entries = [entry.strip().lower() for entry in text.split(",")]
        parsed = [cls.parse(f"[{entry}]" if entry.count(":") > 1 and "[" not in entry else entry) for entry in entries]
        return [location for location in parsed if location is not None]

    @classmethod
    def of_origin(cls, origin: str) -> Location | None:
        """Parse an Origin; None for ``null`` and for schemes other than http and https."""
        scheme, separator, netloc = origin.partition("://")
        return cls.parse(netloc) if separator and scheme in {"http", "https"} else None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class HostNames:
    """The host names and origins of this server."""

    def __init__(self, bound: str, hostname: str, public: str = "", allowed: str = "") -> None:
        """bound: the listening address; public: scheme and host of a reverse proxy; allowed: more names, separated by commas."""
        self._any_port = set(LOOPBACK_NAMES)
        if bound not in WILDCARDS:
            self._any_port.add(bound.lower())
        if not is_loopback(bound):
            self._any_port.add(hostname.lower())
        self._origins = set(Location.of_list(allowed))
        self._any_port |= {location.host for location in self._origins if location.port is None}
        origin = Location.of_origin(public)
        if origin:
            self._any_port.add(origin.host)
            self._origins.add(origin)

    def is_ours(self, host: str, own_address: str) -> bool:
        """Return whether a Host header names this server. own_address: this machine's end of the connection."""
        location = Location.parse(host)
        if location is None:
            return False
        return location.host in self._any_port or location in self._origins or location.host == own_address

    def is_same_origin(self, origin: str, host: str) -> bool:
        """Return whether an Origin is this server.

        The port must be equal, because another server on the same machine may belong to another user. The scheme may differ:
        behind a proxy that ends TLS, the page's is https and this server's is http. Both headers omit the default port.
        """
        theirs = Location.of_origin(origin)
        return theirs is not None and (theirs == Location.parse(host) or theirs in self._origins)


class Access:
    """The token, and the cookies and keys of signed-in browsers."""

    def __init__(
        self, token: str, names: HostNames, port: int, path: str = "", secure: bool = False, logins: Logins | None = None
    ) -> None:
        """port, path (URL prefix), secure (HTTPS): of this server. Port and token make its cookie's name unique on the host."""
        self.token = token
        self.names = names
        self.path = path
        self.secure = secure
        self.logins = logins or Logins(token)
        self.cookie_name = f"tftracer-{port}-{derive(token, 'name')[:8]}"

    def is_token(self, given: str) -> bool:
        return is_equal(given, self.token)

    def is_agent(self, given: str) -> bool:
        """Return whether a credential is a nonce with a value that only the token's owner can compute."""
        nonce, _, _ = given.partition(" ")
        return is_equal(given, agent_credential(self.token, nonce))

    def has_credential(self, head: bytes) -> bool:
        """Return whether a request's raw head has a valid token or cookie. For flood_limit.py; each request is checked again."""
        token = query_token(head)
        if token is not None and self.is_token(token):
            return True
        if any(self.logins.has_cookie(self.cookie_in(header)) for header in fields(head, b"cookie")):
            return True
        scheme, _, given = next(fields(head, b"authorization"), "").partition(" ")
        if scheme.lower() == AGENT_SCHEME:
            return self.is_agent(" ".join(given.split()))
        return scheme.lower() == "bearer" and self.is_token(given.strip())

    def cookie_in(self, header: str) -> str | None:
        return cookie_value(header, self.cookie_name)

    def cookie(self) -> str:
        """Return the value of the Set-Cookie header."""
        secure = "; Secure" if self.secure else ""
        return f"{self.cookie_name}={self.logins.cookie}; Path={self.path or '/'}; HttpOnly; SameSite=Strict{secure}"

    def url(self, address: str) -> TokenUrl:
        return TokenUrl(f"{address}?token={quote(self.token, safe='')}")


class TokenUrl(str):
    """A URL with the token. Its repr, which a notebook shows and saves, has no token."""

    __slots__ = ()

    def __repr__(self) -> str:
        address, token, _ = self.partition("?token=")
        return f"<{address}{token}... (print() shows the token)>"
