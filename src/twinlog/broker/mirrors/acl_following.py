"""Looks at the ACLs of a mirror's source, and says what of them this cluster does not have.

This broker has no authorizer yet: nothing is written here, and what would be is told instead.
"""

from typing import Final

from twinlog.broker.mirror_board import ACLS
from twinlog.broker.mirrors.permissions import DESCRIBE, lacking
from twinlog.broker.mirrors.source import SourceCluster
from twinlog.broker.mirrors.work import MirrorWork
from twinlog.config.mirror import ACLS_INCLUDE
from twinlog.mirroring.acl_sync import (
    EVERY_ACL,
    AclBinding,
    bindings_of,
    parse_rules,
    plan_acls,
)
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.network.peers import raise_for
from twinlog.wire.messages.acls import DESCRIBE_ACLS

NOTHING_INCLUDED: Final = "acls.include is empty"
NO_AUTHORIZER: Final = "the source has no authorizer"


class AclFollowing:
    """The ACLs of one mirror."""

    def __init__(self, work: MirrorWork) -> None:
        self._work: Final = work

    async def sync(self) -> None:
        """Do one round. Raises PeerUnavailable and ApiError."""
        notes = self._work.status.task_notes
        include: tuple[str, ...] = self._work.settings[ACLS_INCLUDE]
        if not include:
            notes[ACLS] = NOTHING_INCLUDED
            return
        there = await source_acls(self._work.source)
        if there is None:
            notes[ACLS] = NO_AUTHORIZER
            return
        plan = plan_acls(there, (), (), parse_rules(include))
        notes[ACLS] = not_here(len(plan.add))


def not_here(count: int) -> str:
    """Say what is missing in a cluster that cannot have it."""
    acls = "1 ACL of the source is" if count == 1 else f"{count} ACLs of the source are"
    return f"this cluster has no authorizer: {acls} not here"


async def source_acls(source: SourceCluster) -> frozenset[AclBinding] | None:
    """Give all ACLs of a source; None when it has no authorizer, or knows no ACLs at all.

    Raises PeerUnavailable, and ApiError when it may not be asked.
    """
    try:
        response = await source.peers.ask_any(DESCRIBE_ACLS, EVERY_ACL)
    except ApiError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None
    if response.error_code == ErrorCode.SECURITY_DISABLED:
        return None
    why = lacking(source.security, response.error_code, DESCRIBE) or response.error_message
    raise_for(response.error_code, "ACLs of the source", why)
    return bindings_of(response)
