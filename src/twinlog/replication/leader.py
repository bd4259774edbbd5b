"""LeaderReplica: follows the progress of a partition's copies, and says what is committed.

One copy or many, the code is the same: a leader alone in its ISR commits what it appends.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from twinlog.model.ids import BrokerId, LeaderEpoch, Offset

NEVER_MS: Final = -1


@dataclass(slots=True)
class FollowerProgress:
    """What the leader knows of one follower's copy.

    ``caught_up_ms`` is the last time at which the follower had everything that the leader had
    when the follower asked. Followers only ever ask, so their log end is where they fetch from.
    """

    log_end: Offset = Offset(-1)
    log_start: Offset = Offset(-1)
    caught_up_ms: int = NEVER_MS
    asked_at_ms: int = NEVER_MS
    leader_end_when_asked: Offset = Offset(0)


class LeaderReplica:
    """The leader's side of one partition's replication, in one leader epoch.

    Invariant: ``log_start <= high_watermark <= log_end``; the high watermark falls only when the
    log is truncated below it, which only a mirror's partition does.
    """

    __slots__ = (
        "_followers",
        "_isr",
        "_leader_since_ms",
        "high_watermark",
        "leader_epoch",
        "log_end",
        "log_start",
        "me",
    )

    def __init__(  # noqa: PLR0913 - all of it is what a leader begins with
        self,
        me: BrokerId,
        *,
        leader_epoch: LeaderEpoch,
        replicas: Iterable[BrokerId],
        isr: Iterable[BrokerId],
        log_start: Offset,
        log_end: Offset,
        high_watermark: Offset,
        now_ms: int,
    ) -> None:
        """Begin to lead with the log as it is and the high watermark last known."""
        self.me = me
        self.leader_epoch = leader_epoch
        self.log_start = log_start
        self.log_end = log_end
        self.high_watermark = max(log_start, min(high_watermark, log_end))
        self._leader_since_ms = now_ms
        self._followers = {broker: FollowerProgress() for broker in replicas if broker != me}
        self._isr = frozenset(isr)
        assert me in self._isr, f"broker {me} leads but is not in the ISR {sorted(self._isr)}"
        self._advance()

    @property
    def isr(self) -> frozenset[BrokerId]:
        """The brokers whose copies must have a record before it is committed; the leader's too."""
        return self._isr

    @property
    def followers(self) -> Mapping[BrokerId, FollowerProgress]:
        """What is known of each follower; not to be written to."""
        return self._followers

    def log_changed(self, log_start: Offset, log_end: Offset) -> bool:
        """Note that the leader's log has grown, was cut, or starts elsewhere; True if HW moved."""
        assert log_start <= log_end, f"a log from {log_start} to {log_end}"
        before = self.high_watermark
        self.log_start = log_start
        self.log_end = log_end
        self.high_watermark = max(log_start, min(before, log_end))
        self._advance()
        return self.high_watermark != before

    def follower_fetched(
        self, broker: BrokerId, fetch_offset: Offset, follower_start: Offset, now_ms: int
    ) -> bool:
        """Note that a follower asks for records from ``fetch_offset`` on; True if HW moved."""
        progress = self._followers.get(broker)
        if progress is None:
            return False  # not (or no longer) assigned: it counts for nothing
        if fetch_offset >= self.log_end:
            progress.caught_up_ms = now_ms
        elif progress.asked_at_ms != NEVER_MS and fetch_offset >= progress.leader_end_when_asked:
            # It has all there was when it last asked: then it was caught up (KIP-16).
            progress.caught_up_ms = max(progress.caught_up_ms, progress.asked_at_ms)
        progress.log_end = fetch_offset
        progress.log_start = follower_start
        progress.asked_at_ms = now_ms
        progress.leader_end_when_asked = self.log_end
        return self._advance()

    def isr_changed(self, isr: Iterable[BrokerId]) -> bool:
        """Take in the ISR that the cluster has agreed on; True if the high watermark moved."""
        self._isr = frozenset(isr)
        assert self.me in self._isr, f"leader {self.me} is not in the ISR {sorted(self._isr)}"
        return self._advance()

    def proposed_isr(self, now_ms: int, lag_ms_max: int) -> frozenset[BrokerId] | None:
        """Give the ISR as it should be by now; None when it is so already.

        A follower leaves when it has not been caught up for longer than ``lag_ms_max``, and comes
        back when it has everything up to the high watermark.
        """
        wanted = {self.me}
        for broker, progress in self._followers.items():
            if broker in self._isr:
                caught_up_ms = max(progress.caught_up_ms, self._leader_since_ms)
                if progress.log_end == self.log_end or now_ms - caught_up_ms <= lag_ms_max:
                    wanted.add(broker)
            elif progress.log_end >= self.high_watermark:
                wanted.add(broker)
        return None if wanted == self._isr else frozenset(wanted)

    def is_committed(self, end: Offset) -> bool:
        """Tell whether all below ``end`` is on every in-sync copy: what acks=all waits for."""
        return self.high_watermark >= end

    def has_enough_copies(self, min_insync_replicas: int) -> bool:
        """Tell whether acks=all may be promised at all (``min.insync.replicas``)."""
        return len(self._isr) >= min_insync_replicas

    def low_watermark(self) -> Offset:
        """Give the lowest log start of all live copies, as DeleteRecords answers it."""
        starts = [p.log_start for b, p in self._followers.items() if b in self._isr]
        return min([self.log_start, *starts])

    def _advance(self) -> bool:
        """Raise the high watermark to what every in-sync copy has."""
        committed = self.log_end
        for broker, progress in self._followers.items():
            if broker in self._isr and progress.log_end < committed:
                committed = progress.log_end
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True
