"""What a broker that answers as told says of mirror ``m`` and its topic ``orders``."""

from collections.abc import Sequence
from typing import Any

from support.answering_broker import AnsweringBroker
from twinlog.wire.messages import configs, mirrors

TOPIC = "orders"


def lists_mirror(broker: AnsweringBroker, source: AnsweringBroker) -> None:
    """Have a mirror of the source's topic."""
    listed = mirrors.ListedMirror(
        mirror_name="m", source_bootstrap=source.bootstrap, topic_names=(TOPIC,)
    )
    broker.on(mirrors.LIST_CLUSTER_MIRRORS, mirrors.ListClusterMirrorsResponse(mirrors=(listed,)))


def partition_of(state: str, index: int = 0, **fields: Any) -> mirrors.DescribedMirrorPartition:
    """Describe one partition."""
    return mirrors.DescribedMirrorPartition(partition_index=index, state_value=state, **fields)


def description_of(
    *partitions: mirrors.DescribedMirrorPartition,
) -> mirrors.DescribeClusterMirrorsResponse:
    """Describe the mirror."""
    topic = mirrors.DescribedMirrorTopic(topic_name=TOPIC, partitions=partitions)
    return mirrors.DescribeClusterMirrorsResponse(
        mirrors=(mirrors.DescribedMirror(mirror_name="m", topics=(topic,)),)
    )


def filters(broker: AnsweringBroker, **patterns: str) -> None:
    """Have these list settings (``_`` for ``.``) of the mirror, and none of topics."""
    rows = tuple(
        configs.DescribedConfig(name=name.replace("_", "."), value=value)
        for name, value in patterns.items()
    )
    resource = configs.DescribedResource(resource_type=64, resource_name="m", configs=rows)
    broker.on(configs.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse(results=(resource,)))


def describes(broker: AnsweringBroker, *looks: Sequence[mirrors.DescribedMirrorPartition]) -> None:
    """Describe the mirror at each look; the last one stays."""
    left = list(looks)

    def answer(_: Any) -> mirrors.DescribeClusterMirrorsResponse:
        return description_of(*(left.pop(0) if len(left) > 1 else left[0]))

    broker.on(mirrors.DESCRIBE_CLUSTER_MIRRORS, answer)
