from support.group_world import GroupWorld, Stage


def test_a_world_without_faults_settles_in_its_first_generation() -> None:
    world = GroupWorld(seed=1, client_count=3)
    world.faults_on = False
    world.settle(rounds=60)
    assert world.is_settled()
    assert {client.generation for client in world.clients} == {1}


def test_the_same_seed_tells_the_same_story() -> None:
    logs = []
    for _ in range(2):
        world = GroupWorld(seed=5, client_count=4)
        for _ in range(200):
            world.step()
        logs.append(world.log)
    assert logs[0] == logs[1]


def test_a_crash_loses_what_was_not_written() -> None:
    world = GroupWorld(seed=1, client_count=1)
    world.faults_on = False
    client = world.clients[0]
    for _ in range(2):
        world.act(client)
    assert list(world.waiting.values()) == [client]
    world.crash()
    assert world.waiting == {}
    assert client.stage is Stage.OUT
    assert world.shard.list_groups().reply == ()
