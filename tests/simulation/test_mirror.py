"""Mirrors one partition through a seeded mess: safe at every step, level once the mess ends."""

import pytest

from simulation import mirror_plays as plays

SEEDS = range(300)
TWINS_ONCE_BROKEN = (11_199, 14_052, 114_754, 502_541, 705_457)
"""A record lost by a power cut at the source went here, too; a copy began behind what was there;
a write of a life before landed; an emptied log was compared for ever."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_is_level_with_its_source_once_faults_end(seed: int) -> None:
    plays.level_once_faults_end(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_loss_of_the_source_is_followed_where_that_is_wanted(seed: int) -> None:
    plays.level_after_elections(seed)


@pytest.mark.parametrize("seed", [*SEEDS, 3_005_797])
def test_a_stop_ends_writable_whatever_happened_and_without_the_source(seed: int) -> None:
    plays.stop_without_the_source(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stop_ends_writable_in_the_middle_of_the_sources_trouble(seed: int) -> None:
    plays.stop_after_elections(seed)


@pytest.mark.parametrize("seed", [*SEEDS, 201_383])
def test_a_stopped_mirror_can_be_started_again(seed: int) -> None:
    plays.start_again_after_a_stop(seed)


@pytest.mark.parametrize("seed", [*SEEDS, *TWINS_ONCE_BROKEN])
def test_two_clusters_that_take_turns_have_every_record_on_both_sides_or_saved(seed: int) -> None:
    plays.twins_take_turns(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stop_raises_our_epoch_above_the_last_record_s(seed: int) -> None:
    plays.stop_at_the_source_s_own_epoch(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_source_of_one_broker_that_loses_records_is_followed(seed: int) -> None:
    plays.level_over_restarts_of_one_broker(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_that_come_too_late_are_passed_over(seed: int) -> None:
    plays.level_with_late_answers(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_records_of_another_topic_of_the_same_name_never_follow_those_mirrored(seed: int) -> None:
    plays.another_topic_of_the_same_name(seed)
