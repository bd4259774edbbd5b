"""Groups through a seeded mess: nothing committed is lost, and once it ends everybody reads on."""

import pytest

from support.group_world import GroupWorld

SEEDS = range(200)
STEPS = 300
ROUNDS_TO_SETTLE = 200


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_settles_once_faults_end(seed: int) -> None:
    world = GroupWorld(seed, client_count=1 + seed % 5)
    for step in range(STEPS):
        world.step()
        if step % 50 == 0:
            world.check_reload()
    world.faults_on = False
    world.settle(ROUNDS_TO_SETTLE)
    assert world.is_settled(), f"seed {seed}: {world.clients}"
    world.check_reload()
