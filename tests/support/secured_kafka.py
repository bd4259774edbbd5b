"""A Kafka that lets in who proves who he is: SASL, TLS, both, and ACLs that say what he may do."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from support.certificates import Certificates
from support.kafka_install import KAFKA_2_1, KAFKA_4
from support.kafka_node import KafkaNode
from support.server_process import free_port
from support.waiting import wait_until

USER = "mirror"
PASSWORD = "it's a \"secret\", isn't it?"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
REAUTHENTICATION_MS = 3_000
"""How long a login over SASL_SSL holds."""

Acl = tuple[ResourceType, str, AclOperation]

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER
READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE
DESCRIBE_CONFIGS = AclOperation.DESCRIBE_CONFIGS
ALL_NAMES = "*"
CLUSTER_NAME = "kafka-cluster"
NEEDED: tuple[Acl, ...] = (
    (TOPIC, ALL_NAMES, READ),
    (TOPIC, ALL_NAMES, DESCRIBE_CONFIGS),
    (GROUP, ALL_NAMES, DESCRIBE),
    (CLUSTER, CLUSTER_NAME, DESCRIBE),
)
"""What docs/mirroring.md says that the mirror's user needs."""


class SecuredKafka(KafkaNode):
    """Its plaintext port is for the test itself, which may do everything there."""

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self.certificates = certificates
        self.ports = {name: free_port() for name in ("SASL", "SASLSSL", "SSL", "ELSEWHERE")}
        super().__init__(folder, version=KAFKA_4, settings={})

    def _kraft_settings(self) -> dict[str, str]:
        plain = super()._kraft_settings()
        more = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        protocols = "SASL:SASL_PLAINTEXT,SASLSSL:SASL_SSL,SSL:SSL,ELSEWHERE:SSL"
        own = self.certificates
        every = {
            **plain,
            "listeners": f"{plain['listeners']},{more}",
            "advertised.listeners": f"{plain['advertised.listeners']},{more}",
            "listener.security.protocol.map": f"{plain['listener.security.protocol.map']},"
            + protocols,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(own.trusted),
            "ssl.principal.mapping.rules": "RULE:^.*CN=([a-z]+).*$/$1/",
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.elsewhere.ssl.keystore.type": "PEM",
            "listener.name.elsewhere.ssl.keystore.location": str(own.elsewhere),
        }
        for listener in ("sasl", "saslssl"):
            prefix = f"listener.name.{listener}"
            every[f"{prefix}.plain.sasl.jaas.config"] = in_properties(
                f"{PLAIN_MODULE} required user_{USER}={_quoted(PASSWORD)};"
            )
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                every[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
        for mechanism in ("plain", "scram-sha-256", "scram-sha-512"):
            key = f"listener.name.saslssl.{mechanism}.connections.max.reauth.ms"
            every[key] = str(REAUTHENTICATION_MS)
        return every

    def address_of(self, listener: str) -> str:
        """Where clients find that listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def set_password(self, password: str | None, *, user: str = USER) -> None:
        """Set what a user logs in with by SCRAM; None: he cannot any more."""
        admin = self.admin()
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted: UserScramCredentialUpsertion | UserScramCredentialDeletion
            if password is None:
                wanted = UserScramCredentialDeletion(user, mechanism)
            else:
                info = ScramCredentialInfo(mechanism, 4_096)
                wanted = UserScramCredentialUpsertion(user, info, password.encode())
            admin.alter_user_scram_credentials([wanted])[user].result(timeout=60)

    def allow(self, acls: Iterable[Acl], *, user: str = USER) -> None:
        """Let a user do that, and return when the broker goes by it."""
        admin, asked = self.admin(), list(acls)
        for done in admin.create_acls([_binding(acl, user) for acl in asked]).values():
            done.result(timeout=60)
        wait_until(lambda: all(self._has(acl, user) for acl in asked), f"{user} has {asked}")

    def forbid(self, acls: Iterable[Acl], *, user: str = USER) -> None:
        """Take back what was allowed, and return when the broker goes by it."""
        admin, asked = self.admin(), list(acls)
        filters = [_binding_filter(acl, user) for acl in asked]
        for done in admin.delete_acls(filters).values():
            assert done.result(timeout=60), "there was nothing to take back"
        wait_until(lambda: not any(self._has(acl, user) for acl in asked), f"{user} lost {asked}")

    def _has(self, acl: Acl, user: str) -> bool:
        """Whether the broker knows it: its controller tells it a moment later."""
        admin = self.admin()
        return bool(admin.describe_acls(_binding_filter(acl, user)).result(timeout=60))


class OldSecuredKafka(KafkaNode):
    """Kafka 2.1 with a port that wants a login by PLAIN."""

    def __init__(self, folder: Path) -> None:
        self.sasl_port = free_port()
        super().__init__(folder, version=KAFKA_2_1)

    def _zookeeper_settings(self) -> dict[str, str]:
        plain = super()._zookeeper_settings()
        login = f"{PLAIN_MODULE} required user_{USER}={_quoted(PASSWORD)};"
        return {
            **plain,
            "listeners": f"{plain['listeners']},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": in_properties(login),
        }


def reaching(
    kafka: SecuredKafka,
    listener: str,
    *,
    mechanism: str = "PLAIN",
    user: str = USER,
    password: str = PASSWORD,
) -> dict[str, str]:
    """Give the settings of a client that comes in by a listener, as a properties file has them."""
    every = {"bootstrap.servers": kafka.address_of(listener)}
    if listener.startswith("SASL"):
        every["security.protocol"] = "SASL_SSL" if listener.endswith("SSL") else "SASL_PLAINTEXT"
        every["sasl.mechanism"] = mechanism
        every["sasl.jaas.config"] = in_properties(jaas(password, user=user, mechanism=mechanism))
    else:
        every["security.protocol"] = "SSL"
        every["ssl.keystore.location"] = str(kafka.certificates.client)
    if listener.endswith("SSL"):
        every["ssl.truststore.location"] = str(kafka.certificates.trusted)
    return every


def as_keywords(settings: Mapping[str, str]) -> dict[str, str]:
    """Give settings as ``Mirror.create`` takes them."""
    return {key.replace(".", "_"): value for key, value in settings.items()}


def jaas(password: str = PASSWORD, *, user: str = USER, mechanism: str = "PLAIN") -> str:
    """Give the value of sasl.jaas.config."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return f"{module} required username={_quoted(user)} password={_quoted(password)};"


def in_properties(value: str) -> str:
    """Write a value so that it comes out of a properties file as it is."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _binding(acl: Acl, user: str) -> AclBinding:
    kind, name, operation = acl
    allow = AclPermissionType.ALLOW
    literal = ResourcePatternType.LITERAL
    return AclBinding(kind, name, literal, f"User:{user}", "*", operation, allow)


def _binding_filter(acl: Acl, user: str) -> AclBindingFilter:
    kind, name, operation = acl
    allow = AclPermissionType.ALLOW
    literal = ResourcePatternType.LITERAL
    return AclBindingFilter(kind, name, literal, f"User:{user}", "*", operation, allow)
