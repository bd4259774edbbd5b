from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

import pytest

from twinlog.wire.misfits import find_misfit
from twinlog.wire.primitives import Int8, Int32, RecordBytes, UInt16
from twinlog.wire.schema import message, null_since, since


@message
class Inner:
    small: Int8
    texts: tuple[str, ...]


@message
class Outer:
    inner: Inner
    inners: tuple[Inner, ...]
    count: UInt16
    topic_id: UUID
    records: RecordBytes = None
    name: Annotated[str | None, since(1), null_since(2)]


GOOD = Outer(
    inner=Inner(small=-128, texts=("a",)),
    inners=(Inner(small=127, texts=()),),
    count=65_535,
    topic_id=UUID(int=1),
    records=b"",
    name="n",
)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_message_that_fits_has_no_misfit(version: int) -> None:
    assert find_misfit(GOOD, version, flexible=True) == ""
    assert find_misfit(replace(GOOD, records=None), version, flexible=False) == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"count": -1}, "Outer.count is -1, not of type uint16"),
        ({"count": 65_536}, "Outer.count is 65536, not of type uint16"),
        ({"topic_id": "x"}, "Outer.topic_id is 'x', not of type uuid"),
        ({"topic_id": None}, "Outer.topic_id is None, not of type uuid"),
        ({"records": 5}, "Outer.records is 5, not of type records"),
        ({"inner": None}, "Outer.inner is None, not of type message"),
        ({"inners": None}, "Outer.inners is None, not of type array"),
        (
            {"inners": (Inner(small=1, texts=()), Inner(small=128, texts=()))},
            "Outer.inners[1].small is 128, not of type int8",
        ),
        (
            {"inner": Inner(small=1, texts=("a", "\ud800"))},
            "Outer.inner.texts[1] is '\\ud800', not of type str",
        ),
    ],
)
def test_the_first_misfit_is_named_with_its_path(changes: dict[str, Any], told: str) -> None:
    assert find_misfit(replace(GOOD, **changes), 0, flexible=False) == told


def test_null_is_a_misfit_until_its_version() -> None:
    message = replace(GOOD, name=None)
    assert find_misfit(message, 0, flexible=False) == ""
    assert find_misfit(message, 1, flexible=False) == "Outer.name is None, not of type str"
    assert find_misfit(message, 2, flexible=False) == ""


def test_a_long_string_is_a_misfit_in_the_old_form_only() -> None:
    message = replace(GOOD, name="x" * 32_768)
    assert "Outer.name is 'xxx" in find_misfit(message, 1, flexible=False)
    assert len(find_misfit(message, 1, flexible=False)) < 120
    assert find_misfit(message, 1, flexible=True) == ""


def test_a_big_value_is_told_in_short() -> None:
    assert len(find_misfit(replace(GOOD, count=[0] * 1000), 0, flexible=True)) < 120  # type: ignore[arg-type]


@message
class Counted:
    count: Int32


def test_a_number_that_is_none_is_named() -> None:
    assert find_misfit(Counted(count=None), 0, flexible=False) == (  # type: ignore[arg-type]
        "Counted.count is None, not of type int32"
    )
