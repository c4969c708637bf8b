"""The mutual proof of an agent and its hub that they know the job's token, and the authentication of all later messages.

Neither end sends the token. Both derive keys from it with HKDF-SHA-256 (RFC 5869) over the whole greeting: both nonces, the job,
the address that the agent connected to, and the certificate that it got. An attacker who relays the connection does not have
these keys: he cannot send messages, and cannot change, repeat, reorder or drop one unnoticed. Without TLS he reads them. No I/O.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal

import msgpack

from tftracer.errors import FormatError

#: Both ends must have the same version; the keys are derived from it, too.
VERSION = 1
TAG_BYTES = 32

Role = Literal["agent", "hub"]
OTHER: dict[Role, Role] = {"agent": "hub", "hub": "agent"}


class AlteredError(FormatError):
    """A message is not what the other end sent."""


def new_nonce() -> str:
    return secrets.token_hex(32)


@dataclass(frozen=True)
class Endpoint:
    """The hub as the agent sees it. It distinguishes the hub from a relay at another address or with another certificate."""

    dialled: str  # "host:port" as configured
    peer: str  # "ip:port" at the other end of the agent's socket
    certificate: str = ""  # SHA-256 of the server's certificate, hex; "" without TLS


@dataclass(frozen=True)
class Greeting:
    """The content of the greeting, before either end has proved anything."""

    job: str
    hub_id: str
    hub_nonce: str
    agent_nonce: str
    endpoint: Endpoint

    def digest(self) -> bytes:
        """Return the SHA-256 of all fields. msgpack stores their lengths, so different greetings never have the same bytes."""
        endpoint = self.endpoint
        fields = [self.job, self.hub_id, self.hub_nonce, self.agent_nonce, endpoint.dialled, endpoint.peer, endpoint.certificate]
        return hashlib.sha256(msgpack.packb(["tftracer job", VERSION, *fields])).digest()


class Keys:
    """All keys of one connection, derived from the token and the greeting."""

    def __init__(self, token: str, greeting: Greeting) -> None:
        salt = f"{greeting.hub_nonce}{greeting.agent_nonce}".encode()
        self._secret = hmac.digest(salt, token.encode(), "sha256")  # HKDF-Extract
        self._greeting = greeting.digest()

    def derive(self, purpose: str) -> bytes:
        """Derive a key of 32 bytes (HKDF-Expand, one block)."""
        return hmac.digest(self._secret, purpose.encode() + b"\0" + self._greeting + b"\x01", "sha256")

    def proof(self, role: Role) -> bytes:
        """Return the proof that ``role`` sends to the other end."""
        return self.derive(f"proof of the {role}")

    def proves(self, role: Role, proof: object) -> bool:
        """Return whether ``proof`` is the right proof of ``role``."""
        return isinstance(proof, bytes) and hmac.compare_digest(proof, self.proof(role))

    def channel(self, role: Role) -> Channel:
        """Return ``role``'s end of the connection."""
        return Channel(self.derive(f"messages of the {role}"), self.derive(f"messages of the {OTHER[role]}"))


class Channel:
    """Authenticates the messages of one connection: a tag over their number and content, under a key for each direction.

    Messages must be sealed in the order in which they are sent, and opened in the order in which they arrive.
    """

    def __init__(self, sending_key: bytes, receiving_key: bytes) -> None:
        self._sending = hmac.new(sending_key, digestmod="sha256")
        self._receiving = hmac.new(receiving_key, digestmod="sha256")
        self._sent = self._received = 0

    def seal(self, data: bytes) -> bytes:
        """Return the message as it is sent."""
        number, self._sent = self._sent, self._sent + 1
        return _tag(self._sending, number, data) + data

    def open(self, sealed: object) -> bytes:
        """Return the original message.

        Raises AlteredError if it is not the other end's next message; then close the connection.
        """
        number, self._received = self._received, self._received + 1
        if isinstance(sealed, bytes) and len(sealed) >= TAG_BYTES:
            data = sealed[TAG_BYTES:]
            if hmac.compare_digest(sealed[:TAG_BYTES], _tag(self._receiving, number, data)):
                return data
        raise AlteredError("A message on the job's connection was changed, repeated or left out on its way.")


def _tag(key: hmac.HMAC, number: int, data: bytes) -> bytes:
    tag = key.copy()
    tag.update(number.to_bytes(8, "big"))
    tag.update(data)
    return tag.digest()
