"""How a client proves who it is and whom it talks to: TLS and SASL, under Kafka's client keys.

Certificates and keys are PEM: Java's own stores cannot be read here, and how to turn one into PEM
is said where one is given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from twinlog.config.checks import Check, one_of
from twinlog.config.declare import Setting, Settings, SettingSet, Update
from twinlog.config.jaas import EXAMPLE, PLAIN_MODULE, SCRAM_MODULE, JaasLogin, read_jaas
from twinlog.config.kinds import Kind

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
PEM: Final = "PEM"
_HTTPS: Final = "https"
_MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    SCRAM_SHA_256: SCRAM_MODULE,
    SCRAM_SHA_512: SCRAM_MODULE,
}
_IS_PEM_TRUSTSTORE: Final = Check(
    "PEM; keytool -list -rfc -keystore STORE > truststore.pem makes one of a Java store",
    lambda value: value == PEM,
)
_IS_PEM_KEYSTORE: Final = Check(
    "PEM; keytool -importkeystore -srckeystore STORE -destkeystore keystore.p12 -deststoretype "
    "PKCS12, then openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem, makes one of a Java "
    "store",
    lambda value: value == PEM,
)

SECURITY_PROTOCOL: Final = Setting(
    "security.protocol",
    Kind.STRING,
    "PLAINTEXT",
    "What is spoken to the source: TLS with SSL and SASL_SSL, a login with SASL_PLAINTEXT and "
    "SASL_SSL.",
    one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    Update.CLUSTER_WIDE,
)
SASL_MECHANISM: Final = Setting(
    "sasl.mechanism",
    Kind.STRING,
    PLAIN,
    "How to log in.",
    one_of(*_MODULES),
    Update.CLUSTER_WIDE,
)
SASL_JAAS_CONFIG: Final[Setting[str | None]] = Setting(
    "sasl.jaas.config",
    Kind.PASSWORD,
    None,
    f"Who logs in: `{EXAMPLE}`; for SCRAM the module is `{SCRAM_MODULE}`.",
    update=Update.CLUSTER_WIDE,
)
SSL_TRUSTSTORE_TYPE: Final = Setting(
    "ssl.truststore.type",
    Kind.STRING,
    PEM,
    "The form of the truststore. (Kafka's own default is JKS.)",
    _IS_PEM_TRUSTSTORE,
    Update.CLUSTER_WIDE,
)
SSL_TRUSTSTORE_LOCATION: Final[Setting[str | None]] = Setting(
    "ssl.truststore.location",
    Kind.STRING,
    None,
    "A file on each broker with the certificates that are trusted. By default, and without "
    "ssl.truststore.certificates, what the operating system trusts.",
    update=Update.CLUSTER_WIDE,
)
SSL_TRUSTSTORE_CERTIFICATES: Final[Setting[str | None]] = Setting(
    "ssl.truststore.certificates",
    Kind.PASSWORD,
    None,
    "The certificates that are trusted, themselves.",
    update=Update.CLUSTER_WIDE,
)
SSL_KEYSTORE_TYPE: Final = Setting(
    "ssl.keystore.type",
    Kind.STRING,
    PEM,
    "The form of the keystore. (Kafka's own default is JKS.)",
    _IS_PEM_KEYSTORE,
    Update.CLUSTER_WIDE,
)
SSL_KEYSTORE_LOCATION: Final[Setting[str | None]] = Setting(
    "ssl.keystore.location",
    Kind.STRING,
    None,
    "A file on each broker with the private key and the certificates, its own first, that are "
    "shown to a source that asks for one.",
    update=Update.CLUSTER_WIDE,
)
SSL_KEYSTORE_KEY: Final[Setting[str | None]] = Setting(
    "ssl.keystore.key",
    Kind.PASSWORD,
    None,
    "The private key itself.",
    update=Update.CLUSTER_WIDE,
)
SSL_KEYSTORE_CERTIFICATE_CHAIN: Final[Setting[str | None]] = Setting(
    "ssl.keystore.certificate.chain",
    Kind.PASSWORD,
    None,
    "The certificates of ssl.keystore.key, its own first.",
    update=Update.CLUSTER_WIDE,
)
SSL_KEY_PASSWORD: Final[Setting[str | None]] = Setting(
    "ssl.key.password",
    Kind.PASSWORD,
    None,
    "The password of the private key, if it is encrypted.",
    update=Update.CLUSTER_WIDE,
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM: Final = Setting(
    "ssl.endpoint.identification.algorithm",
    Kind.STRING,
    _HTTPS,
    "With https, a broker's certificate must be for the host that is connected to.",
    Check("https, or nothing", lambda value: value in (_HTTPS, "")),
    Update.CLUSTER_WIDE,
)

CLIENT_SECURITY: Final[tuple[Setting[Any], ...]] = (
    SECURITY_PROTOCOL,
    SASL_MECHANISM,
    SASL_JAAS_CONFIG,
    SSL_TRUSTSTORE_TYPE,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_KEYSTORE_TYPE,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEY_PASSWORD,
    SSL_ENDPOINT_IDENTIFICATION_ALGORITHM,
)


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """Who logs in by SASL, and how."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """What is trusted, and what is shown; files are read anew for every connection."""

    truststore_file: str | None = None
    trusted: str | None = field(default=None, repr=False)
    keystore_file: str | None = None
    key: str | None = field(default=None, repr=False)
    certificate_chain: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_host: bool = True


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """How connections of a client are secured; not at all, unless something is given."""

    tls: ClientTls | None = None
    login: ClientLogin | None = None

    @property
    def who(self) -> str:
        """The principal as a broker names it, for messages."""
        if self.login is not None:
            return f"User:{self.login.username}"
        if self.tls is not None and (self.tls.keystore_file or self.tls.key):
            return "the principal of ssl.keystore's certificate"
        return "User:ANONYMOUS"


def security_problem(settings: Settings) -> str | None:
    """Say what is wrong with the security settings among ``settings``, and the fix."""
    if settings[SECURITY_PROTOCOL].startswith("SASL"):
        problem = _login_problem(settings)
        if problem is not None:
            return problem
    if settings[SSL_TRUSTSTORE_LOCATION] and settings[SSL_TRUSTSTORE_CERTIFICATES]:
        return "ssl.truststore.location and ssl.truststore.certificates are both given: keep one"
    key, chain = settings[SSL_KEYSTORE_KEY], settings[SSL_KEYSTORE_CERTIFICATE_CHAIN]
    if bool(key) != bool(chain):
        return "ssl.keystore.key and ssl.keystore.certificate.chain must be given together"
    if key and settings[SSL_KEYSTORE_LOCATION]:
        return "ssl.keystore.location and ssl.keystore.key are both given: keep one"
    return None


def security_of(settings: Settings) -> ClientSecurity:
    """Give what settings with no ``security_problem`` say."""
    protocol = settings[SECURITY_PROTOCOL]
    login = None
    if protocol.startswith("SASL"):
        options = _jaas_of(settings).options
        login = ClientLogin(settings[SASL_MECHANISM], options["username"], options["password"])
    tls = None
    if protocol.endswith("SSL"):
        tls = ClientTls(
            truststore_file=settings[SSL_TRUSTSTORE_LOCATION],
            trusted=settings[SSL_TRUSTSTORE_CERTIFICATES],
            keystore_file=settings[SSL_KEYSTORE_LOCATION],
            key=settings[SSL_KEYSTORE_KEY],
            certificate_chain=settings[SSL_KEYSTORE_CERTIFICATE_CHAIN],
            key_password=settings[SSL_KEY_PASSWORD],
            checks_host=settings[SSL_ENDPOINT_IDENTIFICATION_ALGORITHM] == _HTTPS,
        )
    return ClientSecurity(tls, login)


CLIENT: Final = SettingSet(
    "client", CLIENT_SECURITY, rules=(security_problem,), is_foreign=lambda name: True
)


def client_security(given: Mapping[str, str], *, origin: str = "") -> ClientSecurity:
    """Give what the properties of a client say; other properties are passed over.

    Raises SettingsError.
    """
    return security_of(Settings.of(CLIENT, given, origin=origin))


def _jaas_of(settings: Settings) -> JaasLogin:
    return read_jaas(settings[SASL_JAAS_CONFIG] or "")


def _login_problem(settings: Settings) -> str | None:
    protocol, mechanism = settings[SECURITY_PROTOCOL], settings[SASL_MECHANISM]
    key, module = SASL_JAAS_CONFIG.name, _MODULES[mechanism]
    if not settings[SASL_JAAS_CONFIG]:
        return f"security.protocol={protocol} needs {key}, for example {key}={EXAMPLE}"
    try:
        login = _jaas_of(settings)
    except ValueError as error:
        return f"{key} cannot be read: {error}, for example {EXAMPLE}"
    if login.module != module:
        return (
            f"sasl.mechanism={mechanism} needs {module} in {key}; what is there is another module"
        )
    missing = [name for name in ("username", "password") if not login.options.get(name)]
    if missing:
        return f"{key} has no {' and no '.join(missing)}"
    if login.options.get("tokenauth", "false").lower() == "true":
        return f"{key} has tokenauth=true: delegation tokens are not spoken; use a password"
    return None
