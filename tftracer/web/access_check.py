"""Checks whether a request is allowed: its Host header, its Origin, and its token or login.

The checks run before the body is read, so that bodies of unauthenticated clients are never stored. credentials.py and logins.py
define the valid tokens, cookies and host names; flood_limit.py limits connections under load. Runs on the server's loop.
"""

from __future__ import annotations

from typing import NoReturn

from tornado import web
from tornado.iostream import IOStream

from tftracer.web.refusal import Refusal
from tftracer.web.services import Services

#: The header with the page's key; a WebSocket, which cannot set headers, sends the key as a subprotocol.
KEY_HEADER = "Tftracer-Key"
SUBPROTOCOL, KEY_SUBPROTOCOL = "tftracer", "key."
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def without_prefix(uri: str, prefix: str) -> str:
    """Remove the prefix of a reverse proxy from a path; some proxies strip it, some do not."""
    inner = uri[len(prefix) :]
    return inner if prefix and uri.startswith(prefix) and inner[:1] in ("", "/", "?") else uri


class AccessCheck(web.RequestHandler):
    """The checks of one request. Subclasses set class attributes that define what they allow."""

    services: Services
    needs_key = True  # in addition to the cookie
    accepts_links = False  # one-time links in place of the key
    is_authenticated = False

    def check_access(self) -> None:
        self.check_host()
        self.check_origin_header()
        self.check_token()

    def check_host(self) -> None:
        if not self.services.access.names.is_ours(self.request.host, self.own_address()):
            raise Refusal(
                403,
                "foreign_host",
                f"This server does not answer to the name {self.request.host[:100]!r}. "
                "Add the name to TFTRACER_ALLOWED_HOSTS if it is yours.",
            )

    def connection_stream(self) -> IOStream | None:
        """Return the stream of the request's connection; None if the connection is closed."""
        return getattr(self.request.connection, "stream", None)

    def own_address(self) -> str:
        try:
            address = str(self.connection_stream().socket.getsockname()[0])  # type: ignore[union-attr]
        except (AttributeError, OSError, IndexError):
            return ""
        return address.removeprefix("::ffff:")

    def check_origin_header(self) -> None:
        headers = self.request.headers
        origin = headers.get("Origin")
        site = headers.get("Sec-Fetch-Site", "none")
        foreign = site in {"cross-site", "same-site"} and headers.get("Sec-Fetch-Mode") != "navigate"
        if origin is not None:
            foreign = not self.services.access.names.is_same_origin(origin, self.request.host)
        if foreign:
            raise Refusal(403, "foreign_origin", "This request comes from a page that is not this server's.")

    def check_token(self) -> None:
        """Check the token itself (scripts), or a login: cookie and key (the page)."""
        access = self.services.access
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        has_bearer = scheme.lower() == "bearer"
        if has_bearer and access.is_token(token.strip()):
            self.mark_authenticated()
        elif access.logins.has_cookie(self.cookie()):
            self.check_cookie_write()
            self.check_key()
            self.mark_authenticated()
        elif has_bearer:
            self.refuse_stranger("This is not the token of this server; the script's log shows the right one.")
        else:
            self.refuse_stranger("This needs the token: open the URL in the script's log, or send the token as a Bearer.")

    def check_key(self) -> None:
        """Check the page's key. The cookie alone is not enough: other servers on this host receive it, too."""
        if not self.needs_key or self.services.access.logins.has_key(self.page_key()):
            return
        if not (self.accepts_links and self.services.links.use(self.inner_uri())):
            why = "This browser's login is not complete: open the URL that the script's log shows, or enter the token."
            self.refuse_stranger(why, "no_key")

    def page_key(self) -> str:
        headers = self.request.headers
        for protocol in headers.get("Sec-WebSocket-Protocol", "").split(","):
            if protocol.strip().startswith(KEY_SUBPROTOCOL):
                return protocol.strip()[len(KEY_SUBPROTOCOL) :]
        return headers.get(KEY_HEADER, "")

    def inner_uri(self) -> str:
        """Return path and query without the reverse proxy's prefix."""
        return without_prefix(self.request.uri or "", self.services.path_prefix)

    def mark_authenticated(self) -> None:
        """Record a valid credential: the connection may stay open and does not count as a stranger's."""
        self.is_authenticated = True
        if stream := self.connection_stream():
            self.services.admission.mark_authenticated(stream)

    def check_cookie_write(self) -> None:
        """Refuse a write that has a cookie but no Origin: it is not known which page sent it. Browsers always send an Origin."""
        if self.request.method in WRITES and "Origin" not in self.request.headers:
            raise Refusal(403, "no_origin", "A write with a cookie needs an Origin header; scripts send the token instead.")

    def cookie(self) -> str | None:
        return self.services.access.cookie_in(self.request.headers.get("Cookie", ""))

    def refuse_stranger(self, why: str, code: str = "no_token") -> NoReturn:
        raise Refusal(401, code, why, {"WWW-Authenticate": 'Bearer realm="tftracer"'})
