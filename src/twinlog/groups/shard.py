"""The groups of one partition of ``__consumer_offsets``: routes each command to its group."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from twinlog.coordination.outcome import Answer, Outcome, Parked, StateRecord, Ticket
from twinlog.coordination.timers import Timers
from twinlog.groups import classic_join, classic_sync
from twinlog.groups.classic import ClassicGroup
from twinlog.groups.classic_states import DEAD, ClassicState
from twinlog.groups.commands import (
    NO_GENERATION,
    NO_MEMBER_ID,
    CommitOffsets,
    CommittedOffset,
    GroupDescription,
    GroupListing,
    Join,
    Joined,
    Leaver,
    Left,
    MemberClaim,
    MemberDescription,
    Sync,
    Synced,
)
from twinlog.groups.effects import CancelTimer, GroupTimer, Persist, Reply, SetTimer, TimerKind
from twinlog.groups.offsets import GroupOffsets, Offsets, expired_offsets
from twinlog.groups.records import (
    GroupMetadataKey,
    decode_group,
    decode_key,
    decode_offset,
    group_record,
    group_tombstone,
    offset_record,
    partition_of,
)
from twinlog.groups.settings import GroupSettings
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import NO_EPOCH, Offset, TopicName, TopicPartition

EXPIRY: Final = "offset expiry"
CLASSIC: Final = "Classic"
TEXT_BYTES_MAX: Final = 0x7FFF
"""What a string in a record of ``__consumer_offsets`` can hold."""

CommitResults = tuple[tuple[TopicPartition, ErrorCode], ...]


@dataclass(slots=True)
class GroupShard:
    """Groups by id, and their offsets. Commands read; ``replay`` writes what is durable.

    A group is there when somebody is in it or on the way in, or when it has offsets. What members
    wait for (tickets, sessions, rebalances) is in memory only, as in Kafka.
    """

    settings: GroupSettings
    timers: Timers = field(default_factory=Timers)
    _groups: dict[str, ClassicGroup] = field(default_factory=dict)
    _offsets: Offsets = field(default_factory=Offsets)
    _ticket_count: int = 0

    # What the runtime calls.

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the partition."""
        what = decode_key(key)
        if what is None:
            return
        if isinstance(what, GroupMetadataKey):
            self._replay_group(what.group, value)
            return
        if value is not None:
            self._group(what.group)
        committed = None if value is None else decode_offset(value)
        self._offsets.replay(what.group, partition_of(what), committed)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        if value is not None:
            self._group(group_id).replay(decode_group(value))
            return
        self._groups.pop(group_id, None)
        if self._offsets.of(group_id):
            self._group(group_id)  # it was a group once; what is left are offsets

    def on_loaded(self, now_ms: int) -> None:
        """Begin all members' sessions anew."""
        for group in self._groups.values():
            group.on_loaded(now_ms)
            self._outcome(group)
        self._set_expiry(now_ms)

    def on_timer(self, name: Hashable, now_ms: int) -> Outcome[None]:
        """A deadline of a group has passed, or it is time to look for expired offsets."""
        if name == EXPIRY:
            self._set_expiry(now_ms)
            return self.expire_offsets(now_ms)
        assert isinstance(name, GroupTimer), f"no timer of groups: {name}"
        group = self._groups.get(name.group_id)
        if group is None:
            return Outcome(None)
        match name.kind:
            case TimerKind.JOIN:
                group.on_join_timer(now_ms)
            case TimerKind.SYNC:
                group.on_sync_timer(now_ms)
            case TimerKind.SESSION:
                group.on_session_timer(name.member_id, now_ms)
        records, answers = self._outcome(group)
        return Outcome(None, records, answers)

    # Membership.

    def join(self, request: Join, now_ms: int) -> Outcome[Joined]:
        """JoinGroup: answered when everybody has joined."""
        may_found = request.member_id == NO_MEMBER_ID
        if not may_found and request.group_id not in self._groups:
            return Outcome(Joined(request.member_id, error=ErrorCode.UNKNOWN_MEMBER_ID))
        group, ticket = self._group(request.group_id), self._ticket()
        classic_join.join(group, ticket, request, now_ms)
        records, answers = self._outcome(group)
        return Outcome(Parked(ticket), records, answers)

    def sync(self, request: Sync, now_ms: int) -> Outcome[Synced]:
        """SyncGroup: answered when the leader has handed in everybody's assignment."""
        group = self._groups.get(request.claim.group_id)
        if group is None:
            return Outcome(Synced(error=ErrorCode.UNKNOWN_MEMBER_ID))
        ticket = self._ticket()
        classic_sync.sync(group, ticket, request, now_ms)
        records, answers = self._outcome(group)
        return Outcome(Parked(ticket), records, answers)

    def heartbeat(self, claim: MemberClaim, now_ms: int) -> Outcome[ErrorCode]:
        """Heartbeat: says whether the member has to join again."""
        group = self._groups.get(claim.group_id)
        if group is None:
            return Outcome(ErrorCode.UNKNOWN_MEMBER_ID)
        error = classic_sync.heartbeat(group, claim, now_ms)
        records, answers = self._outcome(group)
        return Outcome(error, records, answers)

    def leave(
        self, group_id: str, leavers: Iterable[Leaver], now_ms: int
    ) -> Outcome[tuple[Left, ...]]:
        """LeaveGroup: one result for each who leaves."""
        group = self._groups.get(group_id)
        if group is None:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            return Outcome(tuple(Left(m.member_id, m.instance_id, unknown) for m in leavers))
        left = tuple(classic_sync.leave(group, leaver, now_ms) for leaver in leavers)
        records, answers = self._outcome(group)
        return Outcome(left, records, answers)

    # Offsets.

    def commit_offsets(self, request: CommitOffsets, now_ms: int) -> Outcome[CommitResults]:
        """OffsetCommit: one result for each partition. Raises ApiError for the whole request."""
        claim = request.claim
        group = self._groups.get(claim.group_id)
        records: tuple[StateRecord, ...] = ()
        answers: tuple[Answer, ...] = ()
        if group is not None:
            error = classic_sync.commit_error(group, claim, now_ms)
            records, answers = self._outcome(group)
        else:
            error = ErrorCode.ILLEGAL_GENERATION if claim.generation > NO_GENERATION else None
        if error is not None:
            raise ApiError(error, f"commit of {claim.member_id!r} to group {claim.group_id}")
        assert not records, f"a commit check wrote {records}"
        assert not answers, f"a commit check answered {answers}"
        bytes_max = min(self.settings.offset_metadata_bytes_max, TEXT_BYTES_MAX)
        results = tuple(
            (
                of,
                ErrorCode.OFFSET_METADATA_TOO_LARGE
                if len(committed.metadata.encode()) > bytes_max
                else ErrorCode.NONE,
            )
            for of, committed in request.offsets
        )
        written = tuple(
            offset_record(claim.group_id, of, committed)
            for (of, committed), (_, error) in zip(request.offsets, results, strict=True)
            if error is ErrorCode.NONE
        )
        return Outcome(results, written)

    def offsets_of(self, group_id: str) -> Outcome[GroupOffsets]:
        """OffsetFetch: all committed offsets of a group; none when there is no such group."""
        return Outcome(dict(self._offsets.of(group_id)))

    def delete_offsets(
        self, group_id: str, which: Iterable[TopicPartition]
    ) -> Outcome[CommitResults]:
        """OffsetDelete: not of topics that the group is reading. Raises ApiError."""
        group = self._existing(group_id)
        subscribed: frozenset[TopicName] = frozenset()
        if group.is_active:
            found = group.subscribed_topics()
            if found is None:
                raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")
            subscribed = found
        which = tuple(which)
        results = tuple(
            (
                of,
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if of.topic in subscribed else ErrorCode.NONE,
            )
            for of in which
        )
        free = [of for of in which if of.topic not in subscribed]
        return Outcome(results, tuple(self._offsets.tombstones(group_id, free)))

    def forget_topics(self, topics: frozenset[TopicName]) -> Outcome[None]:
        """The topics are deleted: so are all offsets in them."""
        return Outcome(None, tuple(self._offsets.tombstones_of_topics(topics)))

    def expire_offsets(self, now_ms: int) -> Outcome[None]:
        """Delete what nobody needs any more, and groups that nothing is left of."""
        records: list[StateRecord] = []
        for group_id, group in self._groups.items():
            offsets = self._offsets.of(group_id)
            expired = expired_offsets(group, offsets, self.settings.offsets_retention_ms, now_ms)
            records += self._offsets.tombstones(group_id, expired)
            is_gone = not group.is_active and not group.roster.pending
            if is_gone and len(expired) == len(offsets):
                records.append(group_tombstone(group_id))
        return Outcome(None, tuple(records))

    # What a mirror does with groups.

    def is_active(self, group_id: str) -> Outcome[bool]:
        """Tell whether the group has members here."""
        group = self._groups.get(group_id)
        return Outcome(group is not None and group.is_active)

    def groups_brought_by(self, mirror: str) -> Outcome[tuple[str, ...]]:
        """Give the groups that still have an offset which ``mirror`` brought."""
        return Outcome(self._offsets.groups_brought_by(mirror))

    def commit_for_mirror(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset | None],
        mark: str,
    ) -> Outcome[None]:
        """Take over a source's offsets; None deletes one that still bears the mirror's ``mark``.

        Without it a client has committed there since. Raises ApiError NON_EMPTY_GROUP when the
        group has members here: it has moved over, and its offsets are its own.
        """
        group = self._groups.get(group_id)
        if group is not None and group.is_active:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {group_id} is {group.state.value} with {len(group.roster)} members here",
            )
        here = self._offsets.of(group_id)
        gone = [
            of
            for of, committed in offsets.items()
            if committed is None and of in here and here[of].brought_by == mark
        ]
        records = [
            offset_record(group_id, of, committed)
            for of, committed in offsets.items()
            if committed is not None
        ]
        return Outcome(None, (*records, *self._offsets.tombstones(group_id, gone)))

    def pull_back(self, ends: Mapping[TopicPartition, Offset]) -> Outcome[int]:
        """Set offsets beyond where a log will end to there; the reply is how many they were.

        Other records come to stand behind that end, which nobody here has read. Also a group with
        members is pulled back: what they read is gone.
        """
        beyond = self._offsets.beyond(ends)
        records = tuple(
            offset_record(
                group_id, of, replace(one, offset=ends[of], leader_epoch=NO_EPOCH, metadata="")
            )
            for group_id, of, one in beyond
        )
        return Outcome(len(records), records)

    # What operators ask.

    def list_groups(self) -> Outcome[tuple[GroupListing, ...]]:
        """ListGroups: every group of this shard."""
        return Outcome(
            tuple(
                GroupListing(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
                for group in self._groups.values()
            )
        )

    def describe(self, group_id: str) -> Outcome[GroupDescription]:
        """DescribeGroups: a group that is not there is Dead."""
        group = self._groups.get(group_id)
        if group is None:
            return Outcome(GroupDescription(group_id, DEAD, "", "", ()))
        is_stable = group.state is ClassicState.STABLE
        protocol_name = (group.protocol_name or "") if is_stable else ""
        members = tuple(
            MemberDescription(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=member.metadata_for(protocol_name) if is_stable else b"",
                assignment=member.assignment if is_stable else b"",
            )
            for member in group.roster
        )
        state, protocol_type = group.state.value, group.protocol_type or ""
        return Outcome(GroupDescription(group_id, state, protocol_type, protocol_name, members))

    def delete_group(self, group_id: str) -> Outcome[None]:
        """DeleteGroups. Raises ApiError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
        group = self._existing(group_id)
        if group.is_active:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")
        offsets = self._offsets.tombstones(group_id, self._offsets.of(group_id))
        return Outcome(None, (*offsets, group_tombstone(group_id)))

    # Inside.

    def _group(self, group_id: str) -> ClassicGroup:
        return self._groups.setdefault(group_id, ClassicGroup(group_id, self.settings))

    def _existing(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
        return group

    def _ticket(self) -> Ticket:
        self._ticket_count += 1
        return Ticket(self._ticket_count)

    def _set_expiry(self, now_ms: int) -> None:
        self.timers.set(EXPIRY, now_ms + self.settings.offsets_retention_check_interval_ms)

    def _outcome(self, group: ClassicGroup) -> tuple[tuple[StateRecord, ...], tuple[Answer, ...]]:
        """Carry out what a group asks for; give the records and answers among it."""
        records: list[StateRecord] = []
        answers: list[Answer] = []
        for effect in group.drain():
            match effect:
                case SetTimer(timer, at_ms):
                    self.timers.set(timer, at_ms)
                case CancelTimer(timer):
                    self.timers.cancel(timer)
                case Reply(ticket, answer):
                    answers.append(Answer(ticket, answer))
                case Persist(value):
                    records.append(group_record(group.group_id, value))
        if group.was_never_written and not self._offsets.of(group.group_id):
            self._groups.pop(group.group_id, None)
        return tuple(records), tuple(answers)
