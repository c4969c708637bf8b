"""Opens a live session by its URL: copies it to a temporary file, which is opened like any other file."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from tftracer.errors import StorageError

_CHUNK = 1 << 20
#: The path of a view within the page (frontend/src/router.ts). It is removed, so that a view's URL also opens the session.
_VIEW = re.compile(r"/(runs/\d+(/ops)?|traces/\d+|compare|job(/traces/\d+)?)$")
#: Maximum time for which the server may send nothing. It is long because a hub fetches its processes' traces before it answers.
_SILENCE_S = 120.0


def is_url(name: str) -> bool:
    return name.startswith(("http://", "https://"))


@contextmanager
def downloaded(url: str, token: str | None, certificate: str | None) -> Iterator[tuple[str, str]]:
    """Yield (path of a temporary file with the session, the URL without its token). Raises ``StorageError``.

    The file is deleted after the block; open handles stay readable.
    """
    page = _Page.of(url, token, certificate)
    with tempfile.NamedTemporaryFile(prefix="tftracer-", suffix=".tftrace") as file:
        page.copy("api/job/file" if page.is_hub() else "api/session/file", file)
        file.flush()
        yield file.name, page.address


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error: to follow it would send the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class _Page:
    address: str  # the URL without the token; ends in a slash
    token: str
    opener: urllib.request.OpenerDirector

    @classmethod
    def of(cls, url: str, token: str | None, certificate: str | None) -> _Page:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise StorageError(f"{url}: is no URL ({error}).") from error
        secret = token or parse_qs(parts.query).get("token", [""])[0] or os.environ.get("TFTRACER_TOKEN", "").strip()
        if not secret:
            raise StorageError(f"{parts.netloc}: a live session needs its token: open({url!r}, token=...), or TFTRACER_TOKEN.")
        path = _VIEW.sub("", parts.path.rstrip("/")) + "/"
        address = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        try:
            context = ssl.create_default_context(cafile=certificate)
        except OSError as error:
            raise StorageError(f"{certificate}: no certificate can be read from it ({error}).") from error
        return cls(address, secret, urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect()))

    def is_hub(self) -> bool:
        """Return whether the page is the hub of a job of several processes."""
        try:
            with self._ask("api/job") as answer:
                job = json.loads(answer.read(1 << 28))
        except _NotFoundError:
            return False
        return isinstance(job, dict) and bool(job.get("is_hub"))

    def copy(self, path: str, file: IO[bytes]) -> None:
        with self._ask(path) as answer:
            try:
                while chunk := answer.read(_CHUNK):
                    file.write(chunk)
            except (OSError, http.client.HTTPException) as error:
                raise StorageError(
                    f"{self.address}: the connection broke before the whole session was sent ({error}). Open it again."
                ) from error

    @contextmanager
    def _ask(self, path: str) -> Iterator[Any]:
        request = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            with self.opener.open(request, timeout=_SILENCE_S) as answer:
                yield answer
        except StorageError:
            raise
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error) from error
        except urllib.error.URLError as error:
            raise StorageError(self._unreachable(error.reason)) from error
        except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: in host, token or JSON
            raise StorageError(self._unreachable(error)) from error

    def _refused(self, error: urllib.error.HTTPError) -> StorageError:
        if error.code == 404:
            return _NotFoundError(f"{self.address}: there is no tftracer page at this address.")
        if error.code == 401:
            return StorageError(f"{self.address}: the token is wrong. The script that trains has logged the right one.")
        try:
            why = json.loads(error.read(1 << 16))["error"]["message"]
        except (ValueError, KeyError, TypeError, OSError):
            why = f"HTTP status {error.code}. Is it a tftracer page?"
        return StorageError(f"{self.address}: {why}")

    def _unreachable(self, reason: Any) -> str:
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"{self.address}: its certificate is not known here. Give the server's certfile: open(url, certificate=FILE)."
        return f"{self.address}: cannot be reached ({reason}). Does the training still run, and its page?"


class _NotFoundError(StorageError):
    """The page has no such path."""
