"""The cluster image as this broker sees it now, and the way to change it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import Change
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.records import ROOT, StoredFact, change_of, image_of, stored_facts
from twinlog.metastore.store import (
    ABSENT,
    ChangeBatch,
    Committed,
    Conflict,
    Delete,
    MetadataStore,
    Put,
    Revision,
    StoreError,
    Unchanged,
    Write,
)
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicPartition

Decide = Callable[[ClusterImage], Sequence[Change]]
"""A rule of ``cluster/``: the image as it is in, changes or ApiError out."""

CHANGE_ATTEMPTS_MAX: Final = 20
CHANGE_TIMEOUT_S: Final = 30.0
_IMAGE_CHANGED: Final = "image"


class Facts:
    """Holds the newest image. Changes go to the store first and come back through ``advance``.

    So a change made here and one made by another broker take the same way, in the same order.
    """

    def __init__(self, store: MetadataStore, waiting: Waiting) -> None:
        self.image = ClusterImage()
        self._store: Final = store
        self._waiting: Final = waiting
        self._deciding: Final = asyncio.Lock()
        self._revision = Revision(0)
        self._key_revisions: Final[dict[bytes, Revision]] = {}

    @property
    def revision(self) -> Revision:
        """The store's revision that ``image`` stands for."""
        return self._revision

    async def load(self) -> None:
        """Read everything from the store."""
        listing = await self._store.list(ROOT)
        self.image = image_of(StoredFact(entry.key, entry.value) for entry in listing.entries)
        self._key_revisions.clear()
        self._key_revisions.update((entry.key, entry.revision) for entry in listing.entries)
        self._revision = listing.revision

    def advance(self, batch: ChangeBatch) -> tuple[ClusterImage, tuple[Change, ...]]:
        """Take in what one transaction changed; give the image before, and the changes.

        Whoever waits for this revision is woken by ``announce``, after its effects are carried out.
        """
        before = self.image
        changes = tuple(change_of(StoredFact(c.key, c.value)) for c in batch.changes)
        self.image = before.with_changes(changes)
        for change in batch.changes:
            if change.value is None:
                self._key_revisions.pop(change.key, None)
            else:
                self._key_revisions[change.key] = batch.revision
        return before, changes

    def announce(self, revision: Revision) -> None:
        """Tell everybody that waits: image and partitions here are at ``revision``."""
        self._revision = revision
        self._waiting.notify(_IMAGE_CHANGED)

    async def change(self, decide: Decide) -> ClusterImage:
        """Let ``decide`` say what to change of the newest image, commit it, wait until it is seen.

        Changes of this broker are decided one after another: rules compare more facts than they
        write (names that collide, ids, the brokers there are), which no compare-and-set would see.
        When another broker changed the same facts first, ``decide`` is asked again on the image
        with its change. Gives the image after. Raises what ``decide`` raises, and ApiError
        REQUEST_TIMED_OUT when the store or the watch does not keep up, KAFKA_STORAGE_ERROR when
        the store fails.
        """
        async with self._deciding:
            return await self._change(decide)

    async def _change(self, decide: Decide) -> ClusterImage:
        for _ in range(CHANGE_ATTEMPTS_MAX):
            image, at = self.image, self._revision
            changes = decide(image)
            if not changes:
                return image
            written = stored_facts(changes, image.with_changes(changes))
            result = await self._commit(written)
            if not isinstance(result, Conflict):
                await self._reach(result.revision)
                return self.image
            await self._reach(Revision(at + 1))
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"other brokers changed the same facts {CHANGE_ATTEMPTS_MAX} times meanwhile",
        )

    async def _commit(self, written: Sequence[StoredFact]) -> Committed | Conflict:
        try:
            return await self._store.transact(
                [Unchanged(f.key, self._key_revisions.get(f.key, ABSENT)) for f in written],
                [_write(fact) for fact in written],
            )
        except StoreError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def wait_until(
        self, is_so: Callable[[], bool], *, timeout_s: float = CHANGE_TIMEOUT_S
    ) -> None:
        """Wait until the image says so. Raises ApiError REQUEST_TIMED_OUT."""
        if not await self._waiting.until(is_so, [_IMAGE_CHANGED], timeout_s=timeout_s):
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT, f"the cluster image did not change in {timeout_s} s"
            )

    async def _reach(self, revision: Revision) -> None:
        await self.wait_until(lambda: self._revision >= revision)

    def why_absent(self, of: TopicPartition) -> ApiError:
        """Give what to tell a client that asks for a partition this broker does not lead."""
        fact = self.image.partition(of)
        if fact is None:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {of}")
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{of} is led by broker {fact.leader}")


def _write(fact: StoredFact) -> Write:
    return Delete(fact.key) if fact.value is None else Put(fact.key, fact.value)
