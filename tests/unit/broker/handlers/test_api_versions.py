from pathlib import Path

import pytest

from support.brokers import local_broker
from twinlog.broker.api_table import ROWS
from twinlog.model.errors import ErrorCode
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest

NAMED = ApiVersionsRequest(client_software_name="my-client", client_software_version="1.0")


@pytest.mark.parametrize("version", range(API_VERSIONS.max_version + 1))
async def test_every_row_of_the_table_is_told(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path) as broker:
        answer = await broker.ask(API_VERSIONS, NAMED, version)
        told = {a.api_key: (a.min_version, a.max_version) for a in answer.api_keys}
        assert told == {r.api.key: (r.advertised_min, r.api.max_version) for r in ROWS}
        assert told[ApiKey.PRODUCE][0] == 0


async def test_a_client_without_a_proper_name_is_refused(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        unnamed = ApiVersionsRequest(client_software_name="-", client_software_version="1")
        answer = await broker.ask(API_VERSIONS, unnamed, 3)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
