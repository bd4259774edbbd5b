"""Mirrors one partition through a seeded mess: safe at every step, level once the mess ends."""

from collections.abc import Callable

import pytest

from support.mirror_world import OF, World
from twinlog.mirroring import events as on
from twinlog.mirroring.policy import GapPolicy
from twinlog.mirroring.states import DesiredState, MirrorState

SEEDS = range(300)
MESSY_MS = 800


def play(world: World, until_ms: int) -> None:
    """Let the source live, and lose, until ``until_ms``."""
    random, source = world.random, world.source

    def darken() -> None:
        source.is_dark = not source.is_dark

    def write_own() -> None:
        if world.mirror.state == MirrorState.STOPPED:
            world.write_own("data")

    happenings: list[tuple[int, Callable[[], object]]] = [
        (60, source.produce),
        (6, source.trim),
        (6, source.change_leader),
        (2, source.lose_tail),
        (4, darken),
        (2, lambda: world.ask_for(random.choice(list(DesiredState)))),
        (1, world.start_machine),
        (2, lambda: world.deliver(on.RecoverAsked())),
        (2, write_own),
        (15, lambda: None),
    ]
    weights = [weight for weight, _ in happenings]

    def act() -> None:
        if world.now_ms < until_ms:
            random.choices(happenings, weights)[0][1]()
            world.after(random.randint(1, 25), act)

    act()
    while world.now_ms < until_ms:
        world.step()


def calm(world: World) -> None:
    world.faults_on = False
    world.source.is_dark = False


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_is_level_with_its_source_once_faults_end(seed: int) -> None:
    world = World(seed)
    play(world, MESSY_MS)
    calm(world)
    world.ask_for(DesiredState.MIRRORING)

    def is_done() -> bool:
        if world.mirror.standing.has_failed_for_good:
            may_lose = not world.allows_unclean or world.gap == GapPolicy.FAIL
            assert may_lose, world.describe()
            return True
        return world.is_level

    world.run_until(is_done, steps_max=20_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stop_ends_writable_whatever_happened_and_without_the_source(seed: int) -> None:
    world = World(seed + 10_000)
    play(world, MESSY_MS)
    world.source.is_dark = True
    world.ask_for(DesiredState.STOPPED)
    world.run_until(lambda: world.mirror.state == MirrorState.STOPPED, steps_max=20_000)

    last = world.shard.known(OF).last_mirror_epoch
    assert last is not None
    resets = [b for b in world.log.batches if b.kind == "reset" and b.base >= last.log_end]
    assert len(resets) == 1, resets
    assert not world.log.open_transactions
    mirrored = [b for b in world.log.batches if b.identity >= 0]
    if mirrored:
        assert (last.epoch, last.log_end) == (mirrored[-1].epoch, mirrored[-1].last + 1)
    assert all(b.epoch > last.epoch for b in world.log.batches if b.base >= last.log_end)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stopped_mirror_can_be_started_again(seed: int) -> None:
    world = World(seed + 20_000)
    world.allows_unclean, world.gap = True, GapPolicy.CONTINUE
    play(world, MESSY_MS)
    world.ask_for(DesiredState.STOPPED)
    world.run_until(lambda: world.mirror.state == MirrorState.STOPPED, steps_max=20_000)
    world.write_own("data")
    calm(world)
    world.start_machine()
    world.ask_for(DesiredState.MIRRORING)
    world.run_until(
        lambda: world.is_level or world.mirror.standing.has_failed_for_good, steps_max=20_000
    )
