"""Certificates of a test's own: an authority, a broker's and a client's, as PEM files."""

from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization as pem

KEY_PASSWORD = "key-secret"


class Certificates:
    """One authority with a broker and a client; another authority that nobody trusts."""

    def __init__(self, folder: Path, *, client: str = "mirror") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        authority, stranger = trustme.CA(), trustme.CA()
        self.trusted = folder / "trusted.pem"
        self.strangers = folder / "strangers.pem"
        self.trusted.write_bytes(authority.cert_pem.bytes())
        self.strangers.write_bytes(stranger.cert_pem.bytes())
        self.broker = folder / "broker.pem"
        _write(self.broker, authority.issue_cert("127.0.0.1", "localhost", common_name="broker"))
        self.elsewhere = folder / "elsewhere.pem"
        _write(self.elsewhere, authority.issue_cert("elsewhere.example", common_name="elsewhere"))
        own = authority.issue_cert(f"{client}.example", common_name=client)
        self.client = folder / "client.pem"
        _write(self.client, own)
        self.locked_client = folder / "locked-client.pem"
        _write(self.locked_client, own, password=KEY_PASSWORD)
        self.unknown_client = folder / "unknown-client.pem"
        _write(self.unknown_client, stranger.issue_cert(f"{client}.example", common_name=client))
        self.client_key = key_of(own).decode()
        self.client_chain = b"".join(blob.bytes() for blob in own.cert_chain_pems).decode()


def key_of(leaf: trustme.LeafCert, *, password: str | None = None) -> bytes:
    """Give the private key in the only form that Kafka takes, PKCS 8."""
    key = pem.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    lock: pem.KeySerializationEncryption = pem.NoEncryption()
    if password is not None:
        lock = pem.BestAvailableEncryption(password.encode())
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, lock)


def _write(file: Path, leaf: trustme.LeafCert, *, password: str | None = None) -> None:
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    file.write_bytes(key_of(leaf, password=password) + chain)
