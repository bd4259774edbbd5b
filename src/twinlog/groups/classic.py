"""One classic group: its rebalances, its members' sessions, what of it is durable.

Requests reach it through ``classic_join`` (JoinGroup) and ``classic_sync`` (everything between two
rebalances). All of them call methods of ``ClassicGroup``, which gather effects; the shard takes
them with ``drain`` after each request or timer.

Durable are the generation, the protocol, the leader, and each member with its assignment: they
change when a ``GroupMetadataValue`` is replayed. Everything else (who waits for what, generations
not yet synced) lives in memory: after a crash the clients simply join again.
"""

from dataclasses import dataclass, field
from typing import Final

from twinlog.coordination.outcome import Ticket
from twinlog.groups.classic_states import ClassicState, assert_step
from twinlog.groups.commands import Joined, JoinedMember, ProtocolOffer, Synced
from twinlog.groups.effects import (
    CancelTimer,
    Effect,
    GroupTimer,
    Persist,
    Reply,
    SetTimer,
    TimerKind,
)
from twinlog.groups.records import GroupMetadataValue, MemberMetadata
from twinlog.groups.roster import Member, Roster
from twinlog.groups.settings import GroupSettings
from twinlog.groups.subscriptions import CONSUMER_PROTOCOL, subscribed_topics
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import TopicName

NEW_MEMBER_JOIN_MS: Final = 300_000
"""A member without a session yet may wait so long in one JoinGroup (as in Kafka)."""


@dataclass(slots=True)
class FirstWait:
    """An empty group waits a little for more members (KIP-134), the longer the more come."""

    left_ms: int
    somebody_joined: bool = False


