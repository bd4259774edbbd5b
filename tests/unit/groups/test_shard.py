from typing import TypeVar

import pytest

from support.group_player import GROUP, GroupPlayer
from twinlog.coordination.outcome import Outcome, Parked
from twinlog.groups.commands import (
    CommitOffsets,
    CommittedOffset,
    GroupListing,
    MemberClaim,
)
from twinlog.groups.settings import GroupSettings
from twinlog.groups.shard import GroupShard
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition

T = TypeVar("T")
OF = TopicPartition(TopicName("orders"), 0)
OTHER = TopicPartition(TopicName("other"), 1)
DAY_MS = 24 * 3_600_000


def take(shard: GroupShard, outcome: Outcome[T]) -> T:
    for record in outcome.records:
        shard.replay(record.key, record.value)
    assert not isinstance(outcome.reply, Parked)
    return outcome.reply


def commit(shard: GroupShard, metadata: str = "", generation: int = -1) -> Outcome[object]:
    offsets = ((OF, CommittedOffset(Offset(5), metadata=metadata, committed_at_ms=0)),)
    return shard.commit_offsets(CommitOffsets(MemberClaim("g", "", generation), offsets), 0)


def a_stable_group() -> GroupPlayer:
    player = GroupPlayer()
    for command in ("0ms join a old", "3000ms timers", "3000ms sync a assign=a:x"):
        player.play(command)
    return player


def test_a_commit_changes_nothing_until_its_record_is_replayed() -> None:
    shard = GroupShard(GroupSettings())
    outcome = commit(shard)
    assert shard.offsets_of("g").reply == {}
    assert take(shard, outcome) == ((OF, ErrorCode.NONE),)
    assert take(shard, shard.offsets_of("g"))[OF].offset == 5


def test_a_note_that_is_too_long_refuses_that_partition_only() -> None:
    shard = GroupShard(GroupSettings(offset_metadata_bytes_max=4))
    outcome = commit(shard, metadata="äää")
    assert outcome.records == ()
    assert outcome.reply == ((OF, ErrorCode.OFFSET_METADATA_TOO_LARGE),)


def test_a_generation_of_a_group_that_is_not_there_is_stale() -> None:
    with pytest.raises(ApiError) as caught:
        commit(GroupShard(GroupSettings()), generation=3)
    assert caught.value.code is ErrorCode.ILLEGAL_GENERATION


def test_requests_to_a_group_that_is_not_there_come_from_unknown_members() -> None:
    player = GroupPlayer()
    assert player.play("0ms heartbeat a id=x gen=1") == ["a: UNKNOWN_MEMBER_ID", "= Dead"]
    assert player.play("0ms sync a id=x gen=1") == ["a: UNKNOWN_MEMBER_ID", "= Dead"]
    assert player.play("0ms join a id=x") == ["a: UNKNOWN_MEMBER_ID", "= Dead"]
    assert player.play("0ms leave a id=x") == ["x UNKNOWN_MEMBER_ID", "= Dead"]


def test_a_group_that_somebody_only_asked_to_join_leaves_no_trace() -> None:
    player = GroupPlayer()
    player.play("0ms join a session=1")
    player.play("0ms join a")
    player.play("10000ms timers")
    assert player.shard.list_groups().reply == ()
    assert player.written == []


def test_groups_are_listed_with_their_state() -> None:
    player = a_stable_group()
    listing = GroupListing(GROUP, "consumer", "Stable", "Classic")
    assert player.shard.list_groups().reply == (listing,)


def test_a_stable_group_is_described_with_what_each_member_reads() -> None:
    description = a_stable_group().shard.describe(GROUP).reply
    assert not isinstance(description, Parked)
    assert (description.state, description.protocol_name) == ("Stable", "range")
    (member,) = description.members
    assert (member.member_id, member.metadata, member.assignment) == ("a-1", b"a", b"x")


def test_a_group_that_rebalances_is_described_without_assignments() -> None:
    player = a_stable_group()
    player.play("4000ms join b old")
    description = player.shard.describe(GROUP).reply
    assert not isinstance(description, Parked)
    assert (description.state, description.protocol_name) == ("PreparingRebalance", "")
    assert {member.assignment for member in description.members} == {b""}


def test_a_group_with_members_cannot_be_deleted_and_one_without_can() -> None:
    player = a_stable_group()
    with pytest.raises(ApiError) as caught:
        player.shard.delete_group(GROUP)
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    player.play("4000ms commit a 5")
    player.play("4000ms leave a")
    take(player.shard, player.shard.delete_group(GROUP))
    assert player.shard.list_groups().reply == ()
    assert player.shard.offsets_of(GROUP).reply == {}
    with pytest.raises(ApiError) as caught:
        player.shard.delete_group(GROUP)
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_group_that_reads_something_unknown_are_not_deleted() -> None:
    with pytest.raises(ApiError) as caught:
        a_stable_group().shard.delete_offsets(GROUP, [OF])
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_an_empty_group_are_deleted() -> None:
    shard = GroupShard(GroupSettings())
    take(shard, commit(shard))
    results = take(shard, shard.delete_offsets("g", [OF, OTHER]))
    assert results == ((OF, ErrorCode.NONE), (OTHER, ErrorCode.NONE))
    assert shard.offsets_of("g").reply == {}


