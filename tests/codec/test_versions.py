"""Every request overlaps what Kafka 2.1 and Kafka 4.4 speak, and what old clients look for."""

from typing import Final

import pytest

from twinlog.wire.api_keys import MIRROR_KEYS_START, ApiKey
from twinlog.wire.messages.every import APIS

IN_KAFKA_2_1_AND_4_4: Final = {
    ApiKey.PRODUCE: ((0, 7), (3, 13)),
    ApiKey.FETCH: ((0, 10), (4, 18)),
    ApiKey.LIST_OFFSETS: ((0, 4), (1, 11)),
    ApiKey.METADATA: ((0, 7), (0, 13)),
    ApiKey.OFFSET_COMMIT: ((0, 6), (2, 10)),
    ApiKey.OFFSET_FETCH: ((0, 5), (1, 10)),
    ApiKey.FIND_COORDINATOR: ((0, 2), (0, 6)),
    ApiKey.JOIN_GROUP: ((0, 3), (0, 9)),
    ApiKey.HEARTBEAT: ((0, 2), (0, 4)),
    ApiKey.LEAVE_GROUP: ((0, 2), (0, 5)),
    ApiKey.SYNC_GROUP: ((0, 2), (0, 5)),
    ApiKey.DESCRIBE_GROUPS: ((0, 2), (0, 6)),
    ApiKey.LIST_GROUPS: ((0, 2), (0, 5)),
    ApiKey.SASL_HANDSHAKE: ((0, 1), (0, 1)),
    ApiKey.API_VERSIONS: ((0, 2), (0, 4)),
    ApiKey.CREATE_TOPICS: ((0, 3), (2, 7)),
    ApiKey.DELETE_TOPICS: ((0, 3), (1, 6)),
    ApiKey.DELETE_RECORDS: ((0, 1), (0, 2)),
    ApiKey.INIT_PRODUCER_ID: ((0, 1), (0, 5)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ((0, 2), (2, 4)),
    ApiKey.DESCRIBE_ACLS: ((0, 1), (1, 3)),
    ApiKey.DESCRIBE_CONFIGS: ((0, 2), (1, 4)),
    ApiKey.ALTER_CONFIGS: ((0, 1), (0, 2)),
    ApiKey.DESCRIBE_LOG_DIRS: ((0, 1), (1, 5)),
    ApiKey.SASL_AUTHENTICATE: ((0, 0), (0, 2)),
    ApiKey.CREATE_PARTITIONS: ((0, 1), (0, 3)),
    ApiKey.DELETE_GROUPS: ((0, 1), (0, 3)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (None, (0, 1)),
    ApiKey.OFFSET_DELETE: (None, (0, 0)),
    ApiKey.DESCRIBE_CLUSTER: (None, (0, 2)),
    ApiKey.LIST_CONFIG_RESOURCES: (None, (0, 1)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (None, (0, 0)),
}
OF_KAFKA: Final = [api for api in APIS if api.key < MIRROR_KEYS_START]


@pytest.mark.parametrize("api", OF_KAFKA, ids=lambda api: api.key.name)
def test_a_request_is_spoken_by_kafka_2_1_and_by_kafka_4_4(api: object) -> None:
    row = next(row for row in OF_KAFKA if row is api)
    old, new = IN_KAFKA_2_1_AND_4_4[row.key]
    assert (row.min_version, row.max_version) == new
    if old is not None:
        assert max(row.min_version, old[0]) <= min(row.max_version, old[1])


def test_every_request_is_declared_once() -> None:
    keys = [api.key for api in APIS]
    assert len(keys) == len(set(keys))


def test_every_mirror_request_is_declared_flexible_in_v0() -> None:
    declared = {api.key: api for api in APIS}
    for key in ApiKey:
        if key > MIRROR_KEYS_START:
            api = declared[key]
            assert (api.min_version, api.max_version, api.flexible_since) == (0, 0, 0)
