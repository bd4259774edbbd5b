from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.errors import WireError
from twinlog.wire.primitives import (
    decode_uvarint,
    decode_varint,
    encode_uvarint,
    encode_varint,
    uuid_of,
)


@given(st.integers(0, (1 << 32) - 1))
def test_an_unsigned_varint_comes_back_as_it_went(value: int) -> None:
    encoded = encode_uvarint(value)
    assert decode_uvarint(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_signed_varint_comes_back_as_it_went(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varint(encoded, 0) == (value, len(encoded))


def test_varints_have_the_bytes_of_the_protocol_guide() -> None:
    assert encode_uvarint(0) == b"\x00"
    assert encode_uvarint(300) == b"\xac\x02"
    assert encode_varint(-1) == b"\x01"
    assert encode_varint(1) == b"\x02"
    assert encode_varint(-(1 << 63)) == b"\xff" * 9 + b"\x01"


@pytest.mark.parametrize("encoded", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x00"])
def test_an_unsigned_varint_of_more_than_32_bits_is_refused(encoded: bytes) -> None:
    with pytest.raises(WireError, match="32 bits"):
        decode_uvarint(encoded, 0)


@pytest.mark.parametrize("encoded", [b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00"])
def test_a_signed_varint_of_more_than_64_bits_is_refused(encoded: bytes) -> None:
    with pytest.raises(WireError, match="64 bits"):
        decode_varint(encoded, 0)


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\x80\x80\x80\x80"])
def test_a_varint_that_is_cut_is_an_index_error(encoded: bytes) -> None:
    with pytest.raises(IndexError):
        decode_uvarint(encoded, 0)
    with pytest.raises(IndexError):
        decode_varint(encoded, 0)


def test_the_same_bytes_give_the_same_uuid_object() -> None:
    assert uuid_of(bytes(15) + b"\x07") is uuid_of(bytes(15) + b"\x07")
    assert uuid_of(bytes(15) + b"\x07") == UUID(int=7)
