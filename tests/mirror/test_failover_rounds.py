"""Fail over and back, again and again, with clients at work: nothing is lost or repeated."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from support.failover_rounds import WAYS, FailoverRounds

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROUNDS: Final = int(os.environ.get("FAILOVER_ROUNDS", "3"))
SEED: Final = int(os.environ.get("FAILOVER_SEED", "1"))


def _ways(seed: int) -> list[str]:
    """Give each way as often as the others, in an order of the seed's."""
    ways: list[str] = []
    chance = random.Random(seed)
    while len(ways) < ROUNDS:
        ways += chance.sample(WAYS, len(WAYS))
    return ways[:ROUNDS]


@pytest.mark.timeout(60 + 60 * ROUNDS)
def test_every_acknowledged_record_is_on_both_sides_or_in_a_saved_tail(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with FailoverRounds(tmp_path, SEED) as rounds:
        for way in _ways(SEED):
            try:
                rounds.play(way)
            except BaseException as error:
                error.add_note(rounds.story)
                raise
        record_property("story", rounds.story)
