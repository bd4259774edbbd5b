"""Gives producer ids to idempotent producers, out of blocks that are taken from the cluster."""

import asyncio
from typing import Final

from twinlog.broker.facts import Facts
from twinlog.cluster.changes import Change
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.producer_ids import ProducerIds, take_block
from twinlog.cluster.producer_ids import block_before as block_taken_by
from twinlog.model.ids import ProducerId


class ProducerIdBlocks:
    """The block in use. Ids that are left in it when the broker stops are never given."""

    def __init__(self) -> None:
        """Begin without a block: the first producer takes one."""
        self._block = ProducerIds()
        self._refill: Final = asyncio.Lock()

    async def give(self, facts: Facts) -> ProducerId:
        """Give an id that no producer of the cluster ever had. Raises ApiError."""
        while (producer_id := self._block.give()) is None:
            async with self._refill:
                if self._block.is_used_up:
                    self._block = await _take_block(facts)
        return producer_id


async def _take_block(facts: Facts) -> ProducerIds:
    taken = None

    def decide(image: ClusterImage) -> tuple[Change, ...]:
        nonlocal taken
        taken = take_block(image)
        return (taken,)

    await facts.change(decide)
    assert taken is not None, "a change is committed only after it was decided"
    return block_taken_by(taken)
