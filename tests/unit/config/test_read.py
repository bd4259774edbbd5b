"""Reading properties text: Java's rules, line numbers, overrides."""

import pytest

from twinlog.config.broker import BROKER, NUM_PARTITIONS
from twinlog.config.logs import LOG_SEGMENT_BYTES
from twinlog.config.read import Property, properties, read_overrides, read_settings
from twinlog.model.errors import SettingsError


def test_properties_are_read_by_javas_rules() -> None:
    text = (
        "# a comment\n! another\n\n a=1\nb = 2 \n  c:3\nd 4\ne\n"
        "long=one,\\\n   two\nkey\\=with=x\\ty\\u00e9\\\\\nlast=\\\n"
    )
    assert properties(text) == [
        Property("a", "1", 4),
        Property("b", "2 ", 5),
        Property("c", "3", 6),
        Property("d", "4", 7),
        Property("e", "", 8),
        Property("long", "one,two", 9),
        Property("key=with", "x\tyé\\", 11),
        Property("last", "", 12),
    ]


def test_an_escape_that_is_none_names_its_line() -> None:
    with pytest.raises(SettingsError, match=r"line 2: \\u00g1 is not a character"):
        properties("a=1\nb=\\u00g1")


def test_the_last_of_equal_keys_and_then_overrides_win() -> None:
    text = "num.partitions=2\nnum.partitions=3\nlog.segment.bytes=5000\n"
    settings = read_settings(BROKER, text, file_name="f", overrides=["num.partitions = 7"])
    assert settings[NUM_PARTITIONS] == 7
    assert settings[LOG_SEGMENT_BYTES] == 5_000


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("\n\nnum.partitions=0\n", [], "server.properties line 3: num.partitions=0 cannot be"),
        ("num.partitons=1", [], "server.properties line 1: .* did you mean num.partitions?"),
        ("", ["num.partitions=x"], "--override num.partitions: num.partitions=x cannot be"),
        ("", ["num.partitions"], "'num.partitions' is not key=value"),
    ],
)
def test_errors_name_the_place(text: str, overrides: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(BROKER, text, file_name="server.properties", overrides=overrides)


def test_an_override_may_hold_equal_signs_and_nothing() -> None:
    assert read_overrides(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
