"""A stolen cookie opens nothing of the session; a signed-in page gets everything; all browsers can be signed out."""

from __future__ import annotations

import asyncio
import re

import pytest
from fake_source import FakeSource
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect
from web_client import Client, serving

from tftracer.web.logins import LINK_S, MAX_LINKS, Logins, OneTimeLinks
from tftracer.web.routes import API

pytestmark = pytest.mark.usefixtures("no_stray_logs")

FILE = "/api/traces/1/file?format=chrome"


def stolen(client: Client) -> dict[str, str | None]:
    """All that another server of the same host gets to see of a signed-in browser."""
    return {"Authorization": None, "Cookie": client.cookie(), "Origin": f"http://{client.host}"}


def written(client: Client) -> dict[str, str | None]:
    return {**client.signed_in(), "Origin": f"http://{client.host}"}


def test_a_stolen_cookie_opens_nothing_of_the_session(client: Client) -> None:
    for pattern, _, _ in API:
        path = re.sub(r"\(.*?\)", "1", pattern)
        for method in ("GET", "POST", "PUT", "DELETE"):
            answer = client(method, path, **stolen(client))
            assert (answer.status, answer.code) == (401, "no_key"), (method, path)
    assert client.get("/", **stolen(client)).status == 200  # the page's own files, which are no secret


def test_a_stolen_key_opens_nothing_either(client: Client) -> None:
    answer = client.get("/api/session", **{**client.signed_in(), "Cookie": None})
    assert (answer.status, answer.code) == (401, "no_token")


@pytest.mark.parametrize("key", ["", "x", "\xe4"])
def test_a_wrong_key_opens_nothing(client: Client, key: str) -> None:
    assert client.get("/api/session", **{**client.signed_in(), "Tftracer_Key": key}).code == "no_key"
    assert client.get("/api/session", **{**client.signed_in(), "Tftracer_Key": client.server.token}).code == "no_key"


def test_the_token_is_enough_beside_any_cookie(client: Client) -> None:
    assert client.get("/api/session", Cookie=client.cookie()).status == 200
    assert client.get("/api/session", **{**client.signed_in(), "Authorization": "Bearer wrong"}).status == 200


# ------------------------------------------------------------------------------------------------------------ the WebSocket


def look_on(client: Client, protocols: list[str]) -> str:
    """Its first message."""

    async def look() -> str:
        headers = {"Cookie": client.cookie(), "Origin": f"http://{client.host}"}
        url = f"ws://{client.host}/api/live"
        connection = await websocket_connect(HTTPRequest(url, headers=headers), subprotocols=protocols)
        assert connection.selected_subprotocol == "tftracer"
        message = await asyncio.wait_for(connection.read_message(), 60)
        connection.close()
        return str(message)

    return asyncio.run(look())


def test_the_key_is_one_of_the_websockets_subprotocols(client: Client) -> None:
    assert '"snapshot"' in look_on(client, ["tftracer", f"key.{client.server.access().logins.key}"])
    for wrong in (["tftracer"], ["tftracer", "key.x"]):
        with pytest.raises(HTTPClientError) as refused:
            look_on(client, wrong)
        assert refused.value.code == 401


# ---------------------------------------------------------------------------------------------------------------- downloads


def link(client: Client, path: str = FILE) -> str:
    return str(client("POST", "/api/links", {"path": path}, **written(client)).json["path"])


def test_a_download_has_a_link_that_works_once(client: Client) -> None:
    path = link(client)
    assert path.startswith(FILE + "&link=")
    assert client.get(path, **stolen(client)).status == 200
    assert client.get(path, **stolen(client)).code == "no_key"


def test_a_link_is_for_one_download_and_goes_with_the_cookie(client: Client) -> None:
    assert client.get(link(client).replace("chrome", "html"), **stolen(client)).code == "no_key"
    assert client.get(link(client), Authorization=None).code == "no_token"
    assert client.get(link(client, "/api/session"), **stolen(client)).code == "no_key"  # no download


def test_links_behind_a_prefix(source: FakeSource) -> None:
    """Whether the proxy strips it or not."""
    with serving(source, base_url="/tracer") as client:
        path = link(client, "/tracer" + FILE)
        assert path.startswith("/tracer/api/traces/1/file?")
        assert client.get(path, **stolen(client)).status == 200
        assert client.get(link(client, "/tracer" + FILE)[len("/tracer") :], **stolen(client)).status == 200


