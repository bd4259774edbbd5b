"""SCRAM as a client (RFC 5802, RFC 7677): proves that both sides know the password, telling none.

As in Kafka, a password is its UTF-8 bytes: nothing is normalised.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Final

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 1_000_000
"""A second of work: what asks for more wants to keep us busy."""
SALT_BYTES_MAX: Final = 1_024
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_NO_CHANNEL_BINDING: Final = "n,,"


class ScramError(ValueError):
    """What the server sent does not follow the protocol, or does not know the password."""


class ScramClient:
    """One login: ``first``, then ``final`` on the answer, then ``check`` on the answer to that."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._hash: Final = HASHES[mechanism]
        self._password: Final = password.encode()
        self._nonce: Final = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare: Final = f"n={name},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Give the first message."""
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """Give the proof, which takes as long as the server's iterations do. Raises ScramError."""
        fields = _fields(server_first)
        nonce = _required(fields, "r")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("its nonce does not go on from ours")
        salt = _decoded(_required(fields, "s"))
        if not 0 < len(salt) <= SALT_BYTES_MAX:
            raise ScramError(f"its salt has {len(salt)} bytes")
        iterations = _iterations(_required(fields, "i"))
        binding = b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={nonce}"
        signed = f"{self._first_bare},{server_first.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Raise ScramError unless the server has proved that it knows the password, too."""
        fields = _fields(server_final)
        if "e" in fields:
            raise ScramError(f"it says {fields['e']}")
        signature = _decoded(_required(fields, "v"))
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise ScramError("it could not prove that it knows the password")

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.digest(key, text, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    try:
        text = message.decode()
    except UnicodeDecodeError as error:
        raise ScramError("its message is not UTF-8") from error
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if len(name) != 1 or not equals or name in fields:
            raise ScramError("its message is not one of SCRAM")
        fields[name] = value
    if "m" in fields:
        raise ScramError("it wants an extension that is not known here")
    return fields


def _required(fields: dict[str, str], name: str) -> str:
    if not fields.get(name):
        raise ScramError(f"its message has no {name}=")
    return fields[name]


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:  # also of what is not ASCII
        raise ScramError("its message has something that is not base64") from error


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ScramError("its iteration count is not a number")
    if not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise ScramError(
            f"it wants {int(text)} iterations; between {ITERATIONS_MIN} and {ITERATIONS_MAX} are "
            "taken"
        )
    return int(text)
