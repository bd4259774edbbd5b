"""One group's offset at a simulated source, and the rounds that bring it over."""

from support.simulated.destination import Destination
from support.simulated.source import KafkaSource
from twinlog.mirroring import group_sync
from twinlog.mirroring.group_sync import LocalRange, SourceOffset
from twinlog.mirroring.states import DesiredState
from twinlog.model.ids import LeaderEpoch, Offset, TopicName, TopicPartition

OF = TopicPartition(TopicName("t"), 0)
ROUND_MS = 40


class GroupOffsets:
    """Does what ``broker/mirrors/group_following.py`` does, with time between the steps."""

    def __init__(self, here: Destination, source: KafkaSource) -> None:
        self.at_source: int | None = None
        self.committed: int | None = None
        self._is_ours = False
        self._here = here
        self._source = source
        self._round()

    def consume(self) -> None:
        """Let the group read on at the source, or go back."""
        end = self._source.leader.committed
        self.at_source = self._here.schedule.random.randint(0, max(0, end))

    def delete(self) -> None:
        """Let the source forget the group."""
        self.at_source = None

    def _round(self) -> None:
        schedule, bounds = self._here.schedule, self._bounds()
        schedule.after(ROUND_MS, self._round)
        if bounds is not None and not self._source.is_dark:
            schedule.soon(lambda: self._read(bounds), at_most_ms=60)

    def _read(self, bounds: LocalRange) -> None:
        there = {} if self.at_source is None else {OF: SourceOffset(Offset(self.at_source))}
        self._here.schedule.soon(lambda: self._commit(there, bounds), at_most_ms=60)

    def _commit(self, there: dict[TopicPartition, SourceOffset], bounds: LocalRange) -> None:
        here = {} if self.committed is None else {OF: Offset(self.committed)}
        brought = {OF} if self._is_ours and here else set()
        plan = group_sync.plan_group(there, here, {OF: bounds}, brought)
        live = self._bounds()
        if live is None:
            return
        wanted = plan.commit.get(OF)
        if wanted is not None:
            self._write(group_sync.clamp(wanted, live).offset)
        elif OF in plan.delete:
            self.committed, self._is_ours = None, False

    def _write(self, offset: int) -> None:
        at = self._here
        assert offset <= at.log.end, f"offset {offset} committed beyond {at.log.end}: {at.tell()}"
        assert at.desired != DesiredState.STOPPED, f"committed for a stopped topic: {at.tell()}"
        assert at.rules.mirrors_all, f"committed into a log of our own: {at.tell()}"
        self.committed, self._is_ours = offset, True

    def _bounds(self) -> LocalRange | None:
        """Give what is mirrored, if offsets may be brought now."""
        at = self._here
        if at.desired == DesiredState.STOPPED or not at.mirror.standing.is_aligned:
            return None
        epoch = LeaderEpoch(at.log.epochs.latest)
        return LocalRange(Offset(at.log.start), Offset(at.log.end), epoch, epoch)
