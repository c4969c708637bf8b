"""The proofs and keys of a connection between an agent and its hub, and altered messages."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.job.wire.handshake import TAG_BYTES, AlteredError, Channel, Endpoint, Greeting, Keys, new_nonce

GREETING = Greeting("job", "hub", "a" * 64, "b" * 64, Endpoint("node1:9999", "10.0.0.1:9999"))


def ends(greeting: Greeting = GREETING) -> tuple[Channel, Channel]:
    keys = Keys("token", greeting)
    return keys.channel("agent"), keys.channel("hub")


def test_the_derivation_is_hkdf_of_rfc_5869() -> None:
    """Against the RFC's first test case, by the same two steps."""
    import hmac

    secret = hmac.digest(bytes(range(0x0D)), b"\x0b" * 22, "sha256")
    assert secret.hex() == "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"
    block = hmac.digest(secret, bytes(range(0xF0, 0xFA)) + b"\x01", "sha256")
    assert block.hex().startswith("3cb25f25faacd57a90434f64d0362f2a")


def test_both_ends_prove_themselves_and_neither_for_the_other() -> None:
    keys = Keys("token", GREETING)
    assert keys.proves("agent", keys.proof("agent")) and keys.proves("hub", keys.proof("hub"))
    assert not keys.proves("hub", keys.proof("agent")) and not keys.proves("agent", keys.proof("hub"))
    assert not keys.proves("hub", keys.proof("hub").hex()) and not keys.proves("hub", None)
    assert not Keys("other", GREETING).proves("hub", keys.proof("hub"))


@pytest.mark.parametrize("changed", [field.name for field in fields(Greeting)] + [field.name for field in fields(Endpoint)])
def test_everything_in_the_greeting_is_bound(changed: str) -> None:
    another: dict[str, Any] = {changed: "another"}
    if changed == "endpoint":
        other = replace(GREETING, endpoint=Endpoint("", ""))
    elif hasattr(GREETING, changed):
        other = replace(GREETING, **another)
    else:
        other = replace(GREETING, endpoint=replace(GREETING.endpoint, **another))
    assert not Keys("token", other).proves("agent", Keys("token", GREETING).proof("agent"))
    with pytest.raises(AlteredError):
        ends(other)[1].open(ends()[0].seal(b"message"))


def test_no_field_runs_into_the_next() -> None:
    one, other = replace(GREETING, job="ab", hub_id="c"), replace(GREETING, job="a", hub_id="bc")
    assert one.digest() != other.digest()


def test_nonces_differ() -> None:
    assert len(new_nonce()) == 64 and new_nonce() != new_nonce()


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_messages_arrive_as_they_were_sent(messages: list[bytes]) -> None:
    agent, hub = ends()
    assert [hub.open(agent.seal(data)) for data in messages] == messages
    assert [agent.open(hub.seal(data)) for data in messages] == messages


@given(st.binary(max_size=50), st.integers(min_value=0))
def test_every_bit_counts(data: bytes, bit: int) -> None:
    agent, hub = ends()
    sealed = bytearray(agent.seal(data))
    at = bit % (8 * len(sealed))
    sealed[at // 8] ^= 1 << at % 8
    with pytest.raises(AlteredError):
        hub.open(bytes(sealed))


@given(st.integers(min_value=0, max_value=TAG_BYTES + 5))
def test_a_message_that_is_cut_is_altered(length: int) -> None:
    agent, hub = ends()
    with pytest.raises(AlteredError):
        hub.open(agent.seal(b"message")[:length])


def test_repeated_reordered_left_out_and_reflected() -> None:
    agent, hub = ends()
    first, second = agent.seal(b"1"), agent.seal(b"2")
    with pytest.raises(AlteredError):
        hub.open(second)
    agent, hub = ends()
    assert hub.open(agent.seal(b"1")) == b"1"
    with pytest.raises(AlteredError):
        hub.open(first)
    with pytest.raises(AlteredError):
        agent.open(first)


@pytest.mark.parametrize("sealed", ["text", None, b"", b"\0" * TAG_BYTES])
def test_what_is_no_message_is_altered(sealed: object) -> None:
    with pytest.raises(AlteredError):
        ends()[1].open(sealed)
