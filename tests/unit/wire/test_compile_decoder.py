from typing import Annotated, Any
from uuid import UUID

import pytest

from twinlog.model.errors import WireError
from twinlog.wire.compile_decoder import compile_decoder
from twinlog.wire.primitives import Float64, Int8, Int16, Int32, RecordBytes, UInt16, UInt32
from twinlog.wire.schema import message, since, tag


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
    maybe: Inner | None = None
    number: Int16


@message
class Tagged:
    number: Int16
    inner: Annotated[Inner, tag(2)] = Inner(number=-1)
    text: Annotated[str | None, tag(200)] = None


@message
class Texts:
    text: str
    raw: bytes = b""
    records: RecordBytes = None


@message
class Ids:
    ids: tuple[UUID, ...]


@message
class Nothing:
    late: Annotated[Int16, since(1)] = 5


@message
class Nothings:
    items: tuple[Nothing, ...]


def decoded(cls: type[Any], hexes: str, *, flexible: bool) -> Any:
    frame = bytes.fromhex(hexes)
    value, end = compile_decoder(cls, 0, flexible=flexible)(frame, 0, len(frame))
    assert end == len(frame)
    return value


def test_values_of_every_width_are_read() -> None:
    hexes = "01 ff ffff 80000000 3ff8000000000000" + "00" * 15 + "09"
    assert decoded(Widths, hexes, flexible=False) == Widths(
        flag=True, small=-1, unsigned=65_535, wide=1 << 31, real=1.5, topic_id=UUID(int=9)
    )


def test_arrays_of_numbers_are_tuples() -> None:
    value = Lists(numbers=(1, -1), inners=())
    assert decoded(Lists, "00000002 00000001 ffffffff 00000000 00000000", flexible=False) == value
    assert decoded(Lists, "03 00000001 ffffffff 01 01 00", flexible=True) == value
    assert decoded(Ids, "03" + "00" * 32 + "00", flexible=True) == Ids(ids=(UUID(int=0),) * 2)


@pytest.mark.parametrize(("count", "length"), [(126, "7f"), (127, "8001"), (300, "ad02")])
def test_long_arrays_of_numbers_are_read(count: int, length: str) -> None:
    hexes = length + "00000007" * count + "01 00 00"
    assert decoded(Lists, hexes, flexible=True) == Lists(numbers=(7,) * count)


def test_null_where_it_has_no_place_reads_as_nothing() -> None:
    assert decoded(Lists, "ffffffff ffffffff ffffffff", flexible=False) == Lists(numbers=())
    assert decoded(Lists, "00 00 00 00", flexible=True) == Lists(numbers=())
    assert decoded(Texts, "ffff ffffffff ffffffff", flexible=False) == Texts(text="")
    assert decoded(Texts, "00 00 00 00", flexible=True) == Texts(text="")


def test_a_message_may_be_null() -> None:
    assert decoded(Holder, "ff 0005", flexible=False) == Holder(number=5)
    assert decoded(Holder, "01 0003 ffff 0005", flexible=False) == Holder(
        maybe=Inner(number=3), number=5
    )
    with pytest.raises(WireError, match="message of length 2"):
        decoded(Holder, "02 0003 ffff 0005", flexible=False)


def test_known_tags_are_read_and_others_stepped_over() -> None:
    assert decoded(Tagged, "0001 00", flexible=True) == Tagged(number=1)
    full = Tagged(number=1, inner=Inner(number=2), text="t")
    assert decoded(Tagged, "0001 02 02 04 0002 00 00 c801 02 02 74", flexible=True) == full
    mixed = "0001 04 00 00 02 04 0002 00 00 07 03 aabbcc c801 02 02 74"
    assert decoded(Tagged, mixed, flexible=True) == full


@pytest.mark.parametrize(
    "hexes",
    [
        "0001 01 05 7f 00",  # an unknown tag passes the end
        "0001 01 02 05 0002 00 00 00",  # a known tag is longer than its value
        "0001 01 02 03 0002 00 00",  # or shorter
    ],
)
def test_a_tag_has_just_the_bytes_of_its_value(hexes: str) -> None:
    with pytest.raises(WireError, match="tag"):
        decoded(Tagged, hexes, flexible=True)


@pytest.mark.parametrize(
    ("cls", "hexes", "told"),
    [
        (Lists, "fffffffe", "array of length -2"),
        (Lists, "00000002 00000001 0000", "array of length 2 at byte 4 of 10"),
        (Lists, "00000000 7fffffff", "array of length 2147483647"),
        (Texts, "fffe", "str of length -2"),
        (Texts, "0003 6161", "str of length 3 at byte 2 of 4"),
        (Texts, "0000 80000000", "bytes of length -2147483648"),
        (Texts, "0000 00000000 00000001", "records of length 1 at byte 10 of 10"),
    ],
)
def test_a_length_that_cannot_be_is_refused(cls: type[Any], hexes: str, told: str) -> None:
    with pytest.raises(WireError, match=told):
        decoded(cls, hexes, flexible=False)


@pytest.mark.parametrize(
    ("cls", "hexes"),
    [(Lists, "ffffffff0f"), (Lists, "01 04 01 01"), (Texts, "03 61"), (Texts, "01 ffffffff0f")],
)
def test_a_compact_length_that_cannot_be_is_refused(cls: type[Any], hexes: str) -> None:
    with pytest.raises(WireError, match="of length"):
        decoded(cls, hexes, flexible=True)


def test_even_messages_without_fields_cannot_be_more_than_the_bytes_left() -> None:
    with pytest.raises(WireError, match="array of length 2000000"):
        decoded(Nothings, "001e8480", flexible=False)


def test_fields_of_other_versions_have_their_defaults() -> None:
    assert decoded(Nothing, "", flexible=False) == Nothing(late=5)


def test_bytes_are_bytes_whatever_the_frame_is() -> None:
    frame = memoryview(bytearray(bytes.fromhex("02 61 03 aabb 03 ccdd 00")))
    value, _ = compile_decoder(Texts, 0, flexible=True)(frame, 0, len(frame))
    assert (value.text, value.raw, value.records) == ("a", b"\xaa\xbb", b"\xcc\xdd")
    assert type(value.raw) is bytes
    assert type(value.records) is memoryview
