"""What clients ask of a group, and what they are answered."""

from dataclasses import dataclass

from twinlog.model.errors import ErrorCode
from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset, TopicPartition

NO_GENERATION = -1
NO_MEMBER_ID = ""


@dataclass(frozen=True, slots=True)
class ProtocolOffer:
    """One way of assigning partitions that a member knows, with what it says about itself."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Join:
    """JoinGroup. ``fresh_member_id`` is taken when the member has no id of its own yet."""

    group_id: str
    member_id: str
    fresh_member_id: str
    protocol_type: str
    protocols: tuple[ProtocolOffer, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    must_know_its_id: bool = False
    """A new member is first told its id and has to come again with it (v4, KIP-394)."""
    may_skip_assignment: bool = False
    """A leader may be told that nothing is to be assigned (v9, KIP-814)."""


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """What the leader is told of each member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a Join; ``members`` is filled for the leader only."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_MEMBER_ID
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class MemberClaim:
    """Who a request says it comes from, and in which generation."""

    group_id: str
    member_id: str
    generation: int = NO_GENERATION
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """SyncGroup. Only the leader's has ``assignments``, by member id."""

    claim: MemberClaim
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to a Sync."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Leaver:
    """One member that leaves; an operator may name a static one by its instance id alone."""

    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """What became of one Leaver."""

    member_id: str
    instance_id: str | None
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has read one partition: the offset to read next."""

    offset: Offset
    leader_epoch: LeaderEpoch = NO_EPOCH
    metadata: str = ""
    committed_at_ms: int = -1
    expires_at_ms: int | None = None
    """Set only when the client chose its own retention (OffsetCommit up to v4)."""
    brought_by: str = ""
    """The mirror that brought it from its source; a client that commits takes it over."""


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """OffsetCommit: new offsets of some partitions."""

    claim: MemberClaim
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One line of ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member, as DescribeGroups shows it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group, as DescribeGroups shows it."""

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[MemberDescription, ...]
