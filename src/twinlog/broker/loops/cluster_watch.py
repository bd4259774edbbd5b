"""Follows the metadata store: every committed change becomes the image, then partitions."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from twinlog.broker.facts import Facts
from twinlog.broker.partition_keeper import PartitionKeeper
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.records import ROOT
from twinlog.metastore.store import ChangeBatch, MetadataStore

log = logging.getLogger(__name__)

OnImage = Callable[[ClusterImage, ClusterImage], None]
"""Called with the image before and after a change, once the partitions are in step with it."""


class ClusterWatch:
    """The only one who moves the image on."""

    def __init__(self, store: MetadataStore, facts: Facts, keeper: PartitionKeeper) -> None:
        self._store: Final = store
        self._facts: Final = facts
        self._keeper: Final = keeper
        self._listeners: Final[list[OnImage]] = []

    def subscribe(self, listener: OnImage) -> None:
        """Call ``listener`` after each change; it must not wait and must not raise."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """Bring the partitions in step with the image as it was loaded."""
        self._keeper.begin(self._facts.image)
        self._tell(self._facts.image)

    async def run(self) -> None:
        """Follow the store for ever; begin again from a listing when changes were missed."""
        while True:
            async for batch in self._store.watch(ROOT, self._facts.revision):
                if not isinstance(batch, ChangeBatch):
                    log.warning("changes of the cluster's facts were missed, reading them all")
                    break
                before, changes = self._facts.advance(batch)
                for _ in self._keeper.follow(before, self._facts.image, changes):
                    # A topic may have a thousand partitions, and clients wait for other things.
                    await asyncio.sleep(0)
                self._tell(before)
                self._facts.announce(batch.revision)
            await self._begin_again()

    async def _begin_again(self) -> None:
        before = self._facts.image
        await self._facts.load()
        self._keeper.catch_up(before, self._facts.image)
        self._tell(before)
        self._facts.announce(self._facts.revision)

    def _tell(self, before: ClusterImage) -> None:
        for listener in self._listeners:
            listener(before, self._facts.image)
