"""The ACLs of a source with an authorizer are seen, and what is not here is told: no more."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from support.cluster_admin import admin_of
from support.kafka_install import KAFKA_4, require
from support.kafka_node import KafkaNode
from support.mirror import Mirror, twinlog_command
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """Run a Kafka that keeps ACLs, and lets everybody in who has none."""
    require(KAFKA_4)
    node = KafkaNode(tmp_path_factory.mktemp("guarded"), settings=AUTHORIZED)
    try:
        node.start()
        yield node
    finally:
        node.stop()


def grant(
    node: KafkaNode, topic: str, operation: AclOperation, permission: AclPermissionType
) -> None:
    """Add an ACL for ann to a topic, or to all that begin so."""
    pattern = ResourcePatternType.PREFIXED if topic.endswith("-") else ResourcePatternType.LITERAL
    acl = AclBinding(ResourceType.TOPIC, topic, pattern, "User:ann", "*", operation, permission)
    admin = admin_of(node)
    for future in admin.create_acls([acl]).values():
        future.result(timeout=60)


def task(mirror: Mirror, name: str) -> dict[str, Any]:
    """Give what the operator is shown of a task."""
    told = json.loads(mirror.run("--describe", "--tasks", "--json", "--mirror", mirror.name).stdout)
    return next((row for row in told if row["task"] == name), {})


def await_task(mirror: Mirror, state: str, detail: str) -> None:
    """Return when the task of the ACLs is told so."""
    wait_until(
        lambda: (
            (task(mirror, "acls").get("state"), task(mirror, "acls").get("detail"))
            == (state, detail)
        ),
        lambda: f"{state} {detail}: {task(mirror, 'acls')}",
    )


def planned(mirror: Mirror, topic: str, *more: str) -> str:
    """Give what the plan of a stop prints."""
    at = ("--bootstrap-server", mirror.twinlog.bootstrap, "--mirror", mirror.name)
    return twinlog_command("mirrors", *at, "--stop", "--plan", "--topics", topic, *more).stdout


def test_acls_of_the_source_that_are_not_here_are_counted_and_listed(
    guarded: KafkaNode, watchful: TwinlogProcess, fresh: str
) -> None:
    guarded.create_topic(fresh)
    grant(guarded, fresh, AclOperation.READ, AclPermissionType.ALLOW)
    grant(guarded, f"{fresh}-", AclOperation.WRITE, AclPermissionType.DENY)
    mirror = Mirror(watchful, guarded, "guarded")
    mirror.create(acls_include="TOPIC;.*;*;*;User:ann")
    mirror.start([fresh])
    mirror.await_states([(fresh, 0)], "MIRRORING")
    missing = "this cluster has no authorizer: 2 ACLs of the source are not here"
    await_task(mirror, "NOT_APPLICABLE", missing)
    assert missing in planned(mirror, fresh)
    told = json.loads(planned(mirror, fresh, "--json"))["acls"]
    assert (told["sourceHasAuthorizer"], told["hasAuthorizer"]) == (True, False)
    assert sorted(
        (acl["permissionType"], acl["operation"], acl["patternType"], acl["resourceName"])
        for acl in told["missing"]
    ) == [("ALLOW", "READ", "LITERAL", fresh), ("DENY", "WRITE", "PREFIXED", f"{fresh}-")]
    grant(guarded, fresh, AclOperation.WRITE, AclPermissionType.ALLOW)
    await_task(mirror, "NOT_APPLICABLE", missing.replace("2", "3"))


def test_a_source_without_an_authorizer_is_told_as_such_and_is_no_error(
    kafka_4: KafkaNode, watchful: TwinlogProcess, fresh: str
) -> None:
    kafka_4.create_topic(fresh)
    mirror = Mirror(watchful, kafka_4, "open")
    mirror.create()
    mirror.start([fresh])
    mirror.await_states([(fresh, 0)], "MIRRORING")
    await_task(mirror, "NOT_APPLICABLE", "the source has no authorizer")
    told = json.loads(planned(mirror, fresh, "--json"))["acls"]
    assert (told["sourceHasAuthorizer"], told["missing"], told["trouble"]) == (False, [], None)
    assert "sync failed" not in watchful.server.log.read_text()
