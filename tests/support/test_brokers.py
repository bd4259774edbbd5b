from pathlib import Path

from support.brokers import local_broker
from twinlog.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest


async def test_a_local_broker_answers_and_stops_and_starts_again(tmp_path: Path) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    for _ in range(2):
        async with local_broker(tmp_path) as broker:
            answer = await broker.ask(API_VERSIONS, request)
            assert answer.error_code == 0
