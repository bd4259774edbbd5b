"""The stop of one partition, step by step, each decided from what is durable.

KIP-1279 section "Failover", with our decisions: after STOPPING is committed and the fetcher gone,
(LME, log end) is committed; our epoch is raised above every epoch in the log; open transactions are
aborted in it; a producer reset is written; STOPPED is committed. Whoever takes over in the middle
asks ``next_step`` again and goes on where the last one ended. Nothing is asked of the source.
"""

from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.effects import (
    AppendAbortMarkers,
    AppendPidReset,
    BumpEpoch,
    Effect,
    SaveLastMirrorEpoch,
)
from twinlog.mirroring.records import LastMirrorEpoch
from twinlog.model.ids import NO_EPOCH, LeaderEpoch


def next_step(
    facts: LogFacts,
    saved: LastMirrorEpoch | None,
    own_epoch: LeaderEpoch,
    turn: int,
    *,
    was_mirroring: bool,
) -> Effect | None:
    """Give the next order, or None when all is written and only has to be committed.

    ``saved`` is of this stop: it is deleted together with the step to MIRRORING. A partition that
    had not begun ``was_mirroring`` holds nothing that came from the source by this mirror.
    """
    if saved is None or saved.log_end > facts.end:
        epoch = facts.latest_epoch if was_mirroring else NO_EPOCH
        return SaveLastMirrorEpoch(epoch, facts.end)
    if own_epoch <= saved.epoch:
        return BumpEpoch(LeaderEpoch(saved.epoch + 1))
    if facts.open_transactions:
        return AppendAbortMarkers(turn)
    if not facts.has_pid_reset:
        return AppendPidReset(turn)
    return None
