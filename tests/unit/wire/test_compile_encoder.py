from typing import Annotated, Any
from uuid import UUID

import pytest

from twinlog.wire.compile_encoder import compile_encoder
from twinlog.wire.primitives import (
    Float64,
    Int8,
    Int16,
    Int32,
    RecordBytes,
    UInt16,
    UInt32,
)
from twinlog.wire.schema import message, null_since, since, tag


@message
class Inner:
    number: Int16
    name: str | None = None


@message
class Widths:
    flag: bool
    small: Int8
    unsigned: UInt16
    wide: UInt32
    real: Float64
    topic_id: UUID


@message
class Lists:
    numbers: tuple[Int32, ...]
    names: tuple[str, ...] = ()
    inners: tuple[Inner, ...] | None = None


@message
class Holder:
    one: Inner = Inner(number=1, name="n")
    maybe: Inner | None = None
    number: Int16


@message
class Tagged:
    number: Int16
    inner: Annotated[Inner, tag(2)] = Inner(number=-1)
    names: Annotated[tuple[str, ...], tag(1)] = ()
    text: Annotated[str | None, tag(200)] = None


@message
class Nothing:
    late: Annotated[Int16, since(1)] = 0


@message
class Nothings:
    items: tuple[Nothing, ...]


@message
class Name:
    name: Annotated[str | None, null_since(1)] = None


@message
class Batches:
    records: RecordBytes


def encoded(value: Any, version: int = 0, *, flexible: bool) -> bytes:
    out: list[Any] = []
    compile_encoder(type(value), version, flexible=flexible)(value, out, [])
    return b"".join(out)


def test_neighbours_of_fixed_width_go_out_by_one_call() -> None:
    value = Widths(
        flag=True, small=-1, unsigned=65_535, wide=1 << 31, real=1.5, topic_id=UUID(int=9)
    )
    out: list[Any] = []
    compile_encoder(Widths, 0, flexible=True)(value, out, [])
    assert out == [
        bytes.fromhex("01 ff ffff 80000000 3ff8000000000000") + UUID(int=9).bytes + b"\x00"
    ]


def test_arrays_of_numbers_are_packed_with_their_length() -> None:
    value = Lists(numbers=(1, -1))
    assert encoded(value, flexible=False) == bytes.fromhex(
        "00000002 00000001 ffffffff 00000000 ffffffff"
    )
    assert encoded(value, flexible=True) == bytes.fromhex("03 00000001 ffffffff 01 00 00")


@pytest.mark.parametrize(("count", "length"), [(126, "7f"), (127, "8001"), (300, "ad02")])
def test_long_arrays_of_numbers_have_long_lengths(count: int, length: str) -> None:
    value = Lists(numbers=(7,) * count)
    assert encoded(value, flexible=True) == (
        bytes.fromhex(length) + bytes.fromhex("00000007") * count + b"\x01\x00\x00"
    )
    assert encoded(value, flexible=False) == (
        count.to_bytes(4, "big") + bytes.fromhex("00000007") * count + bytes(4) + b"\xff" * 4
    )


def test_null_and_empty_differ() -> None:
    filled = Lists(numbers=(), names=("", "a"), inners=(Inner(number=1), Inner(number=2, name="")))
    assert encoded(filled, flexible=False) == bytes.fromhex(
        "00000000 00000002 0000 0001 61 00000002 0001 ffff 0002 0000"
    )
    assert encoded(filled, flexible=True) == bytes.fromhex(
        "01 03 01 02 61 03 0001 00 00 0002 01 00 00"
    )


def test_a_message_inside_has_a_byte_before_it_only_where_it_may_be_null() -> None:
    assert encoded(Holder(number=5), flexible=True) == bytes.fromhex("0001 02 6e 00 ff 0005 00")
    there = Holder(maybe=Inner(number=3), number=5)
    assert encoded(there, flexible=False) == bytes.fromhex("0001 0001 6e 01 0003 ffff 0005")


def test_tags_go_out_in_rising_order_and_only_where_they_say_something() -> None:
    assert encoded(Tagged(number=1), flexible=True) == bytes.fromhex("0001 00")
    same = Tagged(number=1, inner=Inner(number=-1))  # equal to the default, yet another object
    assert encoded(same, flexible=True) == bytes.fromhex("0001 00")
    full = Tagged(number=1, inner=Inner(number=2), names=("a",), text="t")
    assert encoded(full, flexible=True) == bytes.fromhex(
        "0001 03 01 03 02 02 61 02 04 0002 00 00 c801 02 02 74"
    )


def test_a_long_string_has_a_long_length() -> None:
    assert encoded(Name(name="x" * 200), 1, flexible=True) == b"\xc9\x01" + b"x" * 200 + b"\x00"


def test_messages_without_fields_leave_no_bytes() -> None:
    assert encoded(Nothings(items=(Nothing(), Nothing())), flexible=False) == bytes(3) + b"\x02"
    assert encoded(Nothing(), flexible=False) == b""


def test_null_needs_its_version() -> None:
    assert encoded(Name(name=None), 1, flexible=False) == b"\xff\xff"
    with pytest.raises(AttributeError):
        encoded(Name(name=None), 0, flexible=False)


def test_the_places_of_record_batches_are_marked() -> None:
    records = memoryview(b"abc")
    out: list[Any] = []
    marks: list[int] = []
    compile_encoder(Batches, 0, flexible=True)(Batches(records=records), out, marks)
    assert (out, marks) == ([b"\x04", records, b"\x00"], [1])
    compile_encoder(Batches, 0, flexible=False)(Batches(records=None), out, marks)
    assert (out[3:], marks) == ([b"\xff\xff\xff\xff"], [1])


def test_records_have_no_place_in_a_tagged_field() -> None:
    @message
    class Odd:
        records: Annotated[RecordBytes, tag(0)] = None

    with pytest.raises(AssertionError, match="records in a tagged field"):
        compile_encoder(Odd, 0, flexible=True)
