"""The plays of the simulation: a mess made of one seed, and what must have come of it."""

from collections.abc import Callable
from typing import Final

from support.mirror_twins import Twins
from support.mirror_world import World
from support.simulated.schedule import Schedule
from twinlog.mirroring.policy import GapPolicy
from twinlog.mirroring.states import DesiredState, MirrorState

STEPS_OF_A_STOP: Final = 60
"""In which everything goes on to go wrong."""

Play = Callable[[int], Schedule]


def level_once_faults_end(seed: int) -> Schedule:
    """Mess, then peace: the destination is what the source is, or says why it may not be."""
    world = World(seed)
    world.play()
    world.calm()
    world.here.ask_for(DesiredState.MIRRORING)

    def is_done() -> bool:
        if world.here.mirror.standing.has_failed_for_good:
            assert world.may_fail_for_good, world.describe()
            return True
        return world.is_level

    world.run_until(is_done)
    return world.schedule


def stop_without_the_source(seed: int) -> Schedule:
    """Mess, and the source never comes back: the partition becomes writable."""
    world = World(seed + 10_000_000)
    world.play()
    world.is_dark_for_good = world.source.is_dark = True
    world.stop()
    return world.schedule


def start_again_after_a_stop(seed: int) -> Schedule:
    """Mess, stop, records of our own, and the mirror is started again, over those."""
    world = World(seed + 20_000_000, allows_unclean=True, gap=GapPolicy.CONTINUE)
    world.play()
    world.stop()
    world.write_own()
    world.calm()
    world.here.start()
    world.here.ask_for(DesiredState.MIRRORING)
    world.run_until(lambda: world.is_level or world.here.mirror.standing.has_failed_for_good)
    return world.schedule


def level_after_elections(seed: int) -> Schedule:
    """Only the source makes trouble, and plenty of it; every loss of records may be followed."""
    world = World(
        seed + 30_000_000, allows_unclean=True, gap=GapPolicy.CONTINUE, is_source_only=True
    )
    world.play()
    world.calm()
    world.run_until(lambda: world.is_level)
    return world.schedule


def stop_after_elections(seed: int) -> Schedule:
    """Only the source makes trouble, and a stop comes in the middle of it."""
    world = World(seed + 40_000_000, allows_unclean=True, is_source_only=True)
    world.play(world.schedule.random.randint(50, 400))
    world.here.ask_for(DesiredState.STOPPED)
    for _ in range(STEPS_OF_A_STOP):
        world.schedule.step()
    world.calm()
    world.stop()
    return world.schedule


def level_with_late_answers(seed: int) -> Schedule:
    """A third of all answers come when others have been asked for, perhaps of another leader."""
    world = World(
        seed + 80_000_000, allows_unclean=True, gap=GapPolicy.CONTINUE, is_source_only=seed % 2 == 0
    )
    world.schedule.let_fail_often("answer late")
    world.play()
    world.calm()
    world.here.ask_for(DesiredState.MIRRORING)
    world.run_until(lambda: world.is_level or world.here.mirror.standing.has_failed_for_good)
    return world.schedule


def stop_at_the_source_s_own_epoch(seed: int) -> Schedule:
    """Our leader epoch cannot be raised ahead, and is that of the last record when a stop comes."""
    world = World(seed + 60_000_000, allows_unclean=True, is_source_only=True)
    world.source.tells_epochs, world.source.tells_divergence = False, True
    world.here.is_store_away = True
    world.play(world.schedule.random.randint(50, 300))
    world.stop()
    return world.schedule


def level_over_restarts_of_one_broker(seed: int) -> Schedule:
    """The source is one broker, which may come back without its last records, as leader again."""
    world = World(
        seed + 70_000_000, allows_unclean=True, gap=GapPolicy.CONTINUE, is_source_only=True
    )
    world.source.node_count, world.source.records_max = 1, 1
    world.play()
    world.calm()
    world.run_until(lambda: world.is_level)
    return world.schedule


def another_topic_of_the_same_name(seed: int) -> Schedule:
    """While the mirror is down, the source's topic is made again, and nothing there tells of it."""
    world = World(seed + 90_000_000, gap=GapPolicy.CONTINUE)
    world.source.has_ids = False
    world.play(world.schedule.random.randint(50, 400))
    world.here.end()
    world.source.recreate(world.source.leader.epoch)
    world.source.records_max = 1  # no holes: what a cleaner took away can be compared with nothing
    for _ in range(world.schedule.random.randint(1, 60)):
        world.source.produce()
    world.calm()
    world.here.start()
    world.here.ask_for(DesiredState.MIRRORING)

    def is_done() -> bool:
        standing = world.here.mirror.standing
        is_refused = world.state == MirrorState.FAILED and "recreated" in str(standing.error)
        # A log without records, also after a cut, has nothing that could be compared.
        is_level = world.here.log.end == world.source.log.end
        return is_level or is_refused or standing.has_failed_for_good

    world.run_until(is_done)
    return world.schedule


def twins_take_turns(seed: int) -> Schedule:
    """Two clusters of ours fail over and back: each record is on both in the end, or saved."""
    twins = Twins(seed + 50_000_000)
    twins.play()
    twins.settle()
    return twins.schedule


PLAYS: Final[dict[str, Play]] = {
    play.__name__: play
    for play in (
        level_once_faults_end,
        level_after_elections,
        stop_without_the_source,
        stop_after_elections,
        start_again_after_a_stop,
        level_with_late_answers,
        stop_at_the_source_s_own_epoch,
        level_over_restarts_of_one_broker,
        another_topic_of_the_same_name,
        twins_take_turns,
    )
}
