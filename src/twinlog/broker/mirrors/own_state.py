"""What a mirrored partition reads and writes of itself in ``__mirror_state``."""

from dataclasses import dataclass, replace

from twinlog.broker.mirrors.work import MirrorWork
from twinlog.broker.partitions import Partition
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.records import LastMirrorEpoch, MirrorPartition, home_key
from twinlog.mirroring.shard import Known, WriteState

Save = do.SaveState | do.SaveLastMirrorEpoch | do.SaveStart


@dataclass(frozen=True, slots=True)
class OwnState:
    """The records of one partition; they live in the shard that the partition's key is at home in.

    What is written bears the leader epoch of the moment: a leader of before is fenced.
    """

    partition: Partition
    key: MirrorPartition
    work: MirrorWork

    async def read(self) -> Known:
        """Give what is durable. Raises ApiError, also while the shard is being loaded."""
        found: tuple[Known, ...] = await self.work.run_on_shard(
            home_key(self.key),
            lambda shard, _: shard.read_states([self.key]),
            self.work.write_timeout_s,
        )
        return found[0]

    async def write(self, save: Save) -> on.Event:
        """Write; give the event that it is committed. Raises ApiError."""
        if isinstance(save, do.SaveLastMirrorEpoch):
            return await self._write_last_mirror_epoch(save)
        if isinstance(save, do.SaveStart):
            return await self._write_start(save)
        write = WriteState(
            of=self.key,
            state=save.state,
            leader_epoch=self.partition.leader_epoch,
            expected_state_epoch=save.expected_state_epoch,
            previous=save.previous,
            error=save.error,
            retry_attempt=save.retry_attempt,
            failed_at_ms=self.work.clock.wall_ms(),
        )
        state_epoch: int = await self.work.run_on_shard(
            home_key(self.key), lambda shard, _: shard.write_state(write), self.work.write_timeout_s
        )
        return on.StateSaved(save.state, state_epoch)

    async def _write_last_mirror_epoch(self, save: do.SaveLastMirrorEpoch) -> on.Event:
        epoch = self.partition.leader_epoch
        last = LastMirrorEpoch(epoch=save.epoch, log_end=save.log_end, own_from=save.own_from)
        await self.work.run_on_shard(
            home_key(self.key),
            lambda shard, _: shard.write_last_mirror_epoch(self.key, epoch, last),
            self.work.write_timeout_s,
        )
        return on.LastMirrorEpochSaved(last)

    async def _write_start(self, save: do.SaveStart) -> on.Event:
        epoch, start = self.partition.leader_epoch, save.start
        if start is not None:
            start = replace(start, at_ms=start.at_ms or self.work.clock.wall_ms())
        await self.work.run_on_shard(
            home_key(self.key),
            lambda shard, _: shard.write_start(self.key, epoch, start),
            self.work.write_timeout_s,
        )
        return on.StartSaved(start, save.turn)
