"""What must hold of a mirrored partition at every step."""

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from support.simulated.log import Batch
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.policy import GapPolicy
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.mirroring.shard import WriteState
from twinlog.mirroring.states import MirrorState

if TYPE_CHECKING:
    from support.simulated.destination import Destination

_S = MirrorState
MAY_CUT = (_S.LOG_ALIGNMENT, _S.ULE_RECOVERY, _S.MIRRORING)


class Rules:
    """Looks at one destination; ``mirrors_all`` is whether all its records are the source's."""

    def __init__(self, destination: "Destination") -> None:
        self._at = destination
        self.mirrors_all = False
        self._mirrored_up_to: int | None = None
        """Where the mirrored records end, once a stop has said so."""
        self._on_all_replicas = self._on_in_sync_replicas = -1
        """The version of the log that they have."""

    def forget(self) -> None:
        """Forget what was mirrored: the mirror is deleted, and nothing of it is known any more."""
        self.mirrors_all, self._mirrored_up_to = False, None

    def _must(self, holds: bool, what: str) -> None:  # noqa: FBT001 - it is all there is to say
        assert holds, f"{what}: {self._at.tell()}"

    # At every change of the log

    def check(self) -> None:
        """What is mirrored is a part of a line of the source's records; nothing else is there."""
        batches = self._at.log.batches
        for before, batch in pairwise(batches):
            self._must(before.epoch <= batch.epoch, f"{batch} after {before}")
        if not self.mirrors_all and self._mirrored_up_to is None:
            return
        self._check_start()
        end = self._mirrored_up_to
        mirrored = batches if end is None else [b for b in batches if b.base < end]
        if not mirrored:
            return
        for line in reversed(self._at.network.source.lines):
            first = bisect_left(line, mirrored[0].base, key=lambda b: b.base)
            if line[first : first + len(mirrored)] == mirrored:
                return
        self._must(False, "not a part of the source's records")

    def _check_start(self) -> None:
        """No record of the source's is left out at the beginning, unless the operator wants it."""
        at, source = self._at, self._at.network.source
        if not self.mirrors_all or not source.is_same_topic or source.lost_tails:
            return
        noted = at.coordinator.known.start
        wanted = source.log.start if noted is None else max(noted.offset, source.log.start)
        self._must(at.log.start <= wanted, f"begins beyond {wanted}")

    # Orders

    def mirrored(self, effect: do.BeginAt | do.Append | do.RaiseLogStart) -> None:
        """The source's records are taken only while MIRRORING, and never among producers'."""
        state = self._at.mirror.state
        self._must(state == _S.MIRRORING, f"{type(effect).__name__} while {state.name}")
        self._must(not self._at.is_writable, "mirrored although it is writable")
        self._must(self.mirrors_all, "mirrored into a log that is not known to be the source's")
        if isinstance(effect, do.BeginAt):
            self._must(self._at.log.start == self._at.log.end, "records dropped by BeginAt")

    def own_written(self, kind: str) -> None:
        """Our own records come after the last mirror epoch, in a higher one; the reset last."""
        at = self._at
        self._must(at.own_epoch >= at.log.epochs.latest, "written in an epoch that has been")
        if kind == "data":
            return
        last = at.coordinator.known.last_mirror_epoch
        self._must(at.mirror.state == _S.STOPPING, f"{kind} written while {at.mirror.state.name}")
        assert last is not None, f"{kind} written before the last mirror epoch was committed"
        self._must(at.own_epoch > last.epoch, f"{kind} written before the epoch rose")
        own = [b for b in at.log.batches if b.base >= last.log_end]
        self._must(all(b.kind != "reset" for b in own), f"{kind} written after a reset")

    def cut(self, cut: do.TruncateTo | do.RestartAt) -> None:
        """Records go when they may, told of before, and saved unless the source has told them."""
        at, log = self._at, self._at.log
        state = at.mirror.state
        self._must(state in MAY_CUT, f"cut while {state.name}")
        self._must(not at.is_writable, "cut although it is writable")
        gone = log.tail_from(log.start if isinstance(cut, do.RestartAt) else cut.end)
        if isinstance(cut, do.TruncateTo):
            self._must(log.start <= cut.end <= log.end, f"cut at {cut.end}")
            self._must(state != _S.MIRRORING, "cut while MIRRORING")
        told = at.coordinator.known.losses
        for batch in gone:
            covers = any(loss.first <= batch.last and batch.base < loss.end for loss in told)
            self._must(covers, f"{batch} is cut off without a word")
            self._must(self._is_elsewhere(batch), f"{batch} is cut off and nowhere else")
        if isinstance(cut, do.RestartAt) and state == _S.MIRRORING and cut.start > log.end:
            self._must(at.policy.gap == GapPolicy.CONTINUE, "jumped though the policy is fail")
            gap = any(loss.kind == "gap" and loss.end == cut.start for loss in told)
            self._must(gap, f"jumped to {cut.start} without a word")
        if isinstance(cut, do.RestartAt) and cut.ours_from is None:
            self._must(not self._at_source(gone), f"{gone} dropped, and the source has them")

    def _is_elsewhere(self, batch: Batch) -> bool:
        """Tell whether a batch is in a saved tail, or came from the source."""
        return any(batch in tail for tail in self._at.tails) or any(
            batch in line for line in self._at.network.source.lines
        )

    def _at_source(self, batches: list[Batch]) -> bool:
        start = self._at.network.source.log.start
        line = self._at.network.source.lines[-1]
        return any(b.last >= start and b in line for b in batches)

    def replicated(self, event: on.Event) -> None:
        """Take in that replicas have the log as it is."""
        if isinstance(event, on.ReplicasConverged):
            self._on_all_replicas = self._at.log.version
        self._on_in_sync_replicas = self._at.log.version

    def power_cut(self, before: int) -> None:
        """Take in that this replica alone lost records: what the others have, they still have."""
        if self._on_all_replicas == before:
            self._on_all_replicas = self._at.log.version

    # What is committed

    def state_written(self, before: MirrorState, wanted: WriteState) -> None:
        """Take in what a state says of the log."""
        if wanted.state == _S.MIRRORING:
            if before == _S.ULE_RECOVERY:
                have_all = self._on_all_replicas == self._at.log.version
                self._must(have_all, "recovered before every replica had the log")
            self.mirrors_all, self._mirrored_up_to = True, None
        elif wanted.state == _S.ULE_RECOVERY:
            self._must(self._at.policy.supports_unclean_election, "recovers though it may not")
        elif wanted.state in (_S.LOG_ALIGNMENT, _S.UNKNOWN):
            self.forget()
        elif wanted.state == _S.STOPPED:
            self._stopped()
        self.check()

    def last_written(self, last: LastMirrorEpoch) -> None:
        """From now on what is mirrored ends there; it is looked at when the stop is done."""
        if self.mirrors_all or self._mirrored_up_to is not None:
            self._mirrored_up_to = last.log_end
        self.mirrors_all = False

    def _stopped(self) -> None:
        """A stop has left one reset, no open transaction, and all of its own in a new epoch."""
        log, last = self._at.log, self._at.coordinator.known.last_mirror_epoch
        assert last is not None, f"stopped without a last mirror epoch: {self._at.tell()}"
        own = [b for b in log.batches if b.base >= last.log_end]
        resets = [b for b in own if b.kind == "reset"]
        self._must(last.log_end <= log.end, f"{last} beyond the log")
        if self._mirrored_up_to is not None:
            mirrored = [b for b in log.batches if b.base < last.log_end]
            if mirrored:
                found = mirrored[-1]
                self._must(found.epoch == last.epoch and found.last < last.log_end, f"{last}")
        self._must(len(resets) == 1, f"resets of a stop: {resets}")
        are_in_sync = self._on_in_sync_replicas == log.version
        self._must(are_in_sync, "stopped before it was replicated")
        self._must(not log.open_transactions, "stopped with an open transaction")
        self._must(all(b.epoch > last.epoch for b in own), f"{own} not above {last}")
