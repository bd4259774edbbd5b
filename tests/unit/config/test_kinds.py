"""Values as text: what Kafka takes and writes for each kind."""

from typing import Any

import pytest

from twinlog.config.kinds import Kind, format_value, parse


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " TRUE ", True),
        (Kind.BOOLEAN, "false", False),
        (Kind.INT, " 42 ", 42),
        (Kind.INT, "-1", -1),
        (Kind.INT, "+7", 7),
        (Kind.SHORT, "32767", 32_767),
        (Kind.LONG, "9223372036854775807", (1 << 63) - 1),
        (Kind.DOUBLE, "0.5", 0.5),
        (Kind.LIST, " a, b ,c", ("a", "b", "c")),
        (Kind.LIST, "", ()),
        (Kind.LIST, "a,,b,", ("a", "b")),
        (Kind.STRING, " x y ", "x y"),
        (Kind.PASSWORD, " secret ", " secret "),
    ],
)
def test_text_is_read_as_kafka_reads_it(kind: Kind, text: str, value: Any) -> None:
    assert parse(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.BOOLEAN, "yes"),
        (Kind.BOOLEAN, ""),
        (Kind.INT, "1_000"),
        (Kind.INT, "1.5"),
        (Kind.INT, "٤"),
        (Kind.INT, "2147483648"),
        (Kind.SHORT, "32768"),
        (Kind.LONG, "9223372036854775808"),
        (Kind.DOUBLE, "half"),
    ],
)
def test_text_that_kafka_refuses_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(kind, text)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.BOOLEAN, True, "true"),
        (Kind.BOOLEAN, False, "false"),
        (Kind.LIST, ("a", "b"), "a,b"),
        (Kind.LIST, (), ""),
        (Kind.INT, -1, "-1"),
        (Kind.DOUBLE, 0.5, "0.5"),
        (Kind.STRING, None, None),
        (Kind.PASSWORD, "secret", None),
    ],
)
def test_values_are_written_as_kafka_writes_them(kind: Kind, value: Any, text: str | None) -> None:
    assert format_value(kind, value) == text
