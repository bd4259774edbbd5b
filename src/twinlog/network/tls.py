"""Makes the TLS context of a client's connections out of PEM files or texts."""

import os
import re
import ssl
import tempfile
from pathlib import Path
from typing import Final

from twinlog.config.client_security import ClientTls

TRUSTSTORE_TO_PEM: Final = "keytool -list -rfc -keystore STORE > truststore.pem"
KEYSTORE_TO_PEM: Final = (
    "keytool -importkeystore -srckeystore STORE -destkeystore keystore.p12 -deststoretype PKCS12, "
    "then openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem"
)

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE_LENGTH: Final = 64


class TlsError(ValueError):
    """What is given for TLS cannot be used; names the setting, and never tells a key."""


def client_context(tls: ClientTls) -> ssl.SSLContext:
    """Give a context that trusts and shows what ``tls`` says. Reads files; raises TlsError."""
    context = _trusting(tls)
    context.check_hostname = tls.checks_host
    if tls.keystore_file is not None:
        _show_file(context, tls.keystore_file, tls.key_password)
    elif tls.key is not None:
        _show(context, tls.key, tls.certificate_chain or "", tls.key_password)
    return context


def pem(text: str) -> str:
    """Give the PEM blocks of a text; in a settings file they may stand in one line."""
    return "".join(
        f"-----BEGIN {found[1]}-----\n{_wrapped(found[2])}\n-----END {found[1]}-----\n"
        for found in _BLOCK.finditer(text)
    )


def _wrapped(body: str) -> str:
    if ":" in body:  # it has headers, which are lines of their own
        return body.strip()
    joined = "".join(body.split())
    return "\n".join(joined[at : at + _LINE_LENGTH] for at in range(0, len(joined), _LINE_LENGTH))


def _trusting(tls: ClientTls) -> ssl.SSLContext:
    if tls.truststore_file is not None:
        key = f"ssl.truststore.location={tls.truststore_file}"
        try:
            return ssl.create_default_context(cafile=tls.truststore_file)
        except ssl.SSLError as error:
            why = f"{key} has no PEM certificates; of a Java store, make them with"
            raise TlsError(f"{why} {TRUSTSTORE_TO_PEM}") from error
        except (OSError, ValueError) as error:
            raise TlsError(f"{key} cannot be read: {_reason(error)}") from error
    if tls.trusted is None:
        return ssl.create_default_context()
    blocks = pem(tls.trusted)
    if not blocks:
        raise TlsError("ssl.truststore.certificates are not PEM")
    try:
        return ssl.create_default_context(cadata=blocks)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError("ssl.truststore.certificates are not PEM certificates") from error


def _show_file(context: ssl.SSLContext, file: str, password: str | None) -> None:
    key = f"ssl.keystore.location={file}"
    try:
        context.load_cert_chain(file, password=_told(password))
    except ssl.SSLError as error:
        raise TlsError(
            f"{key} cannot be used ({error.reason or error}): it must be PEM, with a private key, "
            f"its certificates, and ssl.key.password if the key is encrypted. Of a Java store, "
            f"make it with {KEYSTORE_TO_PEM}"
        ) from error
    except (OSError, ValueError) as error:
        raise TlsError(f"{key} cannot be read: {_reason(error)}") from error


def _show(context: ssl.SSLContext, key: str, chain: str, password: str | None) -> None:
    keys = "ssl.keystore.key and ssl.keystore.certificate.chain"
    try:
        _load(context, pem(key) + pem(chain), password)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"{keys} cannot be used ({_reason(error)}): both must be PEM and belong together, and "
            "an encrypted key needs ssl.key.password"
        ) from error
    except OSError as error:
        raise TlsError(f"{keys} cannot be handed to OpenSSL in a file: {_reason(error)}") from error


def _load(context: ssl.SSLContext, text: str, password: str | None) -> None:
    # OpenSSL reads keys from files only: this one is ours alone, and gone at once.
    with tempfile.TemporaryDirectory(prefix="twinlog-") as folder:
        file = Path(folder, "keystore.pem")
        file.touch(mode=0o600)
        file.write_text(text, encoding="ascii")
        context.load_cert_chain(file, password=_told(password))


def _told(password: str | None) -> "_Password":
    return _Password(password or "")


class _Password:
    """Gives a password when it is asked for; without it, OpenSSL would ask at the terminal."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self) -> str:
        return self._text


def _reason(error: OSError | ValueError) -> str:
    match error:
        case ssl.SSLError():
            return error.reason or str(error)
        case UnicodeError():  # its own words show a piece of what may be a key
            return "it is not ASCII"
        case OSError(errno=number) if number is not None:
            return os.strerror(number)
        case _:
            return str(error)
