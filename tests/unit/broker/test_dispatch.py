"""Dispatch is asked through a socket, with frames written by hand."""

import asyncio
import struct
from pathlib import Path

import pytest

from support.brokers import LocalBroker, local_broker
from twinlog.model.errors import ErrorCode
from twinlog.wire.api_keys import ApiKey
from twinlog.wire.codec import decode_response
from twinlog.wire.headers import encode_request_header, response_body_start
from twinlog.wire.messages.api_versions import API_VERSIONS
from twinlog.wire.messages.metadata import METADATA


async def exchange(broker: LocalBroker, frame: bytes) -> bytes | None:
    """Send one frame; give the answer's, or None when the connection was closed instead."""
    reader, writer = await asyncio.open_connection(broker.address.host, broker.address.port)
    writer.write(struct.pack(">i", len(frame)) + frame)
    try:
        async with asyncio.timeout(60):
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return None
    finally:
        writer.close()


@pytest.mark.parametrize("version", [5, 99, 32_767, -1])
async def test_an_unknown_version_of_api_versions_is_answered_in_its_oldest_form(
    tmp_path: Path, version: int
) -> None:
    async with local_broker(tmp_path) as broker:
        header = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 42, -1)
        answer = await exchange(broker, header + b"\x00anything at all")
        assert answer is not None
        assert struct.unpack_from(">i", answer) == (42,)
        body = decode_response(API_VERSIONS, answer, 0, 4)
        assert body.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(a.api_key, a.max_version) for a in body.api_keys] == [(18, 4)]


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhih", 9_999, 0, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + b"\x7f\xff\xff\xff",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, 30_000),
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -7),
    ],
    ids=["unknown api", "unknown version", "nonsense body", "client id cut", "negative length"],
)
async def test_what_cannot_be_understood_closes_the_connection_and_no_other(
    tmp_path: Path, frame: bytes
) -> None:
    async with local_broker(tmp_path) as broker:
        assert await exchange(broker, frame) is None
        await broker.make_topic("still-alive")


async def test_tagged_fields_of_the_header_are_stepped_over(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        plain = encode_request_header(METADATA, 9, 7, "me")
        tagged = plain[:-1] + b"\x01\x05\x02ab"
        answer = await exchange(broker, tagged + b"\x00\x00\x00\x00\x00")
        assert answer is not None
        start = response_body_start(METADATA, 9, answer)
        assert decode_response(METADATA, answer, 9, start).brokers[0].node_id == 1
