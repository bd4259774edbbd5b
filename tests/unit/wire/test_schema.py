from typing import Annotated
from uuid import UUID

import pytest

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Float64, Int16, Int32, RecordBytes
from twinlog.wire.schema import (
    ANY_VERSION,
    Api,
    Field,
    FieldType,
    fields_of,
    message,
    null_since,
    since,
    tag,
    until,
)


@message
class Inner:
    number: Int32


@message
class Outer:
    plain: Int16
    name: Annotated[str | None, since(2), null_since(4)] = None
    inners: Annotated[tuple[Inner, ...], until(3)] = ()
    extra: Annotated[Inner, since(2), tag(5)] = Inner(number=-1)
    records: RecordBytes = None


def test_fields_stand_in_the_order_of_the_declaration() -> None:
    assert [field.name for field in fields_of(Outer)] == [
        "plain",
        "name",
        "inners",
        "extra",
        "records",
    ]


def test_a_field_knows_its_type_versions_and_tag() -> None:
    plain, name, inners, extra, records = fields_of(Outer)
    assert plain == Field("plain", FieldType("int16"), 0, 0, ANY_VERSION, None)
    assert name == Field("name", FieldType("str", nullable=True), None, 2, ANY_VERSION, None, 4)
    assert inners.type == FieldType("array", item=FieldType("message", message=Inner))
    assert (inners.until, inners.default) == (3, ())
    assert (extra.tag, extra.default) == (5, Inner(number=-1))
    assert records.type == FieldType("records", nullable=True)


def test_a_field_is_in_the_versions_from_since_to_until() -> None:
    _, name, inners, _, _ = fields_of(Outer)
    assert [version for version in range(6) if name.is_in(version)] == [2, 3, 4, 5]
    assert [version for version in range(6) if inners.is_in(version)] == [0, 1, 2, 3]


def test_null_may_come_with_a_later_version() -> None:
    name = fields_of(Outer)[1]
    assert not name.type_in(3).nullable
    assert name.type_in(4).nullable


def test_a_field_without_a_default_gets_the_zero_of_its_type() -> None:
    @message
    class Zeroes:
        flag: bool
        number: Int32
        real: Float64
        text: str
        maybe: str | None
        raw: bytes
        topic_id: UUID
        items: tuple[str, ...]
        inner: Inner

    assert Zeroes() == Zeroes(  # type: ignore[call-arg]
        flag=False,
        number=0,
        real=0.0,
        text="",
        maybe=None,
        raw=b"",
        topic_id=UUID(int=0),
        items=(),
        inner=Inner(number=0),
    )


def test_messages_are_equal_when_all_their_values_are() -> None:
    assert Outer(plain=1) == Outer(plain=1, extra=Inner(number=-1))
    assert hash(Outer(plain=1)) == hash(Outer(plain=1, extra=Inner(number=-1)))
    assert Outer(plain=1) != Outer(plain=1, name="")
    assert Outer(plain=0) != Inner(number=0)  # type: ignore[comparison-overlap]


def test_a_message_shows_its_values() -> None:
    assert repr(Inner(number=3)) == "Inner(number=3)"


def test_a_message_has_no_room_for_other_fields() -> None:
    with pytest.raises(AttributeError):
        Inner(number=3).other = 4  # type: ignore[attr-defined]


def test_a_field_is_of_one_type_or_null() -> None:
    with pytest.raises(AssertionError, match="one type or null"):

        @message
        class TwoTypes:
            value: str | bytes | None


def test_a_type_that_has_no_place_on_the_wire_is_refused() -> None:
    with pytest.raises(AssertionError, match="no field type"):

        @message
        class Unsized:
            value: complex


def test_an_api_is_flexible_from_a_version_on_or_never() -> None:
    api = Api(ApiKey.METADATA, Inner, Outer, 0, 5, flexible_since=3)
    assert [version for version in range(6) if api.is_flexible(version)] == [3, 4, 5]
    assert not Api(ApiKey.METADATA, Inner, Outer, 0, 5).is_flexible(5)
