import pytest

from twinlog.network.budget import FrameBudget


def test_who_finds_no_room_is_called_when_some_comes_back() -> None:
    budget = FrameBudget(100)
    called: list[str] = []
    assert budget.take(60, lambda: None)
    assert not budget.take(50, lambda: called.append("second"))
    assert called == []
    budget.give_back(60)
    assert called == ["second"]
    assert budget.taken_bytes == 0


def test_a_frame_over_the_bound_is_let_in_alone() -> None:
    budget = FrameBudget(100)
    assert budget.take(1_000, lambda: None)
    assert not budget.take(1, lambda: None)


def test_those_who_wait_are_served_in_order_and_may_wait_again() -> None:
    budget = FrameBudget(100)
    got: list[int] = []

    def try_take(size: int) -> None:
        if budget.take(size, lambda: try_take(size)):
            got.append(size)

    for size in (100, 70, 40, 30):
        try_take(size)
    assert got == [100]
    budget.give_back(100)
    assert got == [100, 70, 30]
    budget.give_back(70)
    assert got == [100, 70, 30, 40]


def test_giving_back_more_than_was_taken_is_a_fault() -> None:
    with pytest.raises(AssertionError):
        FrameBudget(100).give_back(1)


def test_a_bound_of_minus_one_is_none() -> None:
    budget = FrameBudget(-1)
    assert budget.take(1 << 40, lambda: None)
    assert budget.take(1 << 40, lambda: None)
