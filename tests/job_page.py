"""The page of a job as a script asks it, by HTTP: the job, a step traced on all, its answers."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

#: Why a process that could have traced did not, on a machine with too much to do.
LATE = ("had begun before the request came", "did not answer in time")
PATIENCE_S = 240.0


def wait_for(look: Callable[[], Any], what: object = "") -> Any:
    """What ``look`` returns, as soon as it is true; ``what``, or what it returns, is said if it never is."""
    end = time.monotonic() + PATIENCE_S
    while not (value := look()):
        assert time.monotonic() < end, f"waited in vain for {what() if callable(what) else what or look}"
        time.sleep(0.02)  # what is waited for happens in other processes, which tell nobody
    return value


class JobPage:
    """``url``: with its token, as the script logs it."""

    def __init__(self, url: str) -> None:
        self._url, _, self._token = url.partition("?token=")

    def address(self) -> tuple[str, str]:
        """(URL, token) now."""
        return self._url, self._token

    def ask(self, path: str, body: Any = None, method: str = "", accept: str = "application/json") -> bytes:
        url, token = self.address()
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url + path.lstrip("/"), data, headers, method=method or None)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return bytes(answer.read())

    def get(self, path: str) -> Any:
        return json.loads(self.ask(path))

    def packed(self, path: str) -> Any:
        return msgpack.unpackb(self.ask(path, accept="application/msgpack"))

    def refusal(self, path: str, body: Any = None, method: str = "") -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            self.ask(path, body, method)
        with refused.value as error:
            return error.code, json.loads(error.read())["error"]["message"]

    def job(self) -> Any:
        return self.get("api/job")

    def trace(self, **request: Any) -> Any:
        """A trace on all, as soon as nobody is waited for any more. On a busy machine a request may be late: then another."""

        def look() -> Any:
            trace = self.settled(json.loads(self.ask("api/job/trace", request))["id"])
            late = [why for why in trace["missing"].values() if any(words in why for words in LATE)]
            return None if late else trace

        return wait_for(look, "a trace on all that nobody was late for")

    def settled(self, trace_id: int) -> Any:
        def look() -> Any:
            trace = self.get(f"api/job/traces/{trace_id}")
            return trace if trace["state"] != "pending" else None

        return wait_for(look, "the trace on all")