def test_a_deleted_topic_takes_its_offsets_with_it() -> None:
    shard = GroupShard(GroupSettings())
    take(shard, commit(shard))
    take(shard, shard.forget_topics(frozenset({TopicName("orders")})))
    assert shard.offsets_of("g").reply == {}


def test_the_expiry_timer_takes_old_offsets_and_then_the_group() -> None:
    settings = GroupSettings()
    shard = GroupShard(settings)
    take(shard, commit(shard))
    shard.on_loaded(0)
    first_look_ms = settings.offsets_retention_check_interval_ms
    (name,) = shard.timers.due(first_look_ms)
    assert shard.on_timer(name, first_look_ms).records == ()
    assert shard.timers.next_ms == 2 * first_look_ms
    take(shard, shard.on_timer(name, 7 * DAY_MS))
    assert shard.list_groups().reply == ()


def test_a_mirror_commits_over_an_empty_group_and_follows_deletions() -> None:
    shard = GroupShard(GroupSettings())
    brought = CommittedOffset(Offset(9), brought_by="m")
    take(shard, shard.commit_for_mirror("g", {OF: brought, OTHER: None}, "m"))
    assert take(shard, shard.offsets_of("g")) == {OF: brought}
    take(shard, shard.commit_for_mirror("g", {OF: None}, "m"))
    assert shard.offsets_of("g").reply == {}


def test_what_a_client_committed_since_a_mirror_looked_is_not_deleted_with_what_was_there() -> None:
    shard = GroupShard(GroupSettings())
    take(shard, shard.commit_for_mirror("g", {OF: CommittedOffset(Offset(9), brought_by="m")}, "m"))
    own = CommittedOffset(Offset(9))
    take(shard, shard.commit_offsets(CommitOffsets(MemberClaim("g", ""), ((OF, own),)), 0))
    take(shard, shard.commit_for_mirror("g", {OF: None}, "m"))
    assert [one.offset for one in take(shard, shard.offsets_of("g")).values()] == [9]


def test_what_a_mirror_brought_is_known_until_a_client_commits() -> None:
    shard = GroupShard(GroupSettings())
    brought = CommittedOffset(Offset(9), brought_by="m")
    take(shard, shard.commit_for_mirror("g", {OF: brought, OTHER: brought}, "m"))
    assert shard.groups_brought_by("m").reply == ("g",)
    own = CommittedOffset(Offset(9))
    take(shard, shard.commit_for_mirror("g", {OF: own, OTHER: own}, "m"))
    assert shard.groups_brought_by("m").reply == ()


def test_a_mirror_never_touches_a_group_that_lives_here() -> None:
    player = a_stable_group()
    assert player.shard.is_active(GROUP).reply is True
    with pytest.raises(ApiError) as caught:
        player.shard.commit_for_mirror(GROUP, {OF: CommittedOffset(Offset(9))}, "m")
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    player.play("4000ms leave a")
    assert player.shard.is_active(GROUP).reply is False


def test_also_a_group_that_lives_here_is_pulled_back_behind_what_is_cut_off() -> None:
    shard = a_stable_group().shard
    own = CommittedOffset(Offset(5), LeaderEpoch(3), committed_at_ms=6)
    claim = MemberClaim(GROUP, "a-1", 1)
    take(shard, shard.commit_offsets(CommitOffsets(claim, ((OF, own),)), 4_000))
    brought = CommittedOffset(Offset(9), metadata="m", committed_at_ms=7, brought_by="m")
    take(shard, shard.commit_for_mirror("other", {OF: brought, OTHER: brought}, "m"))
    assert take(shard, shard.pull_back({OF: Offset(6)})) == 1
    pulled = CommittedOffset(Offset(6), committed_at_ms=7, brought_by="m")
    assert take(shard, shard.offsets_of("other")) == {OF: pulled, OTHER: brought}
    assert take(shard, shard.pull_back({OF: Offset(4)})) == 2
    assert take(shard, shard.offsets_of(GROUP)) == {
        OF: CommittedOffset(Offset(4), committed_at_ms=6)
    }
    assert take(shard, shard.pull_back({OF: Offset(4)})) == 0


def test_unknown_records_are_passed_over() -> None:
    shard = GroupShard(GroupSettings())
    shard.replay(b"\0\x09whatever", b"\0\0")
    assert shard.list_groups().reply == ()


def test_offsets_that_outlive_their_groups_record_still_make_a_group() -> None:
    player = a_stable_group()
    player.play("4000ms commit a 5")
    player.play("4000ms leave a")
    deleted = player.shard.delete_group(GROUP).records[-1]
    player.shard.replay(deleted.key, deleted.value)
    assert player.shard.list_groups().reply == (GroupListing(GROUP, "", "Empty", "Classic"),)


def test_a_group_that_is_too_big_after_a_restart_rebalances() -> None:
    player = a_stable_group()
    player.play("3001ms join b old")
    player.play("3002ms join a")
    player.play("3003ms sync a assign=a:x,b:y")
    player.settings = GroupSettings(members_max=1)
    assert player.play("3004ms reload")[-1] == "= PreparingRebalance"
