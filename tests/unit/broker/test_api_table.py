from twinlog.broker.api_table import ROWS, spoken
from twinlog.wire.api_keys import ApiKey

# Older librdkafkas look for exactly these versions before they use a feature.
LIBRDKAFKA_LOOKS_FOR = {
    ApiKey.PRODUCE: (2, 3, 7),
    ApiKey.FETCH: (4, 10),
    ApiKey.FIND_COORDINATOR: (0,),
    ApiKey.JOIN_GROUP: (0,),
    ApiKey.SYNC_GROUP: (0,),
    ApiKey.HEARTBEAT: (0,),
    ApiKey.LEAVE_GROUP: (0,),
    ApiKey.OFFSET_COMMIT: (2,),
    ApiKey.OFFSET_FETCH: (1,),
    ApiKey.LIST_OFFSETS: (1,),
    ApiKey.INIT_PRODUCER_ID: (0,),
    ApiKey.API_VERSIONS: (0,),
}


def test_every_api_has_one_row() -> None:
    keys = [row.api.key for row in ROWS]
    assert len(keys) == len(set(keys))


def test_what_is_told_is_in_the_order_of_the_keys() -> None:
    keys = [api.key for api in spoken()]
    assert keys == sorted(keys)


def test_old_clients_find_the_versions_they_look_for() -> None:
    told = {api.key: api for api in spoken()}
    for key, versions in LIBRDKAFKA_LOOKS_FOR.items():
        for version in versions:
            assert told[key].min_version <= version <= told[key].max_version, key.name
