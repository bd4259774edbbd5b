from twinlog.broker.api_table import ROWS
from twinlog.broker.protocol_page import protocol_page


def test_every_request_stands_in_the_page_with_its_versions() -> None:
    page = protocol_page()
    for row in ROWS:
        name = row.api.request.__name__.removesuffix("Request")
        assert f"| {int(row.api.key)} | {name} | " in page


def test_produce_tells_that_v0_is_only_advertised() -> None:
    assert "| 0 | Produce | 0-13 (answered from 3 on) |" in protocol_page()
