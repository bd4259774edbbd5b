"""Blocks of producer ids: each broker takes one at a time, and no id is ever given twice."""

from dataclasses import dataclass
from typing import Final

from twinlog.cluster.changes import ProducerIdsTaken
from twinlog.cluster.image import ClusterImage
from twinlog.model.ids import ProducerId

BLOCK_SIZE: Final = 1_000


@dataclass(slots=True)
class ProducerIds:
    """The ids of a block that was taken from the cluster and are still to be given out."""

    next: int = 0
    end: int = 0

    @property
    def is_used_up(self) -> bool:
        """Whether every id of the block was given."""
        return self.next >= self.end

    def give(self) -> ProducerId | None:
        """Give an id that nobody has; None when the block is used up."""
        if self.is_used_up:
            return None
        self.next += 1
        return ProducerId(self.next - 1)


def take_block(image: ClusterImage) -> ProducerIdsTaken:
    """Give the change that takes the next block; what ``image`` is before it tells its first id."""
    return ProducerIdsTaken(image.next_producer_id + BLOCK_SIZE)


def block_before(taken: ProducerIdsTaken) -> ProducerIds:
    """Give the block that was taken by a change, once that is committed."""
    return ProducerIds(taken.next_producer_id - BLOCK_SIZE, taken.next_producer_id)
