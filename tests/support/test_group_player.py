from support.group_player import GroupPlayer


def test_a_client_comes_again_with_the_id_it_was_told() -> None:
    player = GroupPlayer()
    assert player.play("0ms join a") == ["a: MEMBER_ID_REQUIRED", "= Empty"]
    assert player.play("1ms join a") == ["= PreparingRebalance"]
    assert player.play("3001ms timers") == [
        "timer join",
        "a: joined as a-1 generation 1 range leader a-1 members [a-1(a)]",
        "= CompletingRebalance",
    ]


def test_what_was_written_outlives_the_shard() -> None:
    player = GroupPlayer()
    player.play("0ms commit nobody 5")
    assert player.play("1ms reload") == ["1 records replayed", "= Empty"]
