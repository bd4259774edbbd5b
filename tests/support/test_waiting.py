"""Tests that a wait fails for what is missing, and never for a machine that stood still."""

import time

import pytest

from support.waiting import wait_until


def test_what_is_so_after_a_look_that_took_longer_than_the_deadline_is_seen() -> None:
    looks: list[bool] = []

    def condition() -> bool:
        if not looks:
            time.sleep(0.05)
        looks.append(bool(looks))
        return looks[-1]

    wait_until(condition, "it is so at the second look", timeout_s=0.01)
    assert looks == [False, True]


def test_what_is_not_so_is_told_as_it_is_in_the_end() -> None:
    with pytest.raises(AssertionError, match=r"after 0\.01 s still not so: it is"):
        wait_until(lambda: False, lambda: "it is", timeout_s=0.01)
