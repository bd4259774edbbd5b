"""Which ACLs of the source are not here, and how that is told."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from support.answering_broker import AnsweringBroker, answering_broker
from support.commands import run_command
from support.mirror_answers import TOPIC, describes, lists_mirror, partition_of
from twinlog.cli.cluster import cluster_of
from twinlog.cli.mirror_acls import AclDifference, acl_difference
from twinlog.mirroring.acl_sync import AclBinding
from twinlog.wire.messages import acls, configs, groups

READ = AclBinding(2, "orders", 3, "User:ann", "*", 3, 3)
DENIED = AclBinding(2, "orders", 4, "User:bob", "*", 4, 2)
NO_AUTHORIZER = acls.DescribeAclsResponse(
    error_code=54, error_message="No Authorizer is configured.", resources=()
)
REFUSED = acls.DescribeAclsResponse(error_code=31, error_message="you may not", resources=())


def answer_of(*bindings: AclBinding) -> acls.DescribeAclsResponse:
    return acls.DescribeAclsResponse(
        resources=tuple(
            acls.DescribedAclResource(
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                pattern_type=one.pattern_type,
                acls=(
                    acls.AclDescription(
                        principal=one.principal,
                        host=one.host,
                        operation=one.operation,
                        permission_type=one.permission_type,
                    ),
                ),
            )
            for one in bindings
        )
    )


@pytest.fixture
def source() -> Iterator[AnsweringBroker]:
    with answering_broker() as running:
        yield running


@pytest.fixture
def here(broker: AnsweringBroker) -> AnsweringBroker:
    includes(broker, "*")
    return broker


def includes(broker: AnsweringBroker, rules: str) -> None:
    include = configs.DescribedConfig(name="acls.include", value=rules)
    found = configs.DescribedResource(resource_type=64, resource_name="m", configs=(include,))
    broker.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=(found,)))


async def compared(here: AnsweringBroker, source: AnsweringBroker) -> AclDifference:
    def options(broker: AnsweringBroker) -> SimpleNamespace:
        return SimpleNamespace(bootstrap_server=broker.bootstrap, command_config=None)

    async with cluster_of(options(here)) as cluster, cluster_of(options(source)) as other:  # type: ignore[arg-type]
        return await acl_difference(cluster, other, "m")


async def test_what_the_rules_take_and_is_not_here_is_missing(
    here: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.on(acls.DESCRIBE_ACLS, answer_of(READ, DENIED))
    here.on(acls.DESCRIBE_ACLS, answer_of(READ))
    found = await compared(here, source)
    assert found == AclDifference(at_source=True, here=True, missing=(DENIED,))
    assert found.is_loss
    assert found.lines() == [
        "this cluster has not the ACL DENY User:bob WRITE on PREFIXED TOPIC orders from *"
    ]
    includes(here, "*;*;READ")
    assert not (await compared(here, source)).is_loss


@pytest.mark.parametrize("knows_the_request", [True, False])
async def test_a_cluster_without_an_authorizer_lists_what_it_cannot_have(
    here: AnsweringBroker, source: AnsweringBroker, *, knows_the_request: bool
) -> None:
    source.on(acls.DESCRIBE_ACLS, answer_of(READ, DENIED))
    if knows_the_request:
        here.on(acls.DESCRIBE_ACLS, NO_AUTHORIZER)
    found = await compared(here, source)
    assert found.missing == (READ, DENIED)
    assert not found.is_loss
    assert found.lines() == [
        "this cluster has no authorizer: 2 ACLs of the source are not here (--json lists them)"
    ]
    assert [each["operation"] for each in found.as_json()["missing"]] == ["READ", "WRITE"]


async def test_a_source_without_an_authorizer_has_nothing_to_tell(
    here: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.on(acls.DESCRIBE_ACLS, NO_AUTHORIZER)
    here.on(acls.DESCRIBE_ACLS, answer_of(READ))
    found = await compared(here, source)
    assert (found.at_source, found.lines(), found.is_loss) == (False, [], False)


async def test_who_may_not_look_is_told_and_that_counts_where_acls_do(
    here: AnsweringBroker, source: AnsweringBroker
) -> None:
    source.on(acls.DESCRIBE_ACLS, REFUSED)
    found = await compared(here, source)
    assert found.lines() == [
        "ACLs could not be compared: ACLs cannot be described: you may not "
        "(CLUSTER_AUTHORIZATION_FAILED)."
    ]
    assert not found.is_loss
    here.on(acls.DESCRIBE_ACLS, answer_of())
    assert (await compared(here, source)).is_loss


def test_the_plan_of_a_stop_tells_it(here: AnsweringBroker, source: AnsweringBroker) -> None:
    lists_mirror(here, source)
    describes(here, [partition_of("MIRRORING", source_offset=0, destination_offset=0)])
    for broker in (here, source):
        broker.logs[TOPIC, 0] = b""
    source.on(groups.LIST_GROUPS, groups.ListGroupsResponse(groups=()))
    topic = configs.DescribedResource(resource_type=2, resource_name=TOPIC, configs=())
    source.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=(topic,)))
    source.on(acls.DESCRIBE_ACLS, answer_of(READ))
    at = ["--bootstrap-server", here.bootstrap, "--mirror", "m", "--topics", TOPIC]
    ran = run_command(["mirrors", *at, "--stop", "--plan"])
    assert "this cluster has no authorizer: 1 ACL of the source is not here" in ran.out
    told = run_command(["mirrors", *at, "--stop", "--plan", "--json"]).out
    assert '"principal": "User:ann"' in told
