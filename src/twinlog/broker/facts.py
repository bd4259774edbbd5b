"""The cluster image as this broker sees it now, and the way to change it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from twinlog.broker.waiting import Waiting
from twinlog.cluster.changes import Change, TopicDeleted, TopicSet
from twinlog.cluster.facts import DesiredState, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.cluster.records import ROOT, StoredFact, change_of, stored_facts
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
from twinlog.model.ids import TopicName, TopicPartition

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
        self._image_revision = Revision(0)
        self._key_revisions: Final[dict[bytes, Revision]] = {}
        self._mirrored_since: Final[dict[TopicName, Revision]] = {}

    @property
    def revision(self) -> Revision:
        """The store's revision that ``image`` stands for."""
        return self._revision

    @property
    def image_revision(self) -> Revision:
        """The store's revision that ``image`` shows; its effects may not be carried out yet."""
        return self._image_revision

    def mirrored_since(self, topic: TopicName) -> Revision:
        """Give the revision at which a topic was last asked to be in another mirror's state.

        Of what changed before this broker was started, at most the revision of any change of it.
        """
        return self._mirrored_since.get(topic, Revision(0))

    async def load(self) -> None:
        """Read everything from the store."""
        listing = await self._store.list(ROOT)
        changes = [change_of(StoredFact(entry.key, entry.value)) for entry in listing.entries]
        self.image = ClusterImage().with_changes(changes)
        self._key_revisions.clear()
        self._key_revisions.update((entry.key, entry.revision) for entry in listing.entries)
        self._mirrored_since.clear()
        for change, entry in zip(changes, listing.entries, strict=True):
            if isinstance(change, TopicSet):
                self._mirrored_since[change.topic.name] = entry.revision
        self._revision = self._image_revision = listing.revision

    def advance(self, batch: ChangeBatch) -> tuple[ClusterImage, tuple[Change, ...]]:
        """Take in what one transaction changed; give the image before, and the changes.

        Whoever waits for this revision is woken by ``announce``, after its effects are carried out.
        """
        before = self.image
        changes = tuple(change_of(StoredFact(c.key, c.value)) for c in batch.changes)
        for made in changes:
            self._note_mirrored(made, batch.revision)
        self.image = before.with_changes(changes)
        self._image_revision = batch.revision
        for change in batch.changes:
            if change.value is None:
                self._key_revisions.pop(change.key, None)
            else:
                self._key_revisions[change.key] = batch.revision
        return before, changes

    def _note_mirrored(self, change: Change, revision: Revision) -> None:
        if isinstance(change, TopicDeleted):
            self._mirrored_since.pop(change.name, None)
        elif isinstance(change, TopicSet):
            topic = change.topic
            known = self.image.topics.get(topic.name)
            if known is None or _asked(known) != _asked(topic):
                self._mirrored_since[topic.name] = revision

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


def _asked(topic: TopicFact) -> tuple[str, DesiredState] | None:
    return None if topic.mirror is None else (topic.mirror.mirror, topic.mirror.desired_state)


def _write(fact: StoredFact) -> Write:
    return Delete(fact.key) if fact.value is None else Put(fact.key, fact.value)
