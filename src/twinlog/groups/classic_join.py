"""JoinGroup of a classic group: who may come in, as whom, and what their coming sets off."""

from twinlog.coordination.outcome import Ticket
from twinlog.groups.classic import ClassicGroup
from twinlog.groups.classic_states import ClassicState
from twinlog.groups.commands import NO_MEMBER_ID, Join, Joined, Synced
from twinlog.groups.effects import TimerKind
from twinlog.groups.roster import Member
from twinlog.model.errors import ErrorCode


def join(group: ClassicGroup, ticket: Ticket, request: Join, now_ms: int) -> None:
    """Take in one JoinGroup; it is answered under ``ticket``, perhaps later."""
    error = _refusal(group, request)
    if error is not None:
        group.reply(ticket, Joined(request.member_id, error=error))
    elif request.member_id == NO_MEMBER_ID:
        _join_as_newcomer(group, ticket, request, now_ms)
    elif request.member_id in group.roster.pending:
        _add(group, ticket, request, request.member_id, now_ms)
    else:
        _rejoin(group, ticket, request, now_ms)


def _refusal(group: ClassicGroup, request: Join) -> ErrorCode | None:
    """Give why the request cannot be taken; the group itself is never harmed by it."""
    settings = group.settings
    timeout_ms = request.session_timeout_ms
    if not settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if not _has_room(group, request):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not _speaks_like_the_others(group, request):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.member_id in (NO_MEMBER_ID, *group.roster.pending):
        return None
    return _wrong_member(group, request)


def _has_room(group: ClassicGroup, request: Join) -> bool:
    members_max = group.settings.members_max
    comes_back = request.instance_id in group.roster.instances
    if group.state is ClassicState.EMPTY or comes_back:
        return True
    member = group.roster.members.get(request.member_id)
    if group.state is ClassicState.PREPARING_REBALANCE:
        # After a restart with a smaller limit, those who come back first stay (KIP-389).
        is_waiting = member is not None and member.join_ticket is not None
        return is_waiting or group.roster.joining_count < members_max
    return member is not None or len(group.roster) < members_max


def _speaks_like_the_others(group: ClassicGroup, request: Join) -> bool:
    if not request.protocol_type or not request.protocols:
        return False
    if not len(group.roster):
        return True
    same_type = group.protocol_type == request.protocol_type
    return same_type and group.roster.supports(request.protocols)


def _wrong_member(group: ClassicGroup, request: Join) -> ErrorCode | None:
    if request.instance_id is not None:
        known_id = group.roster.instances.get(request.instance_id)
        if known_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known_id != request.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if request.member_id not in group.roster.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None


def _join_as_newcomer(group: ClassicGroup, ticket: Ticket, request: Join, now_ms: int) -> None:
    fresh_id = request.fresh_member_id
    if request.instance_id is not None:
        known_id = group.roster.instances.get(request.instance_id)
        if known_id is not None:
            _come_back(group, ticket, request, group.roster.members[known_id], now_ms)
        else:
            _add(group, ticket, request, fresh_id, now_ms)
    elif request.must_know_its_id:
        group.roster.pending.add(fresh_id)
        group.set_timer(TimerKind.SESSION, now_ms + request.session_timeout_ms, fresh_id)
        group.reply(ticket, Joined(fresh_id, error=ErrorCode.MEMBER_ID_REQUIRED))
    else:
        _add(group, ticket, request, fresh_id, now_ms)


def _add(group: ClassicGroup, ticket: Ticket, request: Join, member_id: str, now_ms: int) -> None:
    if not len(group.roster):
        group.protocol_type = request.protocol_type
    member = Member(
        member_id=member_id,
        instance_id=request.instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
    )
    group.roster.add(member)
    if group.first_wait is not None:
        group.first_wait.somebody_joined = True
    _wait_for_the_others(group, ticket, member, now_ms)


def _wait_for_the_others(group: ClassicGroup, ticket: Ticket, member: Member, now_ms: int) -> None:
    """Park the request, and see to it that a rebalance is under way."""
    group.park_join(member, ticket, now_ms)
    if group.state is ClassicState.PREPARING_REBALANCE:
        group.complete_join_if_all_are_here(now_ms)
    else:
        group.begin_rebalance(now_ms)


def _update(member: Member, request: Join) -> None:
    member.protocols = request.protocols
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.client_id = request.client_id
    member.client_host = request.client_host


def _rejoin(group: ClassicGroup, ticket: Ticket, request: Join, now_ms: int) -> None:
    """Take a member that is in the group already.

    When it says nothing new, it has lost our answer: it gets the same answer again. A leader that
    joins a stable group always sets off a rebalance; that is how it asks for one.
    """
    member = group.roster.members[request.member_id]
    says_nothing_new = member.protocols == request.protocols
    is_leader = member.member_id == group.roster.leader
    has_lost_answer = says_nothing_new and (
        group.state is ClassicState.COMPLETING_REBALANCE
        or (group.state is ClassicState.STABLE and not is_leader)
    )
    if has_lost_answer:
        group.reply(ticket, group.joined(member))
        group.restart_session(member, now_ms)
        return
    _update(member, request)
    _wait_for_the_others(group, ticket, member, now_ms)


def _come_back(
    group: ClassicGroup, ticket: Ticket, request: Join, member: Member, now_ms: int
) -> None:
    """Let a static member that was restarted take its old place under a new id (KIP-345).

    A stable group does not rebalance for it, unless its protocols change the vote. Whoever still
    waits under the old id is fenced.
    """
    fenced = ErrorCode.FENCED_INSTANCE_ID
    old_id, old_leader = member.member_id, group.roster.leader or ""
    group.answer_join(member, Joined(old_id, error=fenced), now_ms)
    group.answer_sync(member, Synced(error=fenced), now_ms)
    group.cancel(TimerKind.SESSION, old_id)
    if old_id in group.unsynced:
        group.unsynced.remove(old_id)
        group.unsynced.add(request.fresh_member_id)
    group.roster.rename(member, request.fresh_member_id)
    _update(member, request)
    is_settled = (
        group.state is ClassicState.STABLE and group.roster.select_protocol() == group.protocol_name
    )
    if not is_settled:
        _wait_for_the_others(group, ticket, member, now_ms)
        return
    group.persist(now_ms, {m.member_id: m.assignment for m in group.roster})
    group.restart_session(member, now_ms)
    group.reply(ticket, _settled(group, request, member, old_leader))


def _settled(group: ClassicGroup, request: Join, member: Member, old_leader: str) -> Joined:
    """Give the answer that lets a static member go on without a rebalance.

    A leader that can skip the assignment (KIP-814) is told to. An older one is told that its former
    self leads: it then behaves as a follower, and does not assign anything either.
    """
    told = group.joined(member)
    if member.member_id != group.roster.leader:
        return told
    may_skip = request.may_skip_assignment
    return Joined(
        member_id=told.member_id,
        generation=told.generation,
        protocol_type=told.protocol_type,
        protocol_name=told.protocol_name,
        leader=told.leader if may_skip else old_leader,
        members=told.members if may_skip else (),
        skip_assignment=may_skip,
    )
