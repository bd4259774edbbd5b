import pytest

from twinlog.model.bounds import TAGGED_FIELDS_MAX
from twinlog.model.errors import WireError
from twinlog.wire.headers import (
    RequestHeader,
    decode_correlation_id,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    response_body_start,
    skip_tags,
)
from twinlog.wire.messages.api_versions import API_VERSIONS
from twinlog.wire.messages.group_offsets import OFFSET_DELETE
from twinlog.wire.messages.metadata import METADATA
from twinlog.wire.primitives import encode_uvarint


def test_an_old_request_has_header_1() -> None:
    assert encode_request_header(METADATA, 8, 7, "me") == bytes.fromhex(
        "0003 0008 00000007 0002 6d65"
    )


def test_a_flexible_request_has_header_2_with_the_client_id_in_the_old_form() -> None:
    assert encode_request_header(METADATA, 9, 7, "me") == bytes.fromhex(
        "0003 0009 00000007 0002 6d65 00"
    )


def test_a_client_id_may_be_null() -> None:
    frame = encode_request_header(METADATA, 1, 7, None)
    assert decode_request_header(frame) == (RequestHeader(3, 1, 7, None), len(frame))


def test_an_api_that_is_never_flexible_never_has_tags() -> None:
    assert encode_request_header(OFFSET_DELETE, 0, 7, "").endswith(b"\x00\x00")
    assert encode_response_header(OFFSET_DELETE, 0, 7) == b"\x00\x00\x00\x07"


def test_a_client_id_too_long_for_the_old_form_is_refused() -> None:
    with pytest.raises(WireError, match="client id of 32768 bytes"):
        encode_request_header(METADATA, 9, 7, "x" * 32_768)


@pytest.mark.parametrize("version", [8, 9])
def test_a_request_header_comes_back_as_it_went(version: int) -> None:
    frame = memoryview(bytearray(encode_request_header(METADATA, version, -2, "né") + b"body"))
    header, position = decode_request_header(frame)
    assert header == RequestHeader(3, version, -2, "né")
    if version == 9:
        position = skip_tags(frame, position)
    assert bytes(frame[position:]) == b"body"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(9),
        bytes.fromhex("0003 0008 00000007 0003 6d65"),  # the client id is cut
        bytes.fromhex("0003 0008 00000007 fffe"),  # a length below that of null
        bytes.fromhex("0003 0008 00000007 0001 ff"),  # not UTF-8
    ],
)
def test_a_broken_request_header_is_a_wire_error(frame: bytes) -> None:
    with pytest.raises(WireError):
        decode_request_header(frame)


def test_an_old_response_has_header_0_and_a_flexible_one_header_1() -> None:
    assert encode_response_header(METADATA, 8, 7) == bytes.fromhex("00000007")
    assert encode_response_header(METADATA, 9, 7) == bytes.fromhex("00000007 00")


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_answered_with_header_0_in_every_version(version: int) -> None:
    head = encode_response_header(API_VERSIONS, version, 7)
    assert head == bytes.fromhex("00000007")
    assert response_body_start(API_VERSIONS, version, head + b"\x05") == 4


def test_a_response_body_begins_after_unknown_tags() -> None:
    assert response_body_start(METADATA, 8, bytes(4)) == 4
    assert response_body_start(METADATA, 9, bytes(5)) == 5
    assert response_body_start(METADATA, 9, bytes.fromhex("00000007 01 05 02 aabb") + b"body") == 9


@pytest.mark.parametrize(
    "tags", [b"", b"\x01", b"\x01\x05", b"\x01\x05\x02\xaa", b"\xff\xff\xff\xff\xff\xff"]
)
def test_tags_that_pass_the_end_are_a_wire_error(tags: bytes) -> None:
    with pytest.raises(WireError):
        skip_tags(tags, 0)


def test_too_many_tags_are_a_wire_error() -> None:
    with pytest.raises(WireError, match="tagged fields in a header"):
        skip_tags(encode_uvarint(TAGGED_FIELDS_MAX + 1) + bytes(100_000), 0)


def test_a_response_tells_whose_answer_it_is() -> None:
    assert decode_correlation_id(bytes.fromhex("fffffffe 00")) == -2
    with pytest.raises(WireError, match="response of 3 bytes"):
        decode_correlation_id(bytes(3))
