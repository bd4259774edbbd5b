"""Which leader epoch began at which offset, and where two such histories part."""

from bisect import bisect_right
from dataclasses import dataclass, field

from twinlog.model.ids import NO_EPOCH, LeaderEpoch, Offset


@dataclass(frozen=True, slots=True, order=True)
class EpochStart:
    """An epoch, and the offset of the first record written in it."""

    epoch: LeaderEpoch
    start: Offset


@dataclass(slots=True)
class EpochHistory:
    """Epochs in rising order with rising start offsets, as ``leader-epoch-checkpoint`` has them.

    Invariant: for neighbours a, b: ``a.epoch < b.epoch`` and ``a.start < b.start``.
    """

    entries: list[EpochStart] = field(default_factory=list)

    @property
    def latest(self) -> LeaderEpoch:
        """The highest epoch known; -1 when none is."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: LeaderEpoch, start: Offset) -> bool:
        """Note that ``epoch`` began at ``start``; True if that was news.

        Later or equal entries that contradict it are dropped (Kafka's LeaderEpochFileCache does
        the same): the log on disk is the truth, and it has just been appended to.
        """
        if self.entries and self.entries[-1].epoch == epoch:
            return False
        self.entries = [e for e in self.entries if e.epoch < epoch and e.start < start]
        self.entries.append(EpochStart(epoch, start))
        return True

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """Give the epoch of the record at ``offset``; -1 before the first known epoch."""
        index = bisect_right(self.entries, offset, key=lambda e: e.start)
        return self.entries[index - 1].epoch if index else NO_EPOCH

    def end_of(self, epoch: LeaderEpoch, log_end: Offset) -> tuple[LeaderEpoch, Offset]:
        """Give the largest epoch <= ``epoch`` and its (exclusive) end, as KIP-279 asks.

        (-1, -1) when no epoch that old is known. The end of the latest epoch is ``log_end``. An
        epoch above the latest gives (-1, -1), too: we cannot know where it will end.
        """
        if epoch == NO_EPOCH or not self.entries or epoch > self.latest:
            return NO_EPOCH, Offset(-1)
        if epoch == self.latest:
            return epoch, log_end
        index = bisect_right(self.entries, epoch, key=lambda e: e.epoch)
        if index == 0:
            # Older than anything we know: it ended where our first epoch began.
            return epoch, self.entries[0].start
        return self.entries[index - 1].epoch, self.entries[index].start

    def truncate_from_end(self, end: Offset) -> bool:
        """Forget epochs that began at or after ``end``; True if any was forgotten."""
        kept = [e for e in self.entries if e.start < end]
        changed = len(kept) != len(self.entries)
        self.entries = kept
        return changed

    def truncate_from_start(self, start: Offset) -> bool:
        """Let the epoch that holds ``start`` begin there and forget those before it."""
        index = bisect_right(self.entries, start, key=lambda e: e.start)
        if index == 0 or (index == 1 and self.entries[0].start == start):
            return False
        holder = self.entries[index - 1]
        self.entries = [EpochStart(holder.epoch, start), *self.entries[index:]]
        return True
