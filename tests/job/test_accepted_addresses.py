"""Which addresses a hub accepts as its own: those of direct connections, and those that it was configured with."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from job_relay import make_certificate

from tftracer.job.wire.accepted_addresses import HubAddresses, address, digest_of, digest_of_file
from tftracer.job.wire.handshake import Endpoint

OWN = "10.0.0.1:9999"


def told() -> HubAddresses:
    addresses = HubAddresses()
    addresses.know(["Node1", "localhost", "127.0.0.1"])
    addresses.allow("tunnel:8888, other ,[::1]:7, 10.9.9.9:1,bad entry/,")
    addresses.behind("https://example.org/tracer")
    return addresses


@pytest.mark.parametrize(
    ("dialled", "peer", "accepted"),
    [
        ("whatever:1", OWN, True),  # directly: what is dialled leads here
        ("node1:9999", "10.96.0.7:9999", True),  # a service's address, at the hub's own port
        ("node1:10000", "10.0.0.1:10000", False),  # another user's port of the same host
        ("node1:9998", "10.96.0.7:9998", False),
        ("other:9999", "10.96.0.7:9999", True),
        ("tunnel:8888", "127.0.0.1:8888", True),
        ("tunnel:9999", "127.0.0.1:9999", False),
        ("[::1]:7", "[::1]:7", True),
        ("10.9.9.9:1", "10.9.9.9:1", True),
        ("localhost:9999", "[::1]:9999", False),  # anybody on the host may listen there
        ("evil:9999", "10.6.6.6:9999", False),
        ("example.org:443", "10.6.6.6:443", True),
        ("example.org:80", "10.6.6.6:80", False),
        ("", "", False),
    ],
)
def test_addresses(dialled: str, peer: str, accepted: bool) -> None:
    assert told().accepts(Endpoint(dialled, peer), OWN) is accepted


def test_a_closed_connection_has_no_address_to_match() -> None:
    assert not HubAddresses().accepts(Endpoint("", ""), "")


@pytest.mark.parametrize(
    ("seen", "own", "dialled", "accepted"),
    [
        ("aa", "aa", "node1:9999", True),
        ("bb", "aa", "node1:9999", False),
        ("", "aa", "node1:9999", False),
        ("aa", "", "node1:9999", False),
        ("bb", "", "example.org:443", True),  # the proxy's own certificate, which the agent has checked
    ],
)
def test_under_tls_the_certificate_must_be_the_hubs(seen: str, own: str, dialled: str, accepted: bool) -> None:
    addresses = told()
    addresses.certificate = own
    assert addresses.accepts(Endpoint(dialled, OWN, seen), OWN) is accepted


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("Node1.", 9, "node1:9"),
        ("10.0.0.1", 9, "10.0.0.1:9"),
        ("::ffff:10.0.0.1", 9, "10.0.0.1:9"),
        ("[0:0:0:0:0:0:0:1]", 9, "[::1]:9"),
        ("fe80::1%eth0", 9, "[fe80::1]:9"),
    ],
)
def test_one_spelling(host: str, port: int, expected: str) -> None:
    assert address(host, port) == expected


def test_the_digest_of_a_certificate_file_is_that_of_what_is_sent(tmp_path: Path) -> None:
    cert, key = map(Path, make_certificate(tmp_path, "hub"))
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + cert.read_text() + cert.read_text())
    assert digest_of_file(str(both)) == digest_of(ssl.PEM_cert_to_DER_cert(cert.read_text()))
    assert digest_of_file(None) == digest_of_file(str(key)) == digest_of_file(str(tmp_path / "absent")) == digest_of(None) == ""
