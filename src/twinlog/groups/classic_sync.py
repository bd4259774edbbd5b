"""What members of a classic group ask between two joins: sync, heartbeat, leave, commit."""

from twinlog.coordination.outcome import Ticket
from twinlog.groups.classic import ClassicGroup
from twinlog.groups.classic_states import ClassicState
from twinlog.groups.commands import (
    NO_GENERATION,
    NO_MEMBER_ID,
    Leaver,
    Left,
    MemberClaim,
    Sync,
    Synced,
)
from twinlog.groups.effects import TimerKind
from twinlog.groups.records import group_record
from twinlog.model.errors import ErrorCode


def sync(group: ClassicGroup, ticket: Ticket, request: Sync, now_ms: int) -> None:
    """Take in one SyncGroup; it is answered under ``ticket``, perhaps later."""
    error = _claim_error(group, request.claim) or _sync_error(group, request)
    if error is not None:
        group.reply(ticket, Synced(error=error))
        return
    member = group.roster.members[request.claim.member_id]
    group.park_sync(member, ticket, now_ms)
    group.unsynced.discard(member.member_id)
    if group.state is ClassicState.STABLE:
        _hand_out(group, {member.member_id: member.assignment}, now_ms)
    elif member.member_id == group.roster.leader:
        given = dict(request.assignments)
        assignments = {m.member_id: given.get(m.member_id, b"") for m in group.roster}
        if _is_too_big(group, assignments, now_ms):
            _start_again(group, now_ms)
            return
        group.persist(now_ms, assignments)
        _hand_out(group, assignments, now_ms)


def _sync_error(group: ClassicGroup, request: Sync) -> ErrorCode | None:
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _is_too_big(group: ClassicGroup, assignments: dict[str, bytes], now_ms: int) -> bool:
    record = group_record(group.group_id, group.snapshot(now_ms, assignments))
    return len(record.value or b"") > group.settings.record_bytes_max


def _start_again(group: ClassicGroup, now_ms: int) -> None:
    """Refuse an assignment that cannot be written; only this group hears of it."""
    for member in group.roster:
        group.answer_sync(member, Synced(error=ErrorCode.UNKNOWN_SERVER_ERROR), now_ms)
    group.begin_rebalance(now_ms)


def _hand_out(group: ClassicGroup, assignments: dict[str, bytes], now_ms: int) -> None:
    """Answer those of these members who wait for their assignment."""
    for member_id, assignment in assignments.items():
        answer = Synced(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=assignment,
        )
        group.answer_sync(group.roster.members[member_id], answer, now_ms)
    if not group.unsynced:
        group.cancel(TimerKind.SYNC)


def heartbeat(group: ClassicGroup, claim: MemberClaim, now_ms: int) -> ErrorCode:
    """Note that a member lives; tell it whether it has to join again."""
    error = _claim_error(group, claim)
    if error is not None:
        return error
    group.restart_session(group.roster.members[claim.member_id], now_ms)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(group: ClassicGroup, leaver: Leaver, now_ms: int) -> Left:
    """Let one member go."""
    member_id, error = leaver.member_id, ErrorCode.NONE
    if leaver.instance_id is None and member_id in group.roster.pending:
        group.forget_pending(member_id, now_ms)
        return Left(member_id, None)
    if leaver.instance_id is not None and member_id == NO_MEMBER_ID:
        member_id = group.roster.instances.get(leaver.instance_id, NO_MEMBER_ID)
    unfit = _identity_error(group, MemberClaim(group.group_id, member_id, 0, leaver.instance_id))
    if unfit is None:
        group.remove(group.roster.members[member_id], now_ms)
    else:
        error = unfit
    return Left(leaver.member_id, leaver.instance_id, error)


def commit_error(group: ClassicGroup, claim: MemberClaim, now_ms: int) -> ErrorCode | None:
    """Tell why these offsets may not be committed; None when they may.

    While everybody has joined but nobody knows yet what is assigned to it, nobody can tell whose
    offsets these are: that is refused. In a rebalance that still waits for joins they are welcome.
    """
    claims_nothing = (
        claim.generation <= NO_GENERATION
        and claim.member_id == NO_MEMBER_ID
        and claim.instance_id is None
    )
    if not group.is_active and claim.generation <= NO_GENERATION:
        return None
    if claims_nothing:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = _claim_error(group, claim)
    if error is not None:
        return error
    group.restart_session(group.roster.members[claim.member_id], now_ms)
    if group.state is ClassicState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _claim_error(group: ClassicGroup, claim: MemberClaim) -> ErrorCode | None:
    """Tell why this is not a member of the current generation; None when it is."""
    error = _identity_error(group, claim)
    if error is None and claim.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _identity_error(group: ClassicGroup, claim: MemberClaim) -> ErrorCode | None:
    if claim.instance_id is not None:
        known_id = group.roster.instances.get(claim.instance_id)
        if known_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known_id != claim.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if claim.member_id not in group.roster.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None
