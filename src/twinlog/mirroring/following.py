"""Follows the source batch by batch: from a fetched answer to what is written here."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from twinlog.mirroring import epoch_fencing
from twinlog.mirroring.batches import BatchIdentity, Walk, identity_of, walk
from twinlog.mirroring.beginning import Beginning
from twinlog.mirroring.conclusions import IS_ANOTHER_TOPIC, Aligned
from twinlog.mirroring.effects import (
    Append,
    BeginAt,
    BumpEpoch,
    Effect,
    FetchFrom,
    RaiseLogStart,
)
from twinlog.mirroring.events import Fetched
from twinlog.mirroring.lag import LagInputs
from twinlog.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, Offset


@dataclass(frozen=True, slots=True)
class EpochTooHigh:
    """A batch has an epoch above ours; ours must rise before it is written."""

    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class MetadataIsOld:
    """A batch has an epoch above the one that metadata told of the source's leader."""

    why: str


@dataclass(frozen=True, slots=True)
class BadBatch:
    """A batch cannot be taken as it is."""

    offset: Offset
    why: str


Obstacle = EpochTooHigh | MetadataIsOld | BadBatch


@dataclass(slots=True)
class Following:
    """Where the local log stands while it is fed from the source's ``node``.

    Invariant: ``log_start <= log_end``, and every batch below ``log_end`` is one of the source's.
    That is taken from ends and epochs, which another history can have, too: so the last batch here
    is fetched once more, and must be the same there before anything is taken.
    """

    node: BrokerId
    source_epoch: LeaderEpoch
    turn: int
    log_start: Offset
    log_end: Offset
    last_epoch: LeaderEpoch
    lag: LagInputs
    beginning: Beginning = field(default_factory=Beginning)
    bump_asked: LeaderEpoch = NO_EPOCH
    to_meet: BatchIdentity | None = None
    """The last batch here, as long as it was not seen at the source."""

    @classmethod
    def of(
        cls, aligned: Aligned, turn: int, lag: LagInputs, beginning: Beginning, now_ms: int
    ) -> "Following":
        """Follow from where an alignment has come to its end."""
        lag.answered(aligned.source.end, aligned.local.end, now_ms)
        return cls(
            node=aligned.node,
            source_epoch=aligned.source.leader_epoch,
            turn=turn,
            log_start=aligned.local.start,
            log_end=aligned.local.end,
            # A log that was emptied here remembers an epoch of which it has no record: compared
            # by that, the two would be found parted for ever.
            last_epoch=NO_EPOCH if aligned.local.is_empty else aligned.local.latest_epoch,
            lag=lag,
            beginning=beginning,
            to_meet=aligned.local.last_batch if aligned.source.start < aligned.local.end else None,
        )

    def begin(self) -> Sequence[Effect]:
        """Give what is written before the first fetch: it may have been left undone."""
        is_empty = self.log_start == self.log_end
        return () if is_empty else self.beginning.begun_at(self.log_start, self.turn)

    def fetch(self) -> FetchFrom:
        """Give the standing order for the next fetch."""
        return FetchFrom(self.node, self.source_epoch, self._position, self.last_epoch, self.turn)

    @property
    def _position(self) -> Offset:
        return self.log_end if self.to_meet is None else Offset(self.log_end - 1)

    def take(
        self, fetched: Fetched, own_epoch: LeaderEpoch, now_ms: int
    ) -> list[Effect] | Obstacle:
        """Give what to write of an answer, the next fetch last; or what stands in the way."""
        if fetched.offset != self._position:
            return []
        if self.to_meet is not None:
            return self._meet(fetched, self.to_meet, own_epoch, now_ms)
        walked = walk(fetched.records, self.log_end, self.last_epoch)
        obstacle = self._obstacle(walked, own_epoch)
        if obstacle is not None:
            return obstacle
        # What the source has deleted goes before anything comes: it may be of another history.
        effects = self._raise_start(fetched.log_start)
        if walked.count:
            effects += self._append(fetched, walked)
            if epoch_fencing.is_too_near(walked.last_epoch, own_epoch):
                effects += self._bump_ahead(walked.last_epoch)
        effects += self._raise_start(fetched.log_start)
        self.lag.answered(fetched.high_watermark, self.log_end, now_ms)
        effects.append(self.fetch())
        return effects

    def _meet(
        self, fetched: Fetched, ours: BatchIdentity, own_epoch: LeaderEpoch, now_ms: int
    ) -> list[Effect] | Obstacle:
        """Take an answer that begins with our last batch, or with what the source has instead."""
        theirs = identity_of(fetched.records)
        if theirs is None:  # a source that was just elected may not know yet what is committed
            self.lag.answered(fetched.high_watermark, self.log_end, now_ms)
            walked = walk(fetched.records, fetched.offset)
            again = [*self._raise_start(fetched.log_start), self.fetch()]
            return self._obstacle(walked, own_epoch) or again
        records = fetched.records
        if theirs.base < self.log_end:
            if not theirs.is_same_as(ours):
                return BadBatch(
                    theirs.base,
                    f"where the log here ends with offsets {ours.base} to {ours.last} (CRC-32C "
                    f"{ours.crc:#010x}), the source has {theirs.base} to {theirs.last} "
                    f"({theirs.crc:#010x}): {IS_ANOTHER_TOPIC}",
                )
            records = memoryview(records)[theirs.length :]
        # Else a log cleaner has removed it: what comes after it is there.
        self.to_meet = None
        return self.take(replace(fetched, offset=self.log_end, records=records), own_epoch, now_ms)

    def _raise_start(self, source_start: Offset) -> list[Effect]:
        own_below = self.beginning.own_below
        if not max(self.log_start, own_below) < source_start <= self.log_end:
            return []
        self.log_start = source_start
        return [RaiseLogStart(source_start)]

    def _obstacle(self, walked: Walk, own_epoch: LeaderEpoch) -> Obstacle | None:
        if not walked.count:
            if walked.problem is None:
                return None
            return BadBatch(walked.problem_offset, walked.problem)
        if walked.last_epoch > own_epoch:
            return EpochTooHigh(walked.last_epoch)
        if NO_EPOCH != self.source_epoch < walked.last_epoch:
            return MetadataIsOld(
                f"a batch of leader epoch {walked.last_epoch} came, though the source's metadata "
                f"says {self.source_epoch}"
            )
        starts_early = walked.first_offset < self.log_end
        if starts_early and self.log_start < self.log_end:
            return BadBatch(
                walked.first_offset,
                f"it begins before the end of the log here, {self.log_end}: the source's batches "
                "are not those mirrored so far",
            )
        return None

    def _append(self, fetched: Fetched, walked: Walk) -> list[Effect]:
        records = fetched.records
        if walked.length < len(records):
            records = memoryview(records)[: walked.length]
        effects: list[Effect] = []
        if walked.first_offset < self.log_end:
            self.log_start = walked.first_offset
            effects.append(BeginAt(walked.first_offset))
            effects += self.beginning.begun_at(walked.first_offset, self.turn)
        self.lag.appended(walked.next_offset - walked.first_offset, walked.length)
        self.log_end, self.last_epoch = walked.next_offset, walked.last_epoch
        effects.append(Append(records))
        return effects

    def _bump_ahead(self, source_epoch: LeaderEpoch) -> list[Effect]:
        wanted = epoch_fencing.raised_epoch(source_epoch)
        if wanted <= self.bump_asked:
            return []
        self.bump_asked = wanted
        return [BumpEpoch(wanted)]
