"""A permission that is missing is named, with the command that gives it."""

import pytest

from twinlog.broker.mirrors.permissions import (
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    lacking,
    with_lacking,
)
from twinlog.config.client_security import ClientLogin, ClientSecurity, ClientTls
from twinlog.model.errors import ErrorCode

ME = ClientSecurity(login=ClientLogin("PLAIN", "me", "secret"))


@pytest.mark.parametrize(
    ("code", "operation", "name", "told"),
    [
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            READ,
            "orders",
            "User:me needs Read on topic orders there: kafka-acls.sh --add "
            "--allow-principal User:me --operation Read --topic orders",
        ),
        (
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            DESCRIBE,
            "g",
            "User:me needs Describe on group g there: kafka-acls.sh --add "
            "--allow-principal User:me --operation Describe --group g",
        ),
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            DESCRIBE,
            "",
            "User:me needs Describe on the cluster there: kafka-acls.sh --add "
            "--allow-principal User:me --operation Describe --cluster",
        ),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, READ, "orders", ""),
        (9_999, READ, "orders", ""),
    ],
)
def test_what_is_missing_is_told_with_its_fix(
    code: int, operation: str, name: str, told: str
) -> None:
    assert lacking(ME, code, operation, name) == told


def test_the_principal_of_a_certificate_is_its_clusters_to_name() -> None:
    security = ClientSecurity(tls=ClientTls(keystore_file="/k"))
    told = lacking(security, ErrorCode.TOPIC_AUTHORIZATION_FAILED, DESCRIBE_CONFIGS, "t")
    assert (
        told == "the principal of ssl.keystore's certificate needs DescribeConfigs on topic t there"
    )


def test_it_is_added_to_what_is_told_only_where_it_is_the_matter() -> None:
    denied, moved = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert with_lacking("a fetch", ME, moved, READ, "t") == "a fetch"
    assert with_lacking("a fetch", ME, denied, READ, "t").startswith("a fetch; User:me needs Read")
