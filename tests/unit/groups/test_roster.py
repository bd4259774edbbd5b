import pytest

from twinlog.coordination.outcome import Ticket
from twinlog.groups.commands import ProtocolOffer
from twinlog.groups.roster import Member, Roster


def member(name: str, protocols: str = "range", instance_id: str | None = None) -> Member:
    return Member(
        member_id=name,
        instance_id=instance_id,
        client_id=name,
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocols=offers(protocols),
    )


def offers(names: str) -> tuple[ProtocolOffer, ...]:
    return tuple(ProtocolOffer(name, name.encode()) for name in names.split())


def roster(*members: Member) -> Roster:
    found = Roster()
    for each in members:
        found.add(each)
    return found


@pytest.mark.parametrize(
    ("wishes", "chosen"),
    [
        (["a b", "b a", "b a"], "b"),
        (["a b", "b a"], "a"),
        (["a b c", "c b", "b c"], "b"),
        (["a b", "b"], "b"),
    ],
)
def test_members_vote_for_what_they_like_best_of_what_all_of_them_know(
    wishes: list[str], chosen: str
) -> None:
    found = roster(*(member(f"m{n}", wish) for n, wish in enumerate(wishes)))
    assert found.select_protocol() == chosen


def test_a_newcomer_must_share_a_protocol_with_everybody() -> None:
    found = roster(member("a", "x y"), member("b", "y z"))
    assert found.supports(offers("y"))
    assert not found.supports(offers("x z"))
    assert not found.supports(())
    assert Roster().supports(offers("anything"))


def test_the_first_member_leads_and_the_next_one_follows_it() -> None:
    a, b = member("a"), member("b")
    found = roster(a, b)
    assert found.leader == "a"
    found.remove(a)
    assert found.leader == "b"
    found.remove(b)
    assert found.leader is None


def test_only_who_has_joined_can_lead() -> None:
    a, b = member("a"), member("b")
    found = roster(a, b)
    assert not found.elect_joined_leader()
    b.join_ticket = Ticket(1)
    assert found.elect_joined_leader()
    assert found.leader == "b"


def test_a_static_member_keeps_its_place_and_the_lead_under_a_new_id() -> None:
    a = member("a", instance_id="A")
    found = roster(a, member("b"))
    found.rename(a, "a2")
    assert list(found.members) == ["a2", "b"]
    assert found.instances == {"A": "a2"}
    assert found.leader == "a2"


def test_members_take_the_order_they_are_given() -> None:
    found = roster(member("a"), member("b"))
    found.reorder(["b", "a"])
    assert list(found.members) == ["b", "a"]
    with pytest.raises(AssertionError):
        found.reorder(["b"])


def test_everybody_has_joined_only_when_no_id_is_still_out() -> None:
    a = member("a")
    found = roster(a)
    a.join_ticket = Ticket(1)
    found.pending.add("b")
    assert not found.has_everybody_joined
    found.add(member("b"))
    assert found.pending == set()
    assert not found.has_everybody_joined
    found.members["b"].join_ticket = Ticket(2)
    assert found.has_everybody_joined
