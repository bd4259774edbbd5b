from support.clusters import image_with
from twinlog.cluster.producer_ids import BLOCK_SIZE, ProducerIds, block_before, take_block


def test_no_id_is_given_twice_also_not_by_two_brokers() -> None:
    image = image_with()
    given: list[int] = []
    for _ in range(2):
        taken = take_block(image)
        image = image.with_change(taken)
        block = block_before(taken)
        given += iter(block.give, None)
    assert given == list(range(2 * BLOCK_SIZE))


def test_a_used_up_block_gives_nothing() -> None:
    assert ProducerIds().give() is None
