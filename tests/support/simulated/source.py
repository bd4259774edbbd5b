"""A partition of a Kafka cluster: leaders that come and go, records that are committed or not."""

from dataclasses import dataclass

from support.simulated.log import Batch, Log
from support.simulated.schedule import Schedule
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import LeaderEpoch, Offset

OLD_IN_A_ROW_MAX = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What a fetch brings: records up to the high watermark."""

    batches: list[Batch]
    high_watermark: int
    log_start: int


@dataclass(frozen=True, slots=True)
class Parted:
    """The source's word for: the epoch you fetched last ended earlier here."""


@dataclass(eq=False)
class Replica:
    """A broker that leads the partition, or thinks that it does."""

    node: int
    epoch: int
    log: Log
    shown: int
    """Its high watermark: nobody is told of records beyond."""
    line: list[Batch]
    """The records it has told of, or could have."""

    def show(self, up_to: int) -> None:
        """Raise the high watermark; from now on those records are told to who asks."""
        known = self.line[-1].last if self.line else -1
        self.line += [b for b in self.log.batches if known < b.last < up_to]
        self.shown = max(self.shown, up_to)

    @property
    def committed(self) -> int:
        """Where the records end that were told once; a new leader may not know that yet."""
        return max(self.shown, self.line[-1].last + 1 if self.line else 0)

    def check(self, epoch: int) -> ErrorCode | None:
        """Compare the epoch a client names with ours (KIP-320)."""
        if epoch == self.epoch or epoch < 0:
            return None
        is_old = epoch < self.epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH

    def write(self, identity: int, schedule: Schedule, records_max: int) -> None:
        """Write a batch of some records; sometimes a transaction begins or ends."""
        chance, log = schedule.random, self.log
        has_hole = records_max > 1 and chance.random() < 0.1
        base = log.end + has_hole * chance.randint(1, 5)
        kind = "data"
        if chance.random() < 0.2:
            kind = "end" if log.open_transactions else "open"
        count = 1 if kind == "end" else chance.randint(1, records_max)
        log.append(Batch(base, base + count - 1, self.epoch, identity, kind))


