"""Which ACLs of a mirror's source this cluster does not have, and how that is told."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from twinlog.cli.cluster import Cluster
from twinlog.cli.failures import CliError, expect_ok
from twinlog.cli.mirror_asking import patterns_of
from twinlog.config.mirror import ACLS_INCLUDE
from twinlog.mirroring.acl_sync import (
    EVERY_ACL,
    AclBinding,
    bindings_of,
    included,
    parse_rules,
)
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.wire.messages.acls import DESCRIBE_ACLS


@dataclass(frozen=True, slots=True)
class AclDifference:
    """What a mirror's rules take of the source's ACLs, and is not here.

    ``at_source`` and ``here`` tell whether there is an authorizer; None is not known.
    """

    at_source: bool | None = None
    here: bool | None = None
    missing: Sequence[AclBinding] = ()
    trouble: str | None = None
    """Why it could not be looked at, or not to the end."""

    @property
    def is_loss(self) -> bool:
        """Whether a stop would leave the ACLs out of step.

        A cluster without an authorizer has none at any time: that is told, and no loss of a stop.
        """
        return bool(self.here) and (bool(self.missing) or self.trouble is not None)

    def lines(self) -> list[str]:
        """Say what is to be known of it."""
        if self.trouble is not None:
            return [f"ACLs could not be compared: {self.trouble}"]
        if not self.missing:
            return []
        if self.here:
            return [f"this cluster has not the ACL {binding}" for binding in self.missing]
        some = "1 ACL of the source is" if len(self.missing) == 1 else f"{self._many} are"
        return [f"this cluster has no authorizer: {some} not here (--json lists them)"]

    @property
    def _many(self) -> str:
        return f"{len(self.missing)} ACLs of the source"

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "sourceHasAuthorizer": self.at_source,
            "hasAuthorizer": self.here,
            "missing": [binding.as_words() for binding in self.missing],
            "trouble": self.trouble,
        }


async def acl_difference(cluster: Cluster, source: Cluster, mirror: str) -> AclDifference:
    """Compare the ACLs of both clusters by the mirror's own rules."""
    has_authorizer: bool | None = None
    try:
        here = await _acls_of(cluster)
        has_authorizer = here is not None
        there = await _acls_of(source)
        (include,) = await patterns_of(cluster, mirror, (ACLS_INCLUDE,))
    except (CliError, ApiError) as error:
        return AclDifference(here=has_authorizer, trouble=str(error))
    missing = included(there or (), parse_rules(include)) - (here or frozenset())
    return AclDifference(there is not None, has_authorizer, _in_order(missing))


async def _acls_of(cluster: Cluster) -> frozenset[AclBinding] | None:
    """Give all ACLs of a cluster; None when it has no authorizer, or knows no ACLs at all."""
    try:
        answer = await cluster.ask(DESCRIBE_ACLS, EVERY_ACL)
    except ApiError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        return None
    expect_ok(answer.error_code, answer.error_message, doing="ACLs cannot be described")
    return bindings_of(answer)


def _in_order(bindings: Iterable[AclBinding]) -> tuple[AclBinding, ...]:
    return tuple(sorted(bindings))
