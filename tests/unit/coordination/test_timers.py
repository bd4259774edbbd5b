from random import Random

from twinlog.coordination.timers import Timers


def test_names_come_due_once_and_in_the_order_of_their_deadlines() -> None:
    timers = Timers()
    timers.set("late", 30)
    timers.set("early", 10)
    timers.set("middle", 20)
    assert timers.next_ms == 10
    assert timers.due(20) == ["early", "middle"]
    assert timers.due(20) == []
    assert timers.next_ms == 30


def test_setting_a_name_again_moves_its_deadline_both_ways() -> None:
    timers = Timers()
    timers.set("session", 10)
    timers.set("session", 50)
    assert timers.due(49) == []
    timers.set("session", 49)
    assert timers.due(49) == ["session"]


def test_a_cancelled_name_does_not_come_due() -> None:
    timers = Timers()
    timers.set("join", 10)
    timers.cancel("join")
    timers.cancel("never set")
    assert timers.next_ms is None
    assert timers.due(100) == []


def test_a_name_may_be_set_again_after_it_was_cancelled() -> None:
    timers = Timers()
    timers.set("join", 10)
    timers.cancel("join")
    timers.set("join", 20)
    assert timers.deadline_of("join") == 20
    assert timers.due(15) == []
    assert timers.due(20) == ["join"]


def test_the_queue_does_not_grow_with_deadlines_that_only_move_later() -> None:
    timers = Timers()
    for now_ms in range(10_000):
        timers.set("session", now_ms + 1_000)
    assert len(timers._queue) == 1


def test_a_shift_keeps_what_is_left_of_every_wait() -> None:
    timers = Timers()
    timers.set("a", 30)
    timers.set("b", 10)
    timers.shift(1_000)
    assert timers.next_ms == 1_010
    assert timers.due(1_030) == ["b", "a"]


def test_timers_agree_with_a_plain_dict_whatever_is_asked() -> None:
    for seed in range(50):
        random = Random(seed)
        timers, model = Timers(), dict[str, int]()
        for now_ms in range(200):
            name = f"n{random.randrange(5)}"
            if random.random() < 0.7:
                at_ms = now_ms + random.randrange(40)
                timers.set(name, at_ms)
                model[name] = at_ms
            elif random.random() < 0.5:
                timers.cancel(name)
                model.pop(name, None)
            else:
                due = {n for n, at in model.items() if at <= now_ms}
                assert set(timers.due(now_ms)) == due, f"seed {seed}"
                model = {n: at for n, at in model.items() if n not in due}
            assert timers.next_ms == min(model.values(), default=None), f"seed {seed}"