class KafkaSource:
    """The source's partition: its leader, and one that was deposed and does not know it yet."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        chance = schedule.random
        self.is_dark = False
        self.tells_divergence = chance.random() < 0.6
        """Whether fetches are told that logs have parted; Kafka before 2.7 did not."""
        self.tells_epochs = not self.tells_divergence or chance.random() < 0.6
        """Whether metadata has leader epochs; other brokers than Kafka may leave them out."""
        self.fences = not self.tells_divergence or chance.random() < 0.7
        """Whether fetches in another epoch are refused."""
        self.has_ids = chance.random() < 0.7
        self.node_count = chance.choice((1, 2, 2))
        """Where there is one only, it is elected again, perhaps without its last records."""
        self.records_max = chance.choice((1, 3, 8))
        """In a batch; where all are alike, those of two histories begin at the same offsets."""
        self.topic = 0
        """Rises when the topic is deleted and created again."""
        self.topic_mirrored = 0
        self.lost_tails = 0
        self.identity = 0
        self._has_lied = False
        self._old_in_a_row = 0
        self._lines: list[list[Batch]] = [[]]
        self.deposed: Replica | None = None
        self.leader = Replica(0, chance.randint(0, 4), Log(), 0, self._lines[0])
        self._begin_epoch()

    @property
    def log(self) -> Log:
        """The leader's log."""
        return self.leader.log

    @property
    def lines(self) -> list[list[Batch]]:
        """Every line of records it ever told."""
        return self._lines

    @property
    def is_same_topic(self) -> bool:
        """Whether its topic is the one that is mirrored."""
        return self.topic == self.topic_mirrored

    # What happens to it

    def produce(self) -> None:
        """Write a batch; most are committed at once."""
        self.identity += 1
        self.leader.write(self.identity, self._schedule, self.records_max)
        if self._schedule.random.random() < 0.8:
            self.commit()

    def produce_to_deposed(self) -> None:
        """Write to a leader that was deposed: in-sync alone, it takes what the others never see."""
        if self.deposed is not None:
            self._schedule.faults["written to a deposed leader"] += 1
            self.identity += 1
            self.deposed.write(self.identity, self._schedule, self.records_max)
            self.deposed.show(self.deposed.log.end)

    def commit(self) -> None:
        """Let all in-sync replicas have everything."""
        self.leader.show(self.log.end)

    def trim(self) -> None:
        """Delete old records, also within a batch."""
        if self.leader.shown > self.log.start:
            start = self._schedule.random.randint(self.log.start, self.leader.shown)
            self.log.raise_start_to(start)

    def change_leader(self) -> None:
        """Elect one that has all that is committed, and perhaps not the rest."""
        chance = self._schedule.random
        self._schedule.faults["leader changed"] += 1
        log, committed = self.log.copy(), self.leader.committed
        if chance.random() < 0.5:
            log.truncate_to(committed)
        # The new leader knows how far is committed only when its followers have asked.
        self._elect(log, committed if chance.random() < 0.7 else log.start)

    def lose_tail(self) -> None:
        """Elect one that lacks records that were committed."""
        self._schedule.faults["unclean election"] += 1
        lost = self._schedule.random.randint(1, 3)
        log = self.log.copy()
        keep = log.batches[: max(0, len(log.batches) - lost)]
        log.truncate_to(max(keep[-1].last + 1 if keep else log.start, log.start))
        self.lost_tails += 1
        self._elect(log, min(self.leader.shown, log.end), is_clean=False)
        if self._schedule.random.random() < 0.5:  # producers have waited for a leader
            for _ in range(self._schedule.random.randint(1, 6)):
                self.produce()

    def recreate(self, epoch: int = 0) -> None:
        """Delete the topic and create one of the same name."""
        self._schedule.faults["topic recreated"] += 1
        self.topic += 1
        self.deposed = None
        self._lines.append([])
        self.leader = Replica(0, epoch, Log(), 0, self._lines[-1])
        self._begin_epoch()

    def forget_deposed(self) -> None:
        """Let the deposed leader learn that it is none."""
        self.deposed = None

    def settle(self) -> None:
        """End all trouble."""
        self.is_dark = False
        self.deposed = None
        self.commit()

    def _elect(self, log: Log, shown: int, *, is_clean: bool = True) -> None:
        before, chance = self.leader, self._schedule.random
        node = chance.randrange(self.node_count)
        self.deposed = before if node != before.node and chance.random() < 0.5 else None
        line = before.line
        if self.deposed is not None or not is_clean:
            # What the one tells from now on, the other does not.
            line = [b for b in line if b.last < log.end]
            self._lines.append(line)
        epoch = before.epoch + chance.choice((1, 1, 2, 3, 14))
        self.leader = Replica(node, epoch, log, shown, line)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        """A leader notes its epoch at the log end before it writes anything."""
        self.log.epochs.assign(LeaderEpoch(self.leader.epoch), Offset(self.log.end))

    # What it answers

    def metadata(self) -> tuple[int, int] | ErrorCode:
        """Give leader and epoch, perhaps as they were before."""
        if self.has_ids and not self.is_same_topic:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        leader, is_old = self.leader, False
        if self.deposed is not None and self._old_in_a_row < OLD_IN_A_ROW_MAX:
            is_old = self._schedule.fails("old metadata", 0.3)
        self._old_in_a_row = self._old_in_a_row + 1 if is_old else 0
        if is_old and self.deposed is not None:
            leader = self.deposed
        return leader.node, leader.epoch if self.tells_epochs else -1

    def _replica(self, node: int, epoch: int) -> Replica | ErrorCode:
        for replica in (self.leader, self.deposed):
            if replica is not None and replica.node == node:
                return replica.check(epoch) or replica
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def range(self, node: int, epoch: int) -> tuple[int, int] | ErrorCode:
        """Give where the records begin and end."""
        replica = self._replica(node, epoch)
        if not isinstance(replica, Replica):
            return replica
        start, end = replica.log.start, replica.shown
        # A replica that is behind, or ahead, answers: once, since of two answers one is believed.
        if not self._has_lied and self._schedule.fails("wrong log start", 0.1):
            start, self._has_lied = end, True
        return start, end

    def offset_at(self, node: int, epoch: int, timestamp_ms: int) -> int | ErrorCode | None:
        """Give where the first record of a time lies; a batch's identity is its time."""
        replica = self._replica(node, epoch)
        if not isinstance(replica, Replica):
            return replica
        shown = (b for b in replica.log.batches if b.last < replica.shown)
        return next((b.base for b in shown if b.identity >= timestamp_ms), None)

    def epoch_end(self, node: int, epoch: int, asked: int) -> tuple[int, int] | ErrorCode:
        """Give the highest epoch at or below ``asked``, and its end."""
        replica = self._replica(node, epoch)
        if not isinstance(replica, Replica):
            return replica
        log = replica.log
        return log.epochs.end_of(LeaderEpoch(asked), Offset(log.end))

    def fetch(self, node: int, epoch: int, offset: int, last_epoch: int) -> "FetchAnswer":
        """Give what follows an offset."""
        if self.has_ids and not self.is_same_topic:
            return ErrorCode.UNKNOWN_TOPIC_ID
        replica = self._replica(node, epoch if self.fences else -1)
        if not isinstance(replica, Replica):
            return replica
        log = replica.log
        if last_epoch >= 0 and self.tells_divergence:
            found, end = log.epochs.end_of(LeaderEpoch(last_epoch), Offset(log.end))
            if found >= 0 and (found != last_epoch or end < offset):
                return Parted()
        if not log.start <= offset <= log.end:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        shown = [b for b in log.batches if offset <= b.last < replica.shown]
        return Answer(shown[: self._schedule.random.randint(0, 3)], replica.shown, log.start)

    def mirrors(self) -> tuple[None, None] | ErrorCode:
        """Kafka knows of no mirrors."""
        return None, None


FetchAnswer = Answer | Parted | ErrorCode
