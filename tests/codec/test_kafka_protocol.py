"""ApiVersions and Metadata have the bytes that kafka-protocol 0.1 gives them, where it is right.

That library knows these two only, ApiVersions to v3 and Metadata to v12. Left out are Metadata
v10-12, since it cannot write a topic id, and null in flexible versions, which it writes as -1.
"""

from types import SimpleNamespace
from typing import Any, Final

import kafkaprotocol
import pytest

from twinlog.wire.codec import encode_bytes
from twinlog.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)
from twinlog.wire.schema import fields_of

MESSAGES: Final = [
    (API_VERSIONS, ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
    (
        API_VERSIONS,
        ApiVersionsResponse(
            error_code=35,
            api_keys=(
                ApiVersion(api_key=18, min_version=0, max_version=4),
                ApiVersion(api_key=3, min_version=1, max_version=13),
            ),
            throttle_time_ms=7,
        ),
        3,
    ),
    (
        METADATA,
        MetadataRequest(
            topics=(MetadataRequestTopic(name="orders"), MetadataRequestTopic(name="ä" * 100)),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        9,
    ),
    (
        METADATA,
        MetadataResponse(
            throttle_time_ms=1,
            brokers=(MetadataBroker(node_id=1, host="one", port=9092, rack="r"),),
            cluster_id="cluster",
            controller_id=1,
            topics=(
                MetadataTopic(
                    error_code=5,
                    name="orders",
                    is_internal=True,
                    partitions=(
                        MetadataPartition(
                            partition_index=4,
                            leader_id=1,
                            leader_epoch=9,
                            replica_nodes=(1, 2, 3),
                            isr_nodes=(1,),
                            offline_replicas=(3,),
                        ),
                    ),
                    topic_authorized_operations=0x1FF,
                ),
            ),
            cluster_authorized_operations=0xF00,
        ),
        9,
    ),
]


@pytest.mark.parametrize(("api", "message", "last"), MESSAGES)
def test_the_bytes_are_those_of_kafka_protocol(api: Any, message: Any, last: int) -> None:
    kinds = getattr(kafkaprotocol, type(message).__name__)
    for version in range(last + 1):
        frame = encode_bytes(message, version, flexible=api.is_flexible(version))
        assert frame == kinds[version].pack(twin_of(message))


def twin_of(value: Any) -> Any:
    """Give the same values with an empty buffer of tags in every message."""
    if isinstance(value, tuple):
        return [twin_of(item) for item in value]
    if not hasattr(value, "__dataclass_fields__"):
        return value
    names = [field.name for field in fields_of(type(value))]
    return SimpleNamespace(
        _tagged_fields={}, **{name: twin_of(getattr(value, name)) for name in names}
    )
