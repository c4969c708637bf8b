"""The credentials of a signed-in browser: a cookie, a key in the page, and one-time links. Used on the server's loop.

Browsers send a cookie to every port of a host, so other servers there can read it. The cookie only gives access to the page's
files: each API request must also have the page's key. The page gets the key once, in the fragment of the URL after the login
(browsers do not send fragments), and keeps it in its local storage, which is separate for each port.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

LINK_S = 60.0  # a link is valid for this time
MAX_LINKS = 1000
CODE_S = 3600.0  # a code in a URL is valid for this time


def is_equal(given: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def derive(token: str, purpose: str) -> str:
    """Derive a secret for one purpose from the token; the token cannot be computed from it."""
    digest = hmac.new(token.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Logins:
    """Cookie and key, which are derived from the token and the same for all browsers; signing all out replaces them."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token
        self._generation = ""
        self._clock = clock
        self._codes: dict[str, float] = {}  # code -> when it expires

    def sign_out_all(self) -> None:
        """Invalidate all cookies and keys that were issued so far."""
        self._generation = secrets.token_hex(16)
        self._codes.clear()

    def new_code(self) -> str:
        """Return a code that replaces the token in a URL: it signs in one browser, once, within CODE_S. From any thread."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = self._clock() + CODE_S
        return code

    def use_code(self, given: str) -> bool:
        """Return whether a code is valid, and invalidate it."""
        return self._clock() < self._codes.pop(given, float("-inf"))

    @property
    def cookie(self) -> str:
        return derive(self._token, f"cookie{self._generation}")

    @property
    def key(self) -> str:
        return derive(self._token, f"page key{self._generation}")

    def has_cookie(self, given: str | None) -> bool:
        return given is not None and is_equal(given, self.cookie)

    def has_key(self, given: str) -> bool:
        return is_equal(given, self.key)


class OneTimeLinks:
    """One-time links for downloads: a browser cannot add the key to a download, so the page requests a link first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._links: OrderedDict[str, tuple[str, float]] = OrderedDict()  # code -> (target, when it expires)

    def make(self, target: str) -> str:
        """Add a code to ``target``, the path and query of a download."""
        code = secrets.token_urlsafe(32)
        self._links[code] = (target, self._clock() + LINK_S)
        while len(self._links) > MAX_LINKS:
            self._links.popitem(last=False)
        return f"{target}{'&' if '?' in target else '?'}link={code}"

    def use(self, link: str) -> bool:
        """Return whether a link is valid, and invalidate it."""
        target, separator, code = link.rpartition("link=")
        expected, ends_at = self._links.pop(code, ("", 0.0))
        return bool(separator and expected) and target[:-1] == expected and self._clock() < ends_at

    def clear(self) -> None:
        self._links.clear()
