"""Tokens, names, origins and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.errors import UsageError
from tftracer.web.credentials import Access, HostNames, Location, choose_token


def test_a_token_is_made_and_no_two_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFTRACER_TOKEN", raising=False)
    made = {choose_token(None) for _ in range(10)}
    assert len(made) == 10
    assert min(map(len, made)) >= 43  # 256 bits


def test_a_given_token_goes_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_TOKEN", "from-environment")
    assert choose_token(None) == "from-environment"
    assert choose_token("given") == "given"


def test_an_empty_token_in_the_environment_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_TOKEN", " ")
    assert len(choose_token(None)) >= 43


@pytest.mark.parametrize("token", ["", " a", "a\n", "t\u00e4", "a\x00b"])
def test_a_token_that_no_header_carries_is_misuse(token: str) -> None:
    with pytest.raises(UsageError, match="token must be"):
        choose_token(token)


def test_so_is_one_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_TOKEN", "t\u00e4")
    with pytest.raises(UsageError, match="token must be"):
        choose_token(None)


def test_a_token_of_another_type_is_misuse() -> None:
    with pytest.raises(TypeError, match="not int"):
        choose_token(123)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("netloc", "expected"),
    [
        ("localhost:9999", Location("localhost", 9999)),
        ("LOCALHOST", Location("localhost", None)),
        ("[::1]:80", Location("::1", 80)),
        ("host.", Location("host", None)),
        ("", None),
        ("a/b", None),
        ("user@host", None),
        ("host:99999", None),
        ("host:x", None),
        ("[::1", None),
        ("a,b", None),
        ("a b", None),
        (":80", None),
    ],
)
def test_hosts_are_taken_apart(netloc: str, expected: Location | None) -> None:
    assert Location.parse(netloc) == expected


@given(st.text())
def test_no_host_or_origin_makes_it_fail(text: str) -> None:
    names = HostNames("127.0.0.1", "machine")
    assert Location.parse(text) is None or names.is_ours(text, "") in (True, False)
    assert names.is_same_origin(text, text) is False or "://" in text


LOOPBACK = HostNames("127.0.0.1", "machine")
OPEN = HostNames("0.0.0.0", "Machine")
PROXIED = HostNames("127.0.0.1", "machine", "https://public.example", "other.example, exact.example:81,fe80::1")


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:1234", "LocalHost:1"])
def test_any_server_answers_to_loopback_names(host: str) -> None:
    for names in (LOOPBACK, OPEN, PROXIED):
        assert names.is_ours(host, "")


@pytest.mark.parametrize("host", ["evil.example", "machine", "10.0.0.5", "localhost.evil.example", "127.0.0.1.evil.example", ""])
def test_a_loopback_server_answers_to_no_other(host: str) -> None:
    assert not LOOPBACK.is_ours(host, "127.0.0.1")


def test_an_open_server_answers_to_its_machines_name_and_address() -> None:
    assert OPEN.is_ours("machine:9999", "10.0.0.5")
    assert OPEN.is_ours("10.0.0.5:9999", "10.0.0.5")
    assert not OPEN.is_ours("10.0.0.6:9999", "10.0.0.5")
    assert not OPEN.is_ours("evil.example:9999", "10.0.0.5")


def test_names_can_be_allowed() -> None:
    assert PROXIED.is_ours("public.example", "")
    assert PROXIED.is_ours("other.example:5", "")
    assert PROXIED.is_ours("exact.example:81", "")
    assert PROXIED.is_ours("[fe80::1]:81", "")
    assert not PROXIED.is_ours("exact.example:82", "")


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost:9999", "localhost:9999", True),
        ("http://LOCALHOST:9999", "localhost:9999", True),
        ("http://localhost:8888", "localhost:9999", False),  # another user's server on the same machine
        ("http://localhost", "localhost:9999", False),
        ("https://public.example", "127.0.0.1:9999", True),
        ("https://other.example", "127.0.0.1:9999", True),
        ("https://other.example:444", "127.0.0.1:9999", False),
        ("http://exact.example:81", "127.0.0.1:9999", True),
        ("http://evil.example", "localhost:9999", False),
        ("null", "localhost:9999", False),
        ("", "localhost:9999", False),
        ("file://", "localhost:9999", False),
        ("chrome-extension://localhost:9999", "localhost:9999", False),
    ],
)
def test_origins(origin: str, host: str, same: bool) -> None:
    assert PROXIED.is_same_origin(origin, host) is same


def test_each_server_of_a_host_has_a_cookie_of_its_own_name() -> None:
    assert Access("token", LOOPBACK, 1).cookie_name != Access("token", LOOPBACK, 2).cookie_name
    assert Access("token", LOOPBACK, 1).cookie_name != Access("other", LOOPBACK, 1).cookie_name


def test_the_cookies_attributes() -> None:
    assert Access("t", LOOPBACK, 1).cookie().endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert Access("t", LOOPBACK, 1, "/prefix", secure=True).cookie().endswith("; Path=/prefix; HttpOnly; SameSite=Strict; Secure")


def test_a_token_in_the_url_is_quoted() -> None:
    assert Access("a&b=c#%", LOOPBACK, 1).url("/") == "/?token=a%26b%3Dc%23%25"
