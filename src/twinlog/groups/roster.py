"""The members of a classic group: who they are, what they can speak, who leads."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from twinlog.coordination.outcome import Ticket
from twinlog.groups.commands import ProtocolOffer


@dataclass(slots=True)
class Member:
    """One member; a ticket is set while its request waits for the others."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[ProtocolOffer, ...]
    assignment: bytes = b""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None
    is_new: bool = True
    """It has never yet been in a generation."""

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Give what the member said for ``protocol_name``; empty when it does not know it."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")


@dataclass(slots=True)
class Roster:
    """Members in the order they came; those with an instance id are static (KIP-345).

    Invariant: ``leader`` is a member, or None; ``instances`` names members only; a pending id
    (KIP-394: given out, not yet come back) is no member.
    """

    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    leader: str | None = None

    def __len__(self) -> int:
        """Give the number of members."""
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        """Give the members in the order they came; members may go meanwhile."""
        return iter(tuple(self.members.values()))

    @property
    def joining_count(self) -> int:
        """How many members wait for the rebalance to complete."""
        return sum(1 for member in self.members.values() if member.join_ticket is not None)

    @property
    def has_everybody_joined(self) -> bool:
        """True when no member is missing and no id is given out that has not come back."""
        return not self.pending and self.joining_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance may take: the slowest member decides."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def add(self, member: Member) -> None:
        """Take in a member; the first one leads."""
        assert member.member_id not in self.members, f"{member.member_id} is a member already"
        self.members[member.member_id] = member
        self.pending.discard(member.member_id)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: Member) -> None:
        """Let a member go; when it led, the one that came first leads."""
        del self.members[member.member_id]
        if member.instance_id is not None:
            self.instances.pop(member.instance_id, None)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member that came back its new id; it keeps its place, and the lead."""
        assert member.instance_id is not None, f"{member.member_id} is not static"
        was_leader = self.leader == member.member_id
        old_id, member.member_id = member.member_id, member_id
        self.members = {
            (member_id if key == old_id else key): value for key, value in self.members.items()
        }
        self.instances[member.instance_id] = member_id
        if was_leader:
            self.leader = member_id

    def reorder(self, member_ids: Iterable[str]) -> None:
        """Put the members in this order, which names each of them."""
        ordered = {member_id: self.members[member_id] for member_id in member_ids}
        assert ordered.keys() == self.members.keys(), f"{[*ordered]}, but {[*self.members]}"
        self.members = ordered

    def supports(self, protocols: tuple[ProtocolOffer, ...]) -> bool:
        """Tell whether one of ``protocols`` is known to every member."""
        common = self._common_protocols()
        return bool(protocols) and (not self.members or any(p.name in common for p in protocols))

    def select_protocol(self) -> str:
        """Give the protocol most members like best, of those that all of them know.

        Equal votes go to the one that the longest-standing member likes best.
        """
        common = self._common_protocols()
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(p.name for p in member.protocols if p.name in common)] += 1
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """See that the leader is one who has joined; False when nobody has."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.join_ticket is None:
            joined = next((m for m in self.members.values() if m.join_ticket is not None), None)
            if joined is None:
                return False
            self.leader = joined.member_id
        return True

    def _common_protocols(self) -> set[str]:
        known: Counter[str] = Counter()
        for member in self.members.values():
            known.update({p.name for p in member.protocols})
        return {name for name, count in known.items() if count == len(self.members)}