@dataclass(slots=True)
class ClassicGroup:
    """The members of one group and the state machine they go through together."""

    group_id: str
    settings: GroupSettings
    state: ClassicState = ClassicState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    state_since_ms: int = -1
    roster: Roster = field(default_factory=Roster)
    unsynced: set[str] = field(default_factory=set)
    first_wait: FirstWait | None = None
    _effects: list[Effect] = field(default_factory=list)

    def drain(self) -> list[Effect]:
        """Take out the effects gathered so far, in the order to carry them out."""
        effects, self._effects = self._effects, []
        return effects

    # What is asked about it.

    @property
    def is_active(self) -> bool:
        """True while it has members; its offsets are then theirs to commit."""
        return self.state is not ClassicState.EMPTY

    @property
    def was_never_written(self) -> bool:
        """True when nothing durable speaks of it and nobody is on the way into it."""
        return (
            not self.is_active
            and self.generation == 0
            and self.protocol_type is None
            and not self.roster.pending
        )

    def subscribed_topics(self) -> frozenset[TopicName] | None:
        """Give what its consumers read now; None when that is not known."""
        if self.protocol_type != CONSUMER_PROTOCOL or self.protocol_name is None:
            return None
        topics: frozenset[TopicName] = frozenset()
        for member in self.roster:
            found = subscribed_topics(member.metadata_for(self.protocol_name))
            if found is None:
                return None
            topics |= found
        return topics

    # What is durable.

    def replay(self, value: GroupMetadataValue) -> None:
        """Become what the record says; members it does not name are gone."""
        self.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.state_since_ms = value.current_state_timestamp
        named = {member.member_id for member in value.members}
        for member in self.roster:
            if member.member_id not in named:
                self.roster.remove(member)
        for written in value.members:
            self._replay_member(written, value.protocol)
        self.roster.reorder(member.member_id for member in value.members)
        self.roster.leader = value.leader

    def _replay_member(self, written: MemberMetadata, protocol_name: str | None) -> None:
        member = self.roster.members.get(written.member_id)
        if member is None:
            member = Member(
                member_id=written.member_id,
                instance_id=written.group_instance_id,
                client_id=written.client_id,
                client_host=written.client_host,
                session_timeout_ms=written.session_timeout_ms,
                rebalance_timeout_ms=written.rebalance_timeout_ms,
                protocols=(ProtocolOffer(protocol_name or "", written.subscription),),
                is_new=False,
            )
            self.roster.add(member)
        member.assignment = written.assignment

    def snapshot(self, now_ms: int, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """Give the record of the group with these assignments (by member id)."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.roster.leader,
            current_state_timestamp=now_ms,
            members=tuple(
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata_for(self.protocol_name),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.roster
            ),
        )

    def persist(self, now_ms: int, assignments: dict[str, bytes]) -> None:
        """Write the group down with these assignments."""
        self._effects.append(Persist(self.snapshot(now_ms, assignments)))

    def on_loaded(self, now_ms: int) -> None:
        """Begin every member's session anew: nobody could be heard while the group was loaded."""
        for member in self.roster:
            self.restart_session(member, now_ms)
        if len(self.roster) > self.settings.members_max:
            self.begin_rebalance(now_ms)

    # Rebalances.

    def begin_rebalance(self, now_ms: int) -> None:
        """Ask everybody to join; whoever waits for an assignment is told to join again."""
        for member in self.roster:
            self.answer_sync(member, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS), now_ms)
        self.unsynced.clear()
        self.cancel(TimerKind.SYNC)
        was_empty = self.state is ClassicState.EMPTY
        self._become(ClassicState.PREPARING_REBALANCE)
        timeout_ms = self.roster.rebalance_timeout_ms
        delay_ms = self.settings.initial_rebalance_delay_ms
        if was_empty and delay_ms > 0:
            self.first_wait = FirstWait(left_ms=max(timeout_ms - delay_ms, 0))
            self.set_timer(TimerKind.JOIN, now_ms + delay_ms)
        else:
            self.set_timer(TimerKind.JOIN, now_ms + timeout_ms)
            self.complete_join_if_all_are_here(now_ms)

    def complete_join_if_all_are_here(self, now_ms: int) -> None:
        """Go on with the rebalance as soon as nobody is missing; a first wait is waited out."""
        if self.first_wait is None and self.roster.has_everybody_joined:
            self._complete_join(now_ms)

    def on_join_timer(self, now_ms: int) -> None:
        """Go on with those who are here, or wait on while an empty group fills up."""
        wait = self.first_wait
        if wait is not None and wait.somebody_joined and wait.left_ms > 0:
            delay_ms = min(self.settings.initial_rebalance_delay_ms, wait.left_ms)
            self.first_wait = FirstWait(left_ms=wait.left_ms - delay_ms)
            self.set_timer(TimerKind.JOIN, now_ms + delay_ms)
            return
        self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        """Drop who did not come (static members may be late), and begin the next generation."""
        self.first_wait = None
        for member in self.roster:
            if member.join_ticket is None and member.instance_id is None:
                self.cancel(TimerKind.SESSION, member.member_id)
                self.roster.remove(member)
        if len(self.roster) and not self.roster.elect_joined_leader():
            self.set_timer(TimerKind.JOIN, now_ms + self.roster.rebalance_timeout_ms)
            return
        self.cancel(TimerKind.JOIN)
        self.generation += 1
        if not len(self.roster):
            self.protocol_name = None
            self._become(ClassicState.EMPTY)
            self.persist(now_ms, {})
            return
        self.protocol_name = self.roster.select_protocol()
        self._become(ClassicState.COMPLETING_REBALANCE)
        for member in self.roster:
            if member.join_ticket is not None:
                self.answer_join(member, self.joined(member), now_ms)
            member.is_new = False
        self.unsynced = set(self.roster.members)
        self.set_timer(TimerKind.SYNC, now_ms + self.roster.rebalance_timeout_ms)

    def on_sync_timer(self, now_ms: int) -> None:
        """Remove who joined but never asked for an assignment, and rebalance without them."""
        for member_id in sorted(self.unsynced):
            member = self.roster.members.get(member_id)
            if member is not None:
                self.remove(member, now_ms)

    # Members.

    def remove(self, member: Member, now_ms: int) -> None:
        """Let a member go; the others rebalance."""
        gone = ErrorCode.UNKNOWN_MEMBER_ID
        self.answer_join(member, Joined(member.member_id, error=gone), now_ms)
        self.answer_sync(member, Synced(error=gone), now_ms)
        self.cancel(TimerKind.SESSION, member.member_id)
        self.unsynced.discard(member.member_id)
        self.roster.remove(member)
        if self.state is ClassicState.PREPARING_REBALANCE:
            self.complete_join_if_all_are_here(now_ms)
        else:
            self.begin_rebalance(now_ms)

    def forget_pending(self, member_id: str, now_ms: int) -> None:
        """Nobody will come with this id; a rebalance no longer waits for it."""
        self.roster.pending.discard(member_id)
        self.cancel(TimerKind.SESSION, member_id)
        if self.state is ClassicState.PREPARING_REBALANCE:
            self.complete_join_if_all_are_here(now_ms)

    def on_session_timer(self, member_id: str, now_ms: int) -> None:
        """A member, or an id given out, was not heard of for too long."""
        if member_id in self.roster.pending:
            self.forget_pending(member_id, now_ms)
        elif (member := self.roster.members.get(member_id)) is not None:
            self.remove(member, now_ms)

    def restart_session(self, member: Member, now_ms: int) -> None:
        """The member has been heard of; while it waits for us, its session does not run."""
        if member.join_ticket is None and member.sync_ticket is None:
            self.set_timer(TimerKind.SESSION, now_ms + member.session_timeout_ms, member.member_id)

    # Requests that wait.

    def park_join(self, member: Member, ticket: Ticket, now_ms: int) -> None:
        """Let a JoinGroup wait for the others; an earlier one of the member is sent back."""
        again = Joined(member.member_id, error=ErrorCode.REBALANCE_IN_PROGRESS)
        self.answer_join(member, again, now_ms)
        member.join_ticket = ticket
        if member.is_new:
            self.set_timer(TimerKind.SESSION, now_ms + NEW_MEMBER_JOIN_MS, member.member_id)
        else:
            self.cancel(TimerKind.SESSION, member.member_id)

    def park_sync(self, member: Member, ticket: Ticket, now_ms: int) -> None:
        """Let a SyncGroup wait for the leader's; an earlier one of the member is sent back."""
        self.answer_sync(member, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS), now_ms)
        member.sync_ticket = ticket
        self.cancel(TimerKind.SESSION, member.member_id)

    def joined(self, member: Member) -> Joined:
        """Give what a member that joined is told: the leader also who the others are."""
        is_leader = member.member_id == self.roster.leader
        return Joined(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.roster.leader or "",
            members=self.members_for_leader() if is_leader else (),
        )

    def members_for_leader(self) -> tuple[JoinedMember, ...]:
        """Give what the leader needs to assign partitions."""
        return tuple(
            JoinedMember(m.member_id, m.instance_id, m.metadata_for(self.protocol_name))
            for m in self.roster
        )

    def answer_join(self, member: Member, answer: Joined, now_ms: int) -> None:
        """Answer the member's waiting JoinGroup, if there is one; its session runs from now."""
        if member.join_ticket is not None:
            self.reply(member.join_ticket, answer)
            member.join_ticket = None
            self.restart_session(member, now_ms)

    def answer_sync(self, member: Member, answer: Synced, now_ms: int) -> None:
        """Answer the member's waiting SyncGroup, if there is one; its session runs from now."""
        if member.sync_ticket is not None:
            self.reply(member.sync_ticket, answer)
            member.sync_ticket = None
            self.restart_session(member, now_ms)

    def reply(self, ticket: Ticket, answer: Joined | Synced) -> None:
        """Answer a request."""
        self._effects.append(Reply(ticket, answer))

    # Timers.

    def set_timer(self, kind: TimerKind, at_ms: int, member_id: str = "") -> None:
        """Set one of the group's deadlines."""
        self._effects.append(SetTimer(GroupTimer(self.group_id, kind, member_id), at_ms))

    def cancel(self, kind: TimerKind, member_id: str = "") -> None:
        """Forget one of the group's deadlines."""
        self._effects.append(CancelTimer(GroupTimer(self.group_id, kind, member_id)))

    def _become(self, state: ClassicState) -> None:
        assert_step(self.state, state)
        self.state = state
