"""A mirror adds what is missing, and takes away only what mirrors added."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.mirroring.acl_sync import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSION_TYPES,
    RESOURCE_TYPES,
    AclBinding,
    AclPlan,
    bindings_of,
    included,
    parse_rules,
    plan_acls,
)
from twinlog.model.errors import SettingsError
from twinlog.wire.messages.acls import (
    AclDescription,
    DescribeAclsResponse,
    DescribedAclResource,
)

READ = AclBinding(2, "orders", 3, "User:ann", "*", 3, 3)
WRITE = replace(READ, operation=4)
DENIED = replace(READ, permission_type=2)
PREFIXED = replace(READ, pattern_type=4)
GROUP = replace(READ, resource_type=3, resource_name="billing", principal="User:bob")
OF_A_MIRROR = replace(READ, resource_type=8)
ALL = parse_rules(["*"])

_bindings = st.frozensets(
    st.builds(
        AclBinding,
        resource_type=st.sampled_from([*RESOURCE_TYPES.values(), 8, 0]),
        resource_name=st.sampled_from(["a", "b"]),
        pattern_type=st.sampled_from([*PATTERN_TYPES.values(), 1]),
        principal=st.sampled_from(["User:x", "User:y"]),
        host=st.just("*"),
        operation=st.sampled_from([3, 4, 99]),
        permission_type=st.sampled_from([*PERMISSION_TYPES.values(), 0]),
    ),
    max_size=8,
)
_includes = st.sampled_from([("*",), (), ("TOPIC",), ("*;a", "GROUP;b;READ"), ("*;*;*;DENY",)])


def test_what_is_missing_is_added_as_it_is_whatever_it_allows_or_denies() -> None:
    there = {READ, WRITE, DENIED, PREFIXED, GROUP}
    plan = plan_acls(there, {READ}, (), ALL)
    assert plan == AclPlan(frozenset(there - {READ}), frozenset(), frozenset(there - {READ}))


def test_what_the_source_dropped_goes_only_where_the_mirror_had_added_it() -> None:
    plan = plan_acls((), {READ, WRITE}, {READ}, ALL)
    assert plan == AclPlan(remove=frozenset({READ}))


def test_acls_of_mirrors_and_of_what_is_not_understood_are_never_touched() -> None:
    strange = replace(READ, operation=99)
    assert plan_acls({OF_A_MIRROR, strange}, (), (), ALL) == AclPlan()
    plan = plan_acls((), {OF_A_MIRROR, strange}, {OF_A_MIRROR, strange}, ALL)
    assert not plan.remove


def test_a_binding_that_is_included_no_more_stays_until_the_source_drops_it() -> None:
    none = parse_rules([])
    assert plan_acls({READ}, {READ}, {READ}, none) == AclPlan(owned=frozenset({READ}))
    assert plan_acls((), {READ}, {READ}, none) == AclPlan(remove=frozenset({READ}))


def test_what_an_operator_removed_here_comes_back_while_the_source_has_it() -> None:
    plan = plan_acls({READ}, (), {READ}, ALL)
    assert plan == AclPlan(add=frozenset({READ}), owned=frozenset({READ}))


def test_a_binding_of_two_mirrors_goes_with_the_last_source_that_had_it() -> None:
    second = plan_acls({READ}, {READ}, (), ALL, owned_by_others={READ})
    assert second == AclPlan(owned=frozenset({READ}))
    first = plan_acls((), {READ}, {READ}, ALL, owned_by_others=second.owned)
    assert first == AclPlan()
    assert plan_acls((), {READ}, {READ}, ALL).remove == {READ}


@given(_bindings, _bindings, _bindings, _bindings, _includes)
def test_a_plan_never_adds_ghosts_and_never_removes_what_is_not_a_mirrors(
    at_source: frozenset[AclBinding],
    here: frozenset[AclBinding],
    owned: frozenset[AclBinding],
    others: frozenset[AclBinding],
    include: tuple[str, ...],
) -> None:
    rules = parse_rules(include)
    plan = plan_acls(at_source, here, owned, rules, others)
    assert plan.add <= included(at_source, rules) - here
    assert plan.remove <= (here & owned) - at_source - others
    assert not any(b.resource_type in (0, 8) for b in plan.add | plan.remove)
    after = (here | plan.add) - plan.remove
    assert included(at_source, rules) <= after
    assert plan.owned <= after
    assert here - owned <= after
    again = plan_acls(at_source, after, plan.owned, rules, others)
    assert again == AclPlan(owned=plan.owned), "a second round has nothing to do"


@given(st.lists(st.tuples(st.sampled_from("pq"), _bindings), max_size=8), _bindings)
def test_two_mirrors_never_undo_each_others_work(
    rounds: list[tuple[str, frozenset[AclBinding]]], local: frozenset[AclBinding]
) -> None:
    sources = {"p": frozenset[AclBinding](), "q": frozenset[AclBinding]()}
    owned = dict(sources)
    here = local
    for name, now in rounds:
        sources[name] = now
        other = owned["q" if name == "p" else "p"]
        plan = plan_acls(now, here, owned[name], ALL, other)
        here = (here | plan.add) - plan.remove
        owned[name] = plan.owned
        assert local <= here
    for name in "pqpq":
        plan = plan_acls(sources[name], here, owned[name], ALL, owned["q" if name == "p" else "p"])
        here = (here | plan.add) - plan.remove
        owned[name] = plan.owned
    assert here == local | included(sources["p"] | sources["q"], ALL)


@pytest.mark.parametrize(
    ("rule", "taken"),
    [
        ("*", {READ, WRITE, DENIED, PREFIXED, GROUP}),
        ("TOPIC", {READ, WRITE, DENIED, PREFIXED}),
        ("topic;ord.*;read", {READ, DENIED, PREFIXED}),
        ("*;*;*;deny", {DENIED}),
        ("*;*;*;*;User:b.*", {GROUP}),
        ("Group;bill", set()),
        ("TransactionalId", set()),
        ("* ; orders ; Write", {WRITE}),
    ],
)
def test_a_rule_takes_what_all_of_its_fields_match(rule: str, taken: set[AclBinding]) -> None:
    every = {READ, WRITE, DENIED, PREFIXED, GROUP, OF_A_MIRROR}
    assert included(every, parse_rules([rule])) == taken


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("TOPICS", "its resource type 'TOPICS' is none of TOPIC, GROUP"),
        ("TOPIC;(", "its resource name '(' is not a regular expression"),
        ("TOPIC;a;REED", "its operation 'REED' is none of ALL, READ"),
        ("TOPIC;a;READ;MAYBE", "its permission type 'MAYBE' is none of DENY, ALLOW and *"),
        ("TOPIC;a;READ;ALLOW;[", "its principal '[' is not a regular expression"),
        ("TOPIC;a;READ;ALLOW;b;c", "it has 6 fields; there are 5: resource type;resource name"),
        ("TOPIC;;READ", "its resource name is empty; * is any"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named_with_what_is_wrong(rule: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_rules(["*", rule])
    assert f"the rule {rule!r} cannot be read: {told}" in str(caught.value)


def test_every_binding_of_an_answer_is_read_and_said_in_kafkas_words() -> None:
    acls = tuple(
        AclDescription(principal="User:ann", host="*", operation=operation, permission_type=3)
        for operation in (3, 4)
    )
    resource = DescribedAclResource(
        resource_type=2, resource_name="orders", pattern_type=3, acls=acls
    )
    assert bindings_of(DescribeAclsResponse(resources=(resource,))) == {READ, WRITE}
    assert str(READ) == "ALLOW User:ann READ on LITERAL TOPIC orders from *"
    assert OF_A_MIRROR.as_words()["resourceType"] == "8"
    assert set(OPERATIONS.values()) == set(range(2, 16))
