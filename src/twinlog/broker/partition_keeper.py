"""Opens, leads and closes the partitions of this broker as the cluster image says."""

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from twinlog.broker.clock import Clock
from twinlog.broker.log_settings import log_settings, min_insync_replicas
from twinlog.broker.partition_news import PartitionNews
from twinlog.broker.partitions import Partition, Partitions
from twinlog.cluster.changes import BrokerConfigSet, Change, TopicDeleted, TopicSet
from twinlog.cluster.configs import broker_settings
from twinlog.cluster.facts import PartitionFact, TopicFact
from twinlog.cluster.image import ClusterImage
from twinlog.config.declare import Settings
from twinlog.model.errors import ApiError, DiskError
from twinlog.model.ids import BrokerId, Offset, TopicName, TopicPartition
from twinlog.replication.leader import LeaderReplica
from twinlog.storage.log import PartitionLog
from twinlog.storage.logs import Logs
from twinlog.storage.settings import LogSettings

log = logging.getLogger(__name__)


class PartitionKeeper:
    """Keeps ``partitions`` and the logs on disk in step with the image."""

    def __init__(
        self,
        broker_id: BrokerId,
        settings: Settings,
        logs: Logs,
        partitions: Partitions,
        news: PartitionNews,
        clock: Clock,
    ) -> None:
        self._broker_id: Final = broker_id
        self._static: Final = settings
        self._settings = settings
        self._logs: Final = logs
        self._partitions: Final = partitions
        self._news: Final = news
        self._clock: Final = clock

    def begin(self, image: ClusterImage) -> None:
        """Open everything that the image gives this broker."""
        self._settings = broker_settings(self._static, image, self._broker_id)
        for topic in image.topics.values():
            _take_all(self._keep(topic))

    def follow(
        self, before: ClusterImage, after: ClusterImage, changes: Iterable[Change]
    ) -> Iterator[None]:
        """Carry out what the changes mean for the partitions of this broker, step by step.

        A step opens one partition, half a millisecond's work. Nothing is done before it is taken.
        """
        names: dict[TopicName, None] = {}
        for change in changes:
            match change:
                case TopicSet(topic):
                    names[topic.name] = None
                case TopicDeleted(name):
                    names[name] = None
                case BrokerConfigSet():  # may be the default of any topic's setting
                    names.update(dict.fromkeys(after.topics))
                case _:
                    pass
        yield from self._follow_topics(names, before, after)

    def catch_up(self, before: ClusterImage, after: ClusterImage) -> None:
        """Carry out whatever differs between two images."""
        _take_all(self._follow_topics({**before.topics, **after.topics}, before, after))

    def _follow_topics(
        self, names: Iterable[TopicName], before: ClusterImage, after: ClusterImage
    ) -> Iterator[None]:
        if before.broker_configs is not after.broker_configs:
            self._settings = broker_settings(self._static, after, self._broker_id)
        for name in names:
            old, new = before.topics.get(name), after.topics.get(name)
            if old is not None and (new is None or new.id != old.id):
                self._drop(old)
            if new is not None:
                yield from self._keep(new)

    def _drop(self, topic: TopicFact) -> None:
        for index in range(len(topic.partitions)):
            of = TopicPartition(topic.name, index)
            if self._partitions.remove(of) is not None:
                self._news.tell(of, topic.id)
                self._delete(of)

    def _delete(self, of: TopicPartition) -> None:
        try:
            self._logs.delete(of, self._clock.uuid())
        except DiskError as error:
            # It is set aside when a topic gets its name, or found without a topic at a start.
            fields = {"partition": str(of), "why": str(error)}
            log.error("files of a deleted partition are still there", extra=fields)
            return
        log.info("partition deleted", extra={"partition": str(of)})

    def _keep(self, topic: TopicFact) -> Iterator[None]:
        settings = log_settings(topic.config, self._settings)
        min_isr = min_insync_replicas(topic.config, self._settings)
        for index, fact in enumerate(topic.partitions):
            if self._broker_id != fact.leader:
                continue
            of = TopicPartition(topic.name, index)
            partition = self._partitions.find(of)
            is_new = partition is None
            if partition is None:
                partition = self._open(of, topic, fact, settings)
            elif partition.leader_epoch < fact.leader_epoch:
                self._partitions.traffic.isr_changed(len(partition.replica.isr), len(fact.isr))
                partition.lead(self._replica(partition.log, fact, partition.high_watermark))
            if partition is None:
                continue
            partition.log.settings = settings
            partition.min_insync_replicas = min_isr
            partition.follow_mirror(topic.mirror)
            if is_new:
                yield

    def _open(
        self, of: TopicPartition, topic: TopicFact, fact: PartitionFact, settings: LogSettings
    ) -> Partition | None:
        try:
            self._set_aside_other_topics(of, topic)
            opened = self._logs.get(of) or self._logs.create(of, topic.id, settings)
        except (DiskError, ApiError) as error:
            # The other partitions go on; this one is not led here until the disk is mended.
            log.error("partition cannot be opened", extra={"partition": str(of), "why": str(error)})
            return None
        replica = self._replica(opened, fact, self._logs.high_watermark_of(of))
        partition = Partition(of, topic.id, opened, replica, self._news)
        partition.mirror = topic.mirror
        self._partitions.add(partition)
        self._news.tell(of, topic.id)
        return partition

    def _set_aside_other_topics(self, of: TopicPartition, topic: TopicFact) -> None:
        """Let no topic inherit the records of one that had its name before."""
        found = self._logs.topic_id_of(of)
        if found is not None and found != topic.id:
            folder = self._logs.set_aside(of, self._clock.uuid())
            fields = {"partition": str(of), "other_topic": str(found), "folder": folder}
            log.warning("log of another topic of the same name set aside", extra=fields)

    def _replica(
        self, opened: PartitionLog, fact: PartitionFact, high_watermark: Offset
    ) -> LeaderReplica:
        return LeaderReplica(
            self._broker_id,
            leader_epoch=fact.leader_epoch,
            replicas=fact.replicas,
            isr=fact.isr,
            log_start=opened.start,
            log_end=opened.end,
            high_watermark=high_watermark,
            now_ms=self._clock.now_ms(),
        )


def _take_all(steps: Iterator[None]) -> None:
    for _ in steps:
        pass
