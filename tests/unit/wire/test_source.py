from typing import Annotated
from uuid import UUID

import pytest

from twinlog.wire.primitives import Int8, Int16, Int32, Int64
from twinlog.wire.schema import FieldType, message, since, tag
from twinlog.wire.source import ROW_MAX, Rows, Source, smallest_size


@message
class Inner:
    small: Int16
    text: str


@message
class Outer:
    inner: Inner
    number: Annotated[Int64, since(1)] = 0
    second: Annotated[Int8, since(1), tag(7)] = 0
    first: Annotated[Int8, since(1), tag(3)] = 0
    maybe: Inner | None = None


def test_a_source_splits_plain_from_tagged_fields_in_the_order_they_go_out() -> None:
    plain, tagged = Source(1, flexible=True).split(Outer)
    assert [field.name for field in plain] == ["inner", "number", "maybe"]
    assert [field.name for field in tagged] == ["first", "second"]


def test_tags_need_a_flexible_version() -> None:
    with pytest.raises(AssertionError, match="Outer v1 has tags"):
        Source(1, flexible=False).split(Outer)


def test_a_source_compiles_its_lines_with_the_objects_they_name() -> None:
    source = Source(0, flexible=False)
    name = source.constant("answer", 42)
    source.block("if True:")
    source.line(f"return {name}")
    assert source.compiled("f", ["def f():", *source.lines], "test")() == 42


def test_rows_keep_what_they_made() -> None:
    rows = Rows("pack", "h", "i")
    assert rows[2](7, 1, 2) == bytes.fromhex("0007 00000001 00000002")
    assert rows[2] is rows[2]
    with pytest.raises(AssertionError, match="a row of"):
        rows[ROW_MAX]


@pytest.mark.parametrize(
    ("type_", "old", "flexible"),
    [
        (FieldType("int64"), 8, 8),
        (FieldType("bool"), 1, 1),
        (FieldType("uuid"), 16, 16),
        (FieldType("str"), 2, 1),
        (FieldType("bytes"), 4, 1),
        (FieldType("array", item=FieldType("str")), 4, 1),
        (FieldType("message", message=Inner), 4, 4),
        (FieldType("message", nullable=True, message=Inner), 1, 1),
        (FieldType("message", message=Outer), 5, 6),
    ],
)
def test_the_smallest_size_of_a_value_is_known(type_: FieldType, old: int, flexible: int) -> None:
    assert smallest_size(type_, 0, flexible=False) == old
    assert smallest_size(type_, 0, flexible=True) == flexible


def test_fields_of_later_versions_take_no_room() -> None:
    @message
    class Grows:
        number: Int32
        topic_id: Annotated[UUID, since(1)]

    type_ = FieldType("message", message=Grows)
    assert smallest_size(type_, 0, flexible=False) == 4
    assert smallest_size(type_, 1, flexible=False) == 20
