"""The ACLs of a source are looked at, and what is not here is told: nothing is written."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from support.scripted_source import ScriptedSource, scripted_source
from twinlog.broker.mirror_board import ACLS, MirrorStatus
from twinlog.broker.mirrors.acl_following import AclFollowing, not_here
from twinlog.broker.mirrors.source import SourceCluster, checked_settings
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import BrokerId
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.messages.acls import (
    DESCRIBE_ACLS,
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribedAclResource,
)


class Followed:
    """A source that tells of ACLs, and the mirror that looks at it."""

    def __init__(self, source: ScriptedSource, **config: str) -> None:
        given = {key.replace("_", "."): value for key, value in config.items()}
        settings = checked_settings({"bootstrap.servers": str(source.address), **given})
        self.cluster = SourceCluster("m", settings, BrokerId(1), 0.5)
        self.status = MirrorStatus()
        work: Any = SimpleNamespace(status=self.status, settings=settings, source=self.cluster)
        self.following = AclFollowing(work)

    async def note(self) -> str:
        """Do a round; give what is noted of it."""
        await self.following.sync()
        return self.status.task_notes[ACLS]


@pytest.fixture
async def source() -> AsyncIterator[ScriptedSource]:
    async with scripted_source() as running:
        yield running


def tells(source: ScriptedSource, *operations: int, error: int = 0) -> None:
    acls = tuple(
        AclDescription(principal="User:a", host="*", operation=operation, permission_type=3)
        for operation in operations
    )
    resource = DescribedAclResource(resource_type=2, resource_name="t", acls=acls)

    def answer(request: DescribeAclsRequest, version: int) -> DescribeAclsResponse:
        return DescribeAclsResponse(error_code=error, resources=() if error else (resource,))

    source.on(DESCRIBE_ACLS, answer)


async def test_what_the_rules_take_is_counted(source: ScriptedSource) -> None:
    tells(source, 3, 4)
    followed = Followed(source, acls_include="*;*;READ")
    assert await followed.note() == not_here(1)
    tells(source, 3, 4, 8)
    assert await Followed(source).note() == not_here(3)
    assert "3 ACLs of the source are not here" in not_here(3)


async def test_a_source_without_an_authorizer_is_no_failure(source: ScriptedSource) -> None:
    tells(source, error=ErrorCode.SECURITY_DISABLED)
    assert await Followed(source).note() == "the source has no authorizer"


async def test_a_source_that_does_not_know_the_request_has_no_acls() -> None:
    async with scripted_source(ranges={ApiKey.METADATA: (0, 9)}) as source:
        assert await Followed(source).note() == "the source has no authorizer"


async def test_who_may_not_look_fails_with_the_source_s_words(source: ScriptedSource) -> None:
    tells(source, error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="ACLs of the source: CLUSTER_AUTHORIZATION_FAILED"):
        await Followed(source).following.sync()


async def test_nothing_is_asked_where_nothing_is_included(source: ScriptedSource) -> None:
    followed = Followed(source, acls_include="")
    assert await followed.note() == "acls.include is empty"


def test_a_rule_that_cannot_be_read_is_refused_with_the_mirror() -> None:
    with pytest.raises(ApiError, match="the rule 'TOPIK' cannot be read"):
        checked_settings({"bootstrap.servers": "h:1", "acls.include": "*,TOPIK"})
