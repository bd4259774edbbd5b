"""Mirrors one partition through a seeded mess: safe at every step, level once the mess ends."""

import pytest

from simulation import mirror_plays as plays

SEEDS = range(300)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_is_level_with_its_source_once_faults_end(seed: int) -> None:
    plays.level_once_faults_end(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_loss_of_the_source_is_followed_where_that_is_wanted(seed: int) -> None:
    plays.level_after_elections(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stop_ends_writable_whatever_happened_and_without_the_source(seed: int) -> None:
    plays.stop_without_the_source(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stop_ends_writable_in_the_middle_of_the_sources_trouble(seed: int) -> None:
    plays.stop_after_elections(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stopped_mirror_can_be_started_again(seed: int) -> None:
    plays.start_again_after_a_stop(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_clusters_that_take_turns_have_every_record_on_both_sides_or_saved(seed: int) -> None:
    plays.twins_take_turns(seed)
