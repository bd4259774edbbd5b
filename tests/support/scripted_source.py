"""A source cluster of one scripted broker, with the topics and leaders that a test gives it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from support.scripted_broker import ScriptedBroker, serving
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataResponse,
    MetadataTopic,
)

NODE = 7


class ScriptedSource(ScriptedBroker):
    """One broker, number 7, that leads every partition of ``topics``: name to (id, epochs)."""

    def __init__(self, *, ranges: dict[ApiKey, tuple[int, int]] | None = None) -> None:
        super().__init__(ranges=ranges)
        self.cluster_id = "source-cluster"
        self.topics: dict[str, tuple[UUID, list[int]]] = {}
        self.has_leader = True
        self.hidden: set[str] = set()
        """Topics that whoever asks may not describe."""
        self.on(METADATA, self._metadata)

    def _metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        if request.topics is None:
            names: list[str | None] = [name for name in self.topics if name not in self.hidden]
        else:
            names = [topic.name for topic in request.topics]
        node = MetadataBroker(node_id=NODE, host=self.address.host, port=self.address.port)
        return MetadataResponse(
            brokers=(node,),
            cluster_id=self.cluster_id,
            controller_id=NODE,
            topics=tuple(self._topic(name or "") for name in names),
        )

    def _topic(self, name: str) -> MetadataTopic:
        if name in self.hidden:
            return MetadataTopic(error_code=29, name=name, partitions=())
        if name not in self.topics:
            return MetadataTopic(error_code=3, name=name, partitions=())
        topic_id, epochs = self.topics[name]
        return MetadataTopic(
            name=name,
            topic_id=topic_id,
            partitions=tuple(
                MetadataPartition(
                    partition_index=index,
                    leader_id=NODE if self.has_leader else -1,
                    leader_epoch=epoch,
                    replica_nodes=(NODE,),
                    isr_nodes=(NODE,),
                )
                for index, epoch in enumerate(epochs)
            ),
        )


@asynccontextmanager
async def scripted_source(
    *, ranges: dict[ApiKey, tuple[int, int]] | None = None
) -> AsyncIterator[ScriptedSource]:
    """Let a source with topic ``t`` of two partitions listen."""
    source = ScriptedSource(ranges=ranges)
    source.topics["t"] = (UUID(int=42), [3, 4])
    async with serving(source):
        yield source
