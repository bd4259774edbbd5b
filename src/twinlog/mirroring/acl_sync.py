"""ACLs at the source and here -> what a mirror adds and what it takes away again.

A mirror takes away only what a mirror added: a binding that was here before, or that somebody
adds here, is nobody's to remove. Several mirrors may claim the same binding; it goes when the last
source has dropped it. What is not understood (a resource type, an operation or a pattern of a
later Kafka, CLUSTER_MIRROR among them) is neither added nor removed.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from twinlog.model.errors import SettingsError
from twinlog.wire.messages.acls import DescribeAclsRequest, DescribeAclsResponse

RESOURCE_TYPES: Final = {
    "TOPIC": 2,
    "GROUP": 3,
    "CLUSTER": 4,
    "TRANSACTIONAL_ID": 5,
    "DELEGATION_TOKEN": 6,
    "USER": 7,
}
PATTERN_TYPES: Final = {"LITERAL": 3, "PREFIXED": 4}
OPERATIONS: Final = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
    "CREATE_TOKENS": 13,
    "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}
PERMISSION_TYPES: Final = {"DENY": 2, "ALLOW": 3}
ANY: Final = "*"
FIELDS: Final = ("resource type", "resource name", "operation", "permission type", "principal")
EVERY_ACL: Final = DescribeAclsRequest(
    resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
)
"""The question for all of a cluster's ACLs: 1 is ANY in each of these."""


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """Who may, or may not, do what to which resources; numbers are those of the protocol."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @property
    def is_understood(self) -> bool:
        """Whether each of its numbers is one that a rule can name and an authorizer can keep."""
        return (
            self.resource_type in _NAMES["resource"]
            and self.pattern_type in _NAMES["pattern"]
            and self.operation in _NAMES["operation"]
            and self.permission_type in _NAMES["permission"]
        )

    def as_words(self) -> dict[str, str]:
        """Give each of its parts by name, in Kafka's words; a number that has none as it is."""
        return {
            "resourceType": _word("resource", self.resource_type),
            "resourceName": self.resource_name,
            "patternType": _word("pattern", self.pattern_type),
            "principal": self.principal,
            "host": self.host,
            "operation": _word("operation", self.operation),
            "permissionType": _word("permission", self.permission_type),
        }

    def __str__(self) -> str:
        """Say it in a line."""
        words = self.as_words()
        return (
            f"{words['permissionType']} {self.principal} {words['operation']} on "
            f"{words['patternType']} {words['resourceType']} {self.resource_name} "
            f"from {self.host}"
        )


@dataclass(frozen=True, slots=True)
class AclRule:
    """One rule of ``acls.include``; None is any."""

    resource_type: int | None = None
    resource_name: re.Pattern[str] | None = None
    operation: int | None = None
    permission_type: int | None = None
    principal: re.Pattern[str] | None = None

    def includes(self, binding: AclBinding) -> bool:
        """Tell whether it takes a binding."""
        return (
            self.resource_type in (None, binding.resource_type)
            and self.operation in (None, binding.operation)
            and self.permission_type in (None, binding.permission_type)
            and _matches(self.resource_name, binding.resource_name)
            and _matches(self.principal, binding.principal)
        )


@dataclass(frozen=True, slots=True)
class AclPlan:
    """What brings the ACLs here in step with the source, and what is the mirror's afterwards."""

    add: frozenset[AclBinding] = frozenset()
    remove: frozenset[AclBinding] = frozenset()
    owned: frozenset[AclBinding] = frozenset()


def parse_rules(texts: Iterable[str]) -> tuple[AclRule, ...]:
    """Read ``acls.include``. Raises SettingsError that names the rule and what is wrong with it."""
    return tuple(map(_rule, texts))


def included(bindings: Iterable[AclBinding], include: Sequence[AclRule]) -> frozenset[AclBinding]:
    """Give the bindings that a mirror with these rules takes."""
    return frozenset(
        binding
        for binding in bindings
        if binding.is_understood and any(rule.includes(binding) for rule in include)
    )


def plan_acls(
    at_source: Collection[AclBinding],
    here: Collection[AclBinding],
    owned: Collection[AclBinding],
    include: Sequence[AclRule],
    owned_by_others: Collection[AclBinding] = frozenset(),
) -> AclPlan:
    """Compare all ACLs of both sides.

    ``owned`` is what this mirror added or claimed before, ``owned_by_others`` the same of other
    mirrors. A binding that ``include`` takes no more stays as long as the source has it.
    """
    there, present = frozenset(at_source), frozenset(here)
    mine, others = frozenset(owned), frozenset(owned_by_others)
    wanted = included(there, include)
    add = wanted - present
    given_up = frozenset(one for one in mine if one.is_understood) - there
    return AclPlan(
        add=add,
        remove=(given_up & present) - others,
        owned=add | ((mine - given_up) & present) | (wanted & present & others),
    )


def bindings_of(response: DescribeAclsResponse) -> frozenset[AclBinding]:
    """Give the bindings that a broker tells of."""
    return frozenset(
        AclBinding(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            pattern_type=resource.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    )


_NAMES: Final = {
    kind: {number: word for word, number in words.items()}
    for kind, words in (
        ("resource", RESOURCE_TYPES),
        ("pattern", PATTERN_TYPES),
        ("operation", OPERATIONS),
        ("permission", PERMISSION_TYPES),
    )
}


def _word(kind: str, number: int) -> str:
    return _NAMES[kind].get(number, str(number))


def _matches(pattern: re.Pattern[str] | None, text: str) -> bool:
    return pattern is None or pattern.fullmatch(text) is not None


def _rule(text: str) -> AclRule:
    given = [field.strip() for field in text.split(";")]
    if len(given) > len(FIELDS):
        raise _wrong(text, f"it has {len(given)} fields; there are {len(FIELDS)}: {_grammar()}")
    for field, name in zip(given, FIELDS, strict=False):
        if not field:
            raise _wrong(text, f"its {name} is empty; {ANY} is any")
    fields = [*given, *(ANY for _ in FIELDS[len(given) :])]
    return AclRule(
        resource_type=_number(text, "resource type", fields[0], RESOURCE_TYPES),
        resource_name=_pattern(text, "resource name", fields[1]),
        operation=_number(text, "operation", fields[2], OPERATIONS),
        permission_type=_number(text, "permission type", fields[3], PERMISSION_TYPES),
        principal=_pattern(text, "principal", fields[4]),
    )


def _number(rule: str, name: str, field: str, words: dict[str, int]) -> int | None:
    if field == ANY:
        return None
    known = {word.replace("_", ""): number for word, number in words.items()}
    number = known.get(field.upper().replace("_", ""))
    if number is None:
        raise _wrong(rule, f"its {name} {field!r} is none of {', '.join(words)} and {ANY}")
    return number


def _pattern(rule: str, name: str, field: str) -> re.Pattern[str] | None:
    if field == ANY:
        return None
    try:
        return re.compile(field)
    except re.error as error:
        raise _wrong(rule, f"its {name} {field!r} is not a regular expression: {error}") from error


def _wrong(rule: str, why: str) -> SettingsError:
    return SettingsError(f"acls.include: the rule {rule!r} cannot be read: {why}")


def _grammar() -> str:
    return ";".join(FIELDS)
