"""Signing in, staying signed in, and signing out, in a real browser; what another server of the host can do with the cookie."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from e2e.gallery import DATA, write_session
from e2e.rig import bearer, start_viewer
from playwright.sync_api import BrowserContext, Page, expect


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A viewer for one test, which may sign its browsers out."""
    trace = (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()
    viewer, url = start_viewer(tmp_path, write_session(tmp_path, "own.tftrace", {20: trace, 40: trace}))
    yield url
    viewer.kill()


@pytest.fixture
def neighbour() -> Iterator[tuple[str, list[str]]]:
    """Another server of this host: its URL, and the cookies that it gets to see."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", seen
    server.shutdown()


def shows_the_session(page: Page) -> None:
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("link", name="Open the trace of step 20")).to_be_visible()


def base_of(url: str) -> str:
    return url.partition("?")[0]


def test_a_reload_and_a_new_tab_stay_signed_in(page: Page, context: BrowserContext, url: str) -> None:
    page.goto(url)
    shows_the_session(page)
    assert page.url == base_of(url)  # neither token nor key
    page.reload()
    shows_the_session(page)
    bookmark = context.new_page()
    bookmark.goto(base_of(url) + "runs/1")
    expect(bookmark.get_by_role("heading", name="Step times")).to_be_visible()


def test_a_browser_that_lost_its_key_is_asked_for_the_token(page: Page, url: str) -> None:
    page.goto(url)
    shows_the_session(page)
    page.evaluate("localStorage.clear()")
    page.goto(base_of(url) + "runs/1")
    page.get_by_label("URL or token").fill(f"  {url} ")  # as it is copied from a terminal
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Step times")).to_be_visible()
    assert page.url == base_of(url) + "runs/1"


def test_another_server_of_this_host_gets_the_cookie_and_can_do_nothing_with_it(
    page: Page, url: str, neighbour: tuple[str, list[str]]
) -> None:
    page.goto(url)
    shows_the_session(page)
    page.goto(neighbour[0])
    cookie = next(cookies for cookies in neighbour[1] if "tftracer-" in cookies)
    address = base_of(url)
    connection = HTTPConnection(address.split("/")[2], timeout=60)
    for path in ("/api/session", "/api/session/file", "/api/traces/1/file", "/api/live"):
        connection.request("GET", path, headers={"Cookie": cookie, "Origin": address.rstrip("/")})
        answer = connection.getresponse()
        assert (answer.status, b"no_key" in answer.read()) == (401, True), path
    page.goto(address)
    shows_the_session(page)


def test_signing_out_ends_every_browser_s_login(page: Page, context: BrowserContext, url: str) -> None:
    page.goto(url)
    other = context.new_page()
    other.goto(base_of(url))
    shows_the_session(other)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out all browsers").click()
    for each in (page, other):
        expect(each.get_by_label("Token")).to_be_visible()
    other.reload()
    expect(other.get_by_label("Token")).to_be_visible()
    other.get_by_label("Token").fill(bearer(url)["Authorization"].partition(" ")[2])
    other.get_by_role("button", name="Log in").click()
    shows_the_session(other)
