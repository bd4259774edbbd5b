"""Compares the local log with the source's, by ends and epochs: how much do both have.

The words: an epoch's *end* is the first offset that no longer belongs to it. The comparison asks
the source for the end of an epoch we know (OffsetForLeaderEpoch) and goes down through our epochs
until one is found that both logs hold (KIP-279); what both have ends at the lower of the two ends.
"""

from dataclasses import dataclass

from twinlog.mirroring.batches import BatchIdentity
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.model.epochs import EpochStart
from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the local log is, as read from disk; ``end`` is exclusive."""

    start: Offset
    end: Offset
    epochs: tuple[EpochStart, ...] = ()
    open_transactions: int = 0
    has_pid_reset: bool = False
    """Whether a producer reset stands at or after the offset asked for with ReadLog."""
    last_batch: BatchIdentity | None = None
    """What the log ends with, where it was looked for."""

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """The epoch of the last batch; -1 for none."""
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH

    @property
    def is_empty(self) -> bool:
        """Whether the log holds no record, though it may have held some."""
        return self.start == self.end

    def end_of(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """Give the highest local epoch at or below ``epoch`` and its end; (-1, start) for none."""
        found, end = NO_EPOCH, self.end
        for entry in reversed(self.epochs):
            if entry.epoch <= epoch:
                found = entry.epoch
                break
            end = entry.start
        return (found, end) if found != NO_EPOCH else (NO_EPOCH, self.start)

    def cut_to(self, end: Offset) -> "LogFacts":
        """Give what would be left if the log were cut so that it ends at ``end``."""
        if end >= self.end:
            return self
        return LogFacts(
            start=min(self.start, end),
            end=end,
            epochs=tuple(e for e in self.epochs if e.start < end),
            open_transactions=self.open_transactions,
            has_pid_reset=self.has_pid_reset,
        )


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What the source's leader says of its log: its epoch, where records begin and end."""

    leader_epoch: LeaderEpoch
    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class AskEnd:
    """Not known yet: ask the source where ``epoch`` ended."""

    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class SameUpTo:
    """Both logs are the same up to ``end``."""

    end: Offset


@dataclass(frozen=True, slots=True)
class NothingInCommon:
    """No epoch of ours is known to the source."""


Comparison = AskEnd | SameUpTo | NothingInCommon


def first_question(local: LogFacts, source: SourceFacts) -> Comparison:
    """Give the first thing to ask; an empty log is the same as any that reaches its end."""
    if not local.is_empty and local.epochs:
        return AskEnd(local.latest_epoch)
    # The source's high watermark may lag behind its log end for a moment after an election.
    return SameUpTo(local.end) if local.end <= source.end else AskEnd(source.leader_epoch)


def next_question(
    local: LogFacts, source: SourceFacts, asked: LeaderEpoch, answer: tuple[LeaderEpoch, Offset]
) -> Comparison:
    """Take the source's answer to AskEnd(``asked``): highest epoch at or below it, and its end."""
    source_epoch, source_end = answer
    keeps_none = source.leader_epoch >= asked or source.leader_epoch == NO_EPOCH
    if source_epoch == NO_EPOCH and keeps_none:
        # The source keeps no epochs (records of before 0.11, since expired): offsets must do.
        return SameUpTo(min(local.end, source.end))
    if source_epoch == NO_EPOCH:
        return _below(local, asked)
    if local.is_empty or not local.epochs:
        return SameUpTo(min(local.end, source_end))
    own_epoch, own_end = local.end_of(source_epoch)
    if own_epoch == source_epoch:
        return SameUpTo(min(own_end, source_end))
    return AskEnd(own_epoch) if own_epoch != NO_EPOCH else NothingInCommon()


def _below(local: LogFacts, asked: LeaderEpoch) -> Comparison:
    lower, _ = local.end_of(LeaderEpoch(asked - 1))
    return AskEnd(lower) if lower != NO_EPOCH else NothingInCommon()


def later_of(one: LastMirrorEpoch | None, other: LastMirrorEpoch | None) -> LastMirrorEpoch | None:
    """Give the later of what both clusters agreed on, at stops on their side and on ours.

    Epochs only rise along a log, and each was the same on both sides up to where it was stopped.
    """
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda agreed: (agreed.epoch, agreed.log_end))


def still_agreed(
    agreed: LastMirrorEpoch, in_epoch: int, handed_over_at: LeaderEpoch
) -> LastMirrorEpoch | None:
    """Give what was agreed in our epoch ``in_epoch``, or None if another mirror had the log since.

    That one may have filled it from elsewhere, up to and in the epoch that was agreed on.
    """
    return None if NO_EPOCH != handed_over_at >= in_epoch else agreed
