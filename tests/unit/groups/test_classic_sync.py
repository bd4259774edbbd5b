from support.group_player import GroupPlayer
from twinlog.groups.settings import GroupSettings


def a_stable_pair() -> GroupPlayer:
    player = GroupPlayer()
    for command in ("0ms join a old", "0ms join b old", "3000ms timers", "6000ms timers"):
        player.play(command)
    player.play("6000ms sync a assign=a:x,b:y")
    player.play("6000ms sync b")
    return player


def test_a_sync_that_is_sent_again_is_answered_and_the_first_one_sent_back() -> None:
    player = GroupPlayer()
    for command in ("0ms join a old", "0ms join b old", "3000ms timers", "6000ms timers"):
        player.play(command)
    assert player.play("6001ms sync b") == ["= CompletingRebalance"]
    assert player.play("6002ms sync b")[0] == "b: REBALANCE_IN_PROGRESS"
    assert "b: synced range y" in player.play("6003ms sync a assign=a:x,b:y")


def test_a_heartbeat_keeps_the_session_going() -> None:
    player = a_stable_pair()
    player.play("15000ms heartbeat a")
    player.play("15000ms heartbeat b")
    assert player.play("24999ms timers") == ["= Stable"]
    assert player.play("25000ms timers")[0].startswith("timer session")


def test_a_commit_keeps_the_session_going() -> None:
    player = a_stable_pair()
    player.play("15000ms commit a 5")
    player.play("15000ms heartbeat b")
    assert player.play("24999ms timers") == ["= Stable"]


def test_a_heartbeat_does_not_end_the_wait_of_one_who_joins() -> None:
    player = a_stable_pair()
    player.play("6001ms join a")
    player.play("6002ms heartbeat a")
    player.play("16001ms heartbeat b")
    assert player.play("16002ms timers") == ["= PreparingRebalance"]


def test_several_members_leave_at_once() -> None:
    player = a_stable_pair()
    lines = player.play("7000ms leave a b")
    assert lines[-2:] == ["a-1 NONE, b-1 NONE", "= Empty"]


def test_an_id_that_was_only_given_out_can_leave() -> None:
    player = GroupPlayer()
    player.play("0ms join a")
    assert player.play("1ms leave a") == ["a-1 NONE", "= Dead"]


def test_a_rebalance_does_not_wait_for_an_id_that_left() -> None:
    player = a_stable_pair()
    player.play("7000ms join c")
    player.play("7001ms join b protocols=range,other")
    player.play("7002ms join a")
    lines = player.play("7003ms leave c")
    assert lines[-1] == "= CompletingRebalance"


def test_an_assignment_too_big_to_be_written_is_refused_and_harms_nobody_else() -> None:
    player = GroupPlayer(GroupSettings(record_bytes_max=200, initial_rebalance_delay_ms=0))
    player.play("0ms join a old")
    assert player.play(f"1ms sync a assign=a:{'x' * 200}") == [
        "a: UNKNOWN_SERVER_ERROR",
        "= PreparingRebalance",
    ]
    assert player.play("2ms join a")[-1] == "= CompletingRebalance"
    assert player.play("3ms sync a assign=a:x")[-1] == "= Stable"
