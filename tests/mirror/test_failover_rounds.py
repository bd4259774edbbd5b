"""Fail over and back, again and again, with clients at work: nothing is lost or repeated."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from support.cluster_admin import create_topic
from support.failover_rounds import WAYS, FailoverRounds
from support.live_clients import LiveConsumer
from support.positions import committed_offset
from support.record_ledger import records_in
from support.source_data import commit
from support.topology import level, mirror_started, stop_all, twinlogs, write

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


@pytest.mark.timeout(600 + 60 * ROUNDS)
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


def test_a_group_does_not_pass_over_what_came_in_the_place_of_what_it_had_read(
    tmp_path: Path,
) -> None:
    """It read here what was lost; no sync has told since how far it came over there."""
    of, group = ("orders", 0), "readers"
    with twinlogs(tmp_path, 2) as (here, there):
        create_topic(here, of[0])
        write(here, of, "both")
        forward = mirror_started(there, here, "forward", [of[0]])
        level(forward, [of])
        stop_all(forward, [of])
        write(here, of, "only here", 9)
        commit(here, group, {of: 30})
        write(there, of, "there", 2)
        back = mirror_started(here, there, "back", [of[0]], groups_sync_interval_ms="3600000")
        level(back, [of])
        assert committed_offset(here, group, *of) == 9
        there.kill()
        stop_all(back, [of])
        write(here, of, "here again", 9)
        expected = sorted(records_in(here.partition_folder(*of)).items())[9:]
        consumer = LiveConsumer(here, [of[0]], group)
        consumer.await_positions({of: expected[-1][0] + 1})
        assert consumer.leave().consumed[of] == expected
