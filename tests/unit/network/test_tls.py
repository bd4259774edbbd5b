"""TLS contexts are made of PEM files and texts; what is wrong names its setting."""

import ssl
from pathlib import Path

import pytest

from support.certificates import KEY_PASSWORD, Certificates
from twinlog.config.client_security import ClientTls
from twinlog.network.tls import TlsError, client_context, pem


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_a_host_is_checked_unless_that_is_switched_off(own: Certificates) -> None:
    trusted = str(own.trusted)
    assert client_context(ClientTls(trusted)).check_hostname
    unchecked = client_context(ClientTls(trusted, checks_host=False))
    assert not unchecked.check_hostname
    assert unchecked.verify_mode is ssl.CERT_REQUIRED
    assert unchecked.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_only_what_is_given_is_trusted_and_otherwise_what_the_system_trusts(
    own: Certificates,
) -> None:
    assert len(client_context(ClientTls(str(own.trusted))).get_ca_certs()) == 1
    text = own.trusted.read_text()
    assert len(client_context(ClientTls(trusted=text)).get_ca_certs()) == 1
    assert client_context(ClientTls()).verify_mode is ssl.CERT_REQUIRED


def test_a_truststore_may_have_words_between_its_certificates(
    own: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "keytool.pem"
    strangers = own.strangers.read_text()
    file.write_text(f"Alias name: a\n{own.trusted.read_text()}\nAlias name: b\n{strangers}\n")
    assert len(client_context(ClientTls(str(file))).get_ca_certs()) == 2
    assert len(client_context(ClientTls(trusted=file.read_text())).get_ca_certs()) == 2


def test_a_text_may_stand_in_one_line(own: Certificates) -> None:
    text = own.trusted.read_text()
    assert pem(text.replace("\n", " ")) == text == pem(text)
    key, chain = (one.replace("\n", " ") for one in (own.client_key, own.client_chain))
    client_context(ClientTls(trusted=text, key=key, certificate_chain=chain))


def test_a_key_with_headers_keeps_its_lines() -> None:
    text = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n"
    text += "-----END RSA PRIVATE KEY-----\n"
    assert pem(text) == text


def test_an_encrypted_key_needs_its_password(own: Certificates) -> None:
    file = str(own.locked_client)
    client_context(ClientTls(keystore_file=file, key_password=KEY_PASSWORD))
    for wrong in (None, "wrong"):
        with pytest.raises(TlsError, match=r"ssl\.keystore\.location=.* ssl\.key\.password if"):
            client_context(ClientTls(keystore_file=file, key_password=wrong))


@pytest.mark.parametrize("content", [b"\xfe\xed\xfe\xed\x00\x00\x00\x02", b"", b"no certificate"])
def test_a_store_that_is_not_pem_is_refused_with_the_way_to_make_it_so(
    content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "store.jks"
    file.write_bytes(content)
    with pytest.raises(TlsError, match=r"ssl\.truststore\.location=.*keytool -list -rfc"):
        client_context(ClientTls(str(file)))
    with pytest.raises(TlsError, match=r"ssl\.keystore\.location=.*openssl pkcs12"):
        client_context(ClientTls(keystore_file=str(file)))


def test_a_file_that_is_not_there_is_named(own: Certificates) -> None:
    with pytest.raises(
        TlsError, match=r"truststore\.location=/nowhere/t\.pem cannot be read: No such"
    ):
        client_context(ClientTls("/nowhere/t.pem"))
    with pytest.raises(
        TlsError, match=r"keystore\.location=/nowhere/k\.pem cannot be read: No such"
    ):
        client_context(ClientTls(str(own.trusted), keystore_file="/nowhere/k.pem"))


def test_texts_that_do_not_fit_are_refused_and_not_told(own: Certificates) -> None:
    for trusted in ("hush", "", "-----BEGIN CERTIFICATE-----hush-----END CERTIFICATE-----"):
        with pytest.raises(TlsError, match=r"ssl\.truststore\.certificates are not PEM"):
            client_context(ClientTls(trusted=trusted))
    for key in ("hush", own.client_key):
        with pytest.raises(TlsError, match=r"ssl\.keystore\.key and .* cannot be used") as caught:
            client_context(ClientTls(key=key, certificate_chain=own.strangers.read_text()))
        assert "hush" not in str(caught.value)


def test_what_no_file_name_and_no_password_can_be_is_refused_as_all_else(own: Certificates) -> None:
    trusted = str(own.trusted)
    with pytest.raises(
        TlsError, match=r"ssl\.truststore\.location=.* cannot be read: embedded null"
    ):
        client_context(ClientTls("t\0.pem"))
    with pytest.raises(TlsError, match=r"ssl\.keystore\.location=.* cannot be read: embedded null"):
        client_context(ClientTls(trusted, keystore_file="k\0.pem"))
    with pytest.raises(TlsError, match="cannot be read: password cannot be longer than 1024 bytes"):
        client_context(
            ClientTls(trusted, keystore_file=str(own.locked_client), key_password="x" * 2_000)
        )
    spoilt = own.client_key.replace("PRIVATE KEY-----\n", "PRIVATE KEY-----\nhush\u00e9", 1)
    with pytest.raises(TlsError, match=r"ssl\.keystore\.key and .* \(it is not ASCII\)") as caught:
        client_context(ClientTls(trusted, key=spoilt, certificate_chain=own.client_chain))
    assert "hush" not in str(caught.value)


def test_a_key_that_there_is_no_room_for_is_no_crash(
    own: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(TlsError, match="cannot be handed to OpenSSL in a file: No such file"):
        client_context(ClientTls(key=own.client_key, certificate_chain=own.client_chain))
