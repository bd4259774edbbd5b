"""What a client is told of TLS and SASL is checked as a whole, and its secrets stay secret."""

import pytest

from twinlog.config.client_security import (
    CLIENT,
    CLIENT_SECURITY,
    ClientLogin,
    ClientSecurity,
    ClientTls,
    client_security,
)
from twinlog.config.declare import Settings
from twinlog.config.jaas import PLAIN_MODULE, SCRAM_MODULE
from twinlog.config.kinds import Kind
from twinlog.model.errors import SettingsError

PLAIN_LOGIN = f'{PLAIN_MODULE} required username="me" password="hush";'
SCRAM_LOGIN = f'{SCRAM_MODULE} required username="me" password="hush";'
SASL = {"security.protocol": "SASL_PLAINTEXT"}
TLS = {"security.protocol": "SSL"}


def test_nothing_is_secured_by_default() -> None:
    assert client_security({}) == ClientSecurity()
    assert client_security({}).who == "User:ANONYMOUS"


def test_other_properties_of_a_client_are_passed_over() -> None:
    assert client_security({"client.id": "a", "acks": "all"}) == ClientSecurity()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_login_is_read_and_its_mechanism(mechanism: str, protocol: str) -> None:
    jaas = PLAIN_LOGIN if mechanism == "PLAIN" else SCRAM_LOGIN
    found = client_security(
        {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    )
    assert found.login == ClientLogin(mechanism, "me", "hush")
    assert (found.tls is not None) == (protocol == "SASL_SSL")
    assert found.who == "User:me"


def test_the_mechanism_is_plain_by_default() -> None:
    found = client_security({**SASL, "sasl.jaas.config": PLAIN_LOGIN})
    assert found.login == ClientLogin("PLAIN", "me", "hush")


def test_tls_has_files_or_the_certificates_themselves() -> None:
    files = {"ssl.truststore.location": "/t.pem", "ssl.keystore.location": "/k.pem"}
    found = client_security({**TLS, **files, "ssl.key.password": "hush"})
    assert found.tls == ClientTls("/t.pem", keystore_file="/k.pem", key_password="hush")
    assert found.who == "the principal of ssl.keystore's certificate"
    given = {
        "ssl.truststore.certificates": "T",
        "ssl.keystore.key": "K",
        "ssl.keystore.certificate.chain": "C",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert client_security({**TLS, **given}).tls == ClientTls(
        trusted="T", key="K", certificate_chain="C", checks_host=False
    )
    assert client_security(TLS).who == "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"security.protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (SASL, "security.protocol=SASL_PLAINTEXT needs sasl.jaas.config, for example"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({**SASL, "sasl.jaas.config": "hush"}, "sasl.jaas.config cannot be read: it must begin"),
        (
            {**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": PLAIN_LOGIN},
            "sasl.mechanism=SCRAM-SHA-256 needs .*ScramLoginModule in sasl.jaas.config",
        ),
        (
            {**SASL, "sasl.jaas.config": f"{PLAIN_MODULE} required password=hush;"},
            "has no username",
        ),
        (
            {**SASL, "sasl.jaas.config": f"{PLAIN_MODULE} required a=hush;"},
            "has no username and no password",
        ),
        (
            {**SASL, "sasl.jaas.config": PLAIN_LOGIN.replace(";", ' tokenauth="true";')},
            "delegation tokens are not spoken",
        ),
        ({**TLS, "ssl.truststore.type": "JKS"}, "keytool -list -rfc -keystore STORE"),
        ({**TLS, "ssl.keystore.type": "PKCS12"}, "openssl pkcs12 -in keystore.p12 -nodes"),
        (
            {**TLS, "ssl.truststore.location": "/t", "ssl.truststore.certificates": "hush"},
            "both given: keep one",
        ),
        ({**TLS, "ssl.keystore.key": "hush"}, "must be given together"),
        ({**TLS, "ssl.keystore.certificate.chain": "hush"}, "must be given together"),
        (
            {
                **TLS,
                "ssl.keystore.location": "/k",
                "ssl.keystore.key": "hush",
                "ssl.keystore.certificate.chain": "C",
            },
            "both given: keep one",
        ),
        ({**TLS, "ssl.endpoint.identification.algorithm": "ldaps"}, "https, or nothing"),
    ],
)
def test_what_does_not_fit_is_refused_without_telling_secrets(
    given: dict[str, str], why: str
) -> None:
    with pytest.raises(SettingsError, match=why) as caught:
        client_security(given)
    assert "hush" not in str(caught.value)


def test_what_is_secret_is_never_described_nor_printed() -> None:
    given = {setting.name: "hush" for setting in CLIENT_SECURITY if setting.kind is Kind.PASSWORD}
    assert {"sasl.jaas.config", "ssl.keystore.key", "ssl.key.password"} <= given.keys()
    entries = Settings.of(CLIENT, {**given, "security.protocol": "PLAINTEXT"}).describe()
    assert all(one.value is None for one in entries if one.is_sensitive)
    secured = client_security(
        {
            "security.protocol": "SASL_SSL",
            **given,
            "sasl.jaas.config": PLAIN_LOGIN,
        }
    )
    assert "hush" not in repr(secured)
