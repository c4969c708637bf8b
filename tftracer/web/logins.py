"""What a signed-in browser holds: a cookie, a key that the page keeps, and links that work once. Used on the server's loop.

Browsers send a cookie to every port of a host, so other servers there get to see it. It opens the page's own files and nothing
of the session: each request to the API shows the page's key, too. The page gets it once, in the fragment of the URL that a login
leads to (browsers send no fragment), and keeps it in its local storage, which belongs to one port alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

LINK_S = 60.0
LINKS = 1000
CODE_S = 3600.0


def same(given: str, expected: str) -> bool:
    """Compares in a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def derive(token: str, purpose: str) -> str:
    """What is made of the token for one purpose alone; it does not give the token away."""
    digest = hmac.new(token.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Logins:
    """The same for all browsers, made of the token, until all are signed out."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token
        self._generation = ""
        self._clock = clock
        self._codes: dict[str, float] = {}  # their ends

    def sign_out_all(self) -> None:
        """Cookies and keys given out so far are worth nothing from now on, while this process runs."""
        self._generation = secrets.token_hex(16)
        self._codes.clear()

    def new_code(self) -> str:
        """In place of the token in one URL: it signs one browser in, once, within CODE_S. May be called from any thread."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = self._clock() + CODE_S
        return code

    def use_code(self, given: str) -> bool:
        """Whether this is such a code; it is none from now on."""
        return self._clock() < self._codes.pop(given, float("-inf"))

    @property
    def cookie(self) -> str:
        return derive(self._token, f"cookie{self._generation}")

    @property
    def key(self) -> str:
        return derive(self._token, f"page key{self._generation}")

    def has_cookie(self, given: str | None) -> bool:
        return given is not None and same(given, self.cookie)

    def has_key(self, given: str) -> bool:
        return same(given, self.key)


class OneTimeLinks:
    """Downloads that a browser starts carry no key: each is asked for first, and gets a link that works once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._links: OrderedDict[str, tuple[str, float]] = OrderedDict()  # target and end, by code

    def make(self, target: str) -> str:
        """``target``: path and query of a download. Returns it with a code."""
        code = secrets.token_urlsafe(32)
        self._links[code] = (target, self._clock() + LINK_S)
        while len(self._links) > LINKS:
            self._links.popitem(last=False)
        return f"{target}{'&' if '?' in target else '?'}link={code}"

    def use(self, link: str) -> bool:
        """Whether this is such a link; it is none from now on."""
        target, separator, code = link.rpartition("link=")
        kept, ends_at = self._links.pop(code, ("", 0.0))
        return bool(separator and kept) and target[:-1] == kept and self._clock() < ends_at

    def clear(self) -> None:
        self._links.clear()
