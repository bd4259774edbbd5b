from pathlib import Path
from typing import Annotated

import pytest

from twinlog.model.errors import WireError
from twinlog.model.regions import FileRegion
from twinlog.wire.codec import (
    decode_from,
    decode_request,
    decode_response,
    decode_whole,
    encode_bytes,
    encode_parts,
    encode_request,
    encode_response,
    encoder,
)
from twinlog.wire.messages.fetch import FETCH, FetchedPartition, FetchedTopic, FetchResponse
from twinlog.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from twinlog.wire.messages.produce import PRODUCE, ProducePartition, ProduceRequest, ProduceTopic
from twinlog.wire.primitives import Int32
from twinlog.wire.schema import message, since


@message
class Point:
    x: Int32
    name: Annotated[str, since(1)] = ""


def fetched(records: object) -> FetchResponse:
    return FetchResponse(
        topics=(
            FetchedTopic(
                topic="a",
                partitions=(
                    FetchedPartition(partition_index=0, high_watermark=1, records=records),  # type: ignore[arg-type]
                    FetchedPartition(partition_index=1, high_watermark=1),
                ),
            ),
        )
    )


def test_requests_and_responses_are_read_from_a_position_of_the_frame() -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="a"),))
    frame = b"head" + b"".join(bytes(part) for part in encode_request(METADATA, request, 9))  # type: ignore[arg-type]
    assert decode_request(METADATA, frame, 9, 4) == request
    response = fetched(b"records")
    frame = b"head" + b"".join(bytes(part) for part in encode_response(FETCH, response, 12))  # type: ignore[arg-type]
    assert decode_response(FETCH, frame, 12, 4) == response


def test_a_field_that_the_version_lacks_is_left_out() -> None:
    assert encode_bytes(Point(x=1, name="n"), 0, flexible=False) == bytes.fromhex("00000001")
    assert decode_whole(Point, bytes.fromhex("00000001"), 0, flexible=False) == Point(x=1)


@pytest.mark.parametrize("version", [11, 12])
def test_record_batches_go_out_as_the_very_objects_that_came(version: int) -> None:
    records = memoryview(bytearray(b"records"))
    before, there, after = encode_response(FETCH, fetched(records), version)
    assert there is records
    frame = b"".join((before, there, after))  # type: ignore[arg-type]
    assert decode_response(FETCH, frame, version) == fetched(b"records")


def test_a_region_of_a_file_is_told_by_its_length_alone(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        region = FileRegion(file, 5, 700)
        before, there, after = encode_response(FETCH, fetched(region), 12)
    assert there is region
    frame = b"".join((before, bytes(700), after))  # type: ignore[arg-type]
    partition = decode_response(FETCH, frame, 12).topics[0].partitions[0]
    assert partition.records == bytes(700)


def test_record_batches_come_in_as_a_view_of_the_frame() -> None:
    request = ProduceRequest(
        acks=1,
        timeout_ms=1,
        topic_data=(
            ProduceTopic(name="a", partition_data=(ProducePartition(index=0, records=b"abc"),)),
        ),
    )
    frame = bytearray(encode_bytes(request, 9, flexible=True))
    records = decode_request(PRODUCE, frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"abc")] = ord("x")
    assert bytes(records) == b"xbc"


def test_what_follows_a_message_is_refused_or_left_to_the_caller() -> None:
    frame = bytes.fromhex("00000001 ff")
    with pytest.raises(WireError, match="Point v0 ends at byte 4 of 5"):
        decode_whole(Point, frame, 0, flexible=False)
    assert decode_from(Point, b"\xff" + frame, 0, flexible=False, at=1) == (Point(x=1), 5)


def test_what_follows_a_request_is_passed_over() -> None:
    # librdkafka 2.16 asks for all topics so, with three bytes too many.
    request = decode_request(METADATA, bytes.fromhex("00000000 010000"), 13)
    assert request == MetadataRequest(topics=None, allow_auto_topic_creation=False)


def test_a_cut_message_is_a_wire_error_that_names_it() -> None:
    with pytest.raises(WireError, match="Point v1 of 5 bytes cannot be read"):
        decode_whole(Point, bytes.fromhex("00000001 00"), 1, flexible=False)


def test_a_message_that_does_not_fit_is_a_wire_error_that_names_the_field() -> None:
    with pytest.raises(WireError, match=r"Point v0 cannot be encoded: Point.x is 2147483648, not"):
        encode_parts(Point(x=1 << 31), 0, flexible=False)


def test_a_codec_is_compiled_once() -> None:
    assert encoder(Point, 1, flexible=False) is encoder(Point, 1, flexible=False)