@pytest.mark.parametrize("path", [None, 1, "", "api/x", "/" + "x" * 3000])
def test_what_is_no_path_gets_no_link(client: Client, path: object) -> None:
    assert client("POST", "/api/links", {"path": path}, **written(client)).code == "bad_body"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_links_end_with_time() -> None:
    clock = Clock()
    links = OneTimeLinks(clock)
    first, second = links.make("/a"), links.make("/a?b=c")
    clock.now += LINK_S - 1
    assert links.use(first)
    clock.now += 2
    assert not links.use(second)


def test_many_links_cost_no_memory() -> None:
    links = OneTimeLinks()
    made = [links.make("/a") for _ in range(MAX_LINKS + 1)]
    assert not links.use(made[0])
    assert links.use(made[1]) and not links.use(made[1]) and links.use(made[-1])
    assert not links.use("/a?link=") and not links.use("") and not links.use("/a")


# ---------------------------------------------------------------------------------------------------------------- sign out


def test_all_browsers_are_signed_out(client: Client) -> None:
    before, path = client.signed_in(), link(client)
    assert client("POST", "/api/sign-out", **written(client)).status == 200
    assert client.get("/api/session", **before).code == "no_token"
    assert b'action="/login"' in client.get("/", **before).body
    assert client.get(path, **before).status == 401
    assert client.get("/api/session").status == 200  # scripts have the token
    assert client.get("/api/session", **client.signed_in()).status == 200  # who signs in again
    client.server.stop()
    client.server.start()
    assert client.get("/api/session", **before).code == "no_token"


def test_pages_that_look_on_are_signed_out_too(client: Client) -> None:
    async def look() -> None:
        headers = {"Authorization": f"Bearer {client.server.token}"}
        connection = await websocket_connect(HTTPRequest(f"ws://{client.host}/api/live", headers=headers))
        assert await asyncio.wait_for(connection.read_message(), 60)
        sign_out = asyncio.get_running_loop().run_in_executor(None, lambda: client("POST", "/api/sign-out"))
        while await asyncio.wait_for(connection.read_message(), 60) is not None:
            pass
        assert (await sign_out).status == 200

    asyncio.run(look())


def test_what_a_browser_holds_tells_nothing_of_the_token() -> None:
    logins, other = Logins("token"), Logins("another")
    assert len({logins.cookie, logins.key, other.cookie, other.key}) == 4
    assert logins.has_cookie(logins.cookie) and logins.has_key(logins.key)
    assert not logins.has_cookie("token") and not logins.has_cookie(None) and not logins.has_key(logins.cookie)
    assert logins.cookie == Logins("token").cookie  # a script that is run again with the same token


def test_a_code_in_place_of_the_token_signs_one_browser_in_once(client: Client) -> None:
    url = client.server.one_time_url()
    path = url[url.index("/?token=") :]
    assert client.server.token not in url
    assert client("HEAD", path, Authorization=None).status in (401, 405)  # a preview of the link does not use it up
    first = client.get(path, Authorization=None)
    assert first.status == 302 and first.headers["Location"].endswith(f"#key={client.server.access().logins.key}")
    again = client.get(path, Authorization=None)
    assert again.status == 401 and b"works once" in again.body
    assert client.get("/api/session", Authorization=f"Bearer {path.partition('=')[2]}").status == 401


def test_a_notebook_that_shows_the_url_of_the_page_does_not_save_the_token(client: Client) -> None:
    url, token = client.server.url, client.server.token
    assert token in url and token in f"{url}" and token in str(url)
    assert token not in repr(url) and token not in repr([url]) and "print()" in repr(url)


def test_a_code_ends_within_an_hour_and_when_all_are_signed_out() -> None:
    now = [0.0]
    logins = Logins("token", clock=lambda: now[0])
    early, late, dropped = (logins.new_code() for _ in range(3))
    now[0] = 3599.0
    assert logins.use_code(early) and not logins.use_code(early) and not logins.use_code("token")
    now[0] = 3600.0
    assert not logins.use_code(late)
    now[0] = 0.0
    logins.sign_out_all()
    assert not logins.use_code(dropped)
