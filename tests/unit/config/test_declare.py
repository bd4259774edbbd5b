"""Settings: typed access, layers, synonyms, and errors that say what to do."""

from typing import Final

import pytest

from twinlog.config.checks import ANY, at_least
from twinlog.config.declare import (
    ConfigSynonym,
    Given,
    Setting,
    Settings,
    SettingSet,
    Source,
    Synonym,
    Update,
)
from twinlog.config.kinds import Kind
from twinlog.model.errors import SettingsError

HOURS: Final = Setting("keep.hours", Kind.INT, 2, "As keep.ms.", at_least(-1))
KEEP: Final = Setting(
    "keep.ms",
    Kind.LONG,
    7_200_000,
    "How long it is kept.",
    at_least(-1),
    Update.CLUSTER_WIDE,
    (Synonym(HOURS, 3_600_000),),
)
WORDS: Final[Setting[tuple[str, ...]]] = Setting("words", Kind.LIST, ("a",), "Some words.")
SECRET: Final[Setting[str | None]] = Setting("the.secret", Kind.PASSWORD, None, "Tell nobody.")


def _keeps_words(settings: Settings) -> str | None:
    return "no words and nothing kept" if not settings[WORDS] and settings[KEEP] == 0 else None


BROKER: Final = SettingSet(
    "broker",
    (HOURS, KEEP, WORDS, SECRET),
    rules=(_keeps_words,),
    is_foreign=lambda name: name.startswith("ssl."),
)
TOPIC_KEEP: Final = Setting(
    "topic.keep.ms",
    Kind.LONG,
    KEEP.default,
    "As keep.ms.",
    ANY,
    synonyms=(Synonym(KEEP), *KEEP.synonyms),
)
TOPIC: Final = SettingSet("topic", (TOPIC_KEEP,))


def of(**given: str) -> Settings:
    return Settings.of(BROKER, {name.replace("_", "."): text for name, text in given.items()})


def test_a_value_has_the_type_of_its_setting() -> None:
    settings = of(keep_ms="5", words="x, y")
    assert settings[KEEP] + 1 == 6
    assert settings[WORDS] == ("x", "y")
    assert settings[SECRET] is None
    assert settings.get_by_name("keep.ms") == 5


def test_what_is_not_given_comes_from_synonyms_then_the_default() -> None:
    assert of()[KEEP] == 7_200_000
    assert of(keep_hours="1")[KEEP] == 3_600_000
    assert of(keep_hours="-1")[KEEP] == -1
    assert of(keep_hours="1", keep_ms="9")[KEEP] == 9


def test_a_topic_takes_what_it_does_not_say_from_its_broker() -> None:
    broker = of(keep_hours="1")
    assert Settings.of(TOPIC, beneath=broker)[TOPIC_KEEP] == 3_600_000
    assert Settings.of(TOPIC, {"topic.keep.ms": "4"}, beneath=broker)[TOPIC_KEEP] == 4


def test_the_weightiest_layer_wins() -> None:
    settings = of(keep_ms="1", words="b").with_overrides(
        {"keep.ms": "2"}, source=Source.DYNAMIC_BROKER
    )
    assert settings[KEEP] == 2
    assert settings.source_of(KEEP) is Source.DYNAMIC_BROKER
    assert settings.source_of(WORDS) is Source.STATIC_BROKER
    assert settings.source_of(SECRET) is Source.DEFAULT
    assert settings.overrides == {"keep.ms": "2", "words": "b"}


def test_overrides_are_set_and_removed_without_changing_the_original() -> None:
    before = of(keep_ms="1", words="b")
    after = before.with_overrides({"keep.ms": None, "words": "c"})
    assert after.overrides == {"words": "c"}
    assert before.overrides == {"keep.ms": "1", "words": "b"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "keep.ms",
            "soon",
            "f line 3: keep.ms=soon cannot be: it must be a whole number of ms, at least -1 "
            "(the default is 7200000)",
        ),
        ("keep.hours", "-2", "keep.hours=-2 cannot be: it must be a whole number of hours"),
        ("keep.mz", "1", "f line 3: no broker setting is called keep.mz; did you mean keep.ms?"),
        ("zzz", "1", "no broker setting is called zzz; docs/settings.md lists all there are"),
    ],
)
def test_an_error_names_place_key_value_and_fix(name: str, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(BROKER, {Source.STATIC_BROKER: {name: Given(text, "f line 3")}})
    assert message in str(caught.value)


def test_a_rule_between_settings_is_checked_last() -> None:
    with pytest.raises(SettingsError, match="no words and nothing kept"):
        of(words="", keep_ms="0")
    assert of(words="", keep_ms="1")[WORDS] == ()


def test_what_kafka_knows_and_we_do_not_is_listed_and_no_error() -> None:
    assert Settings.of(BROKER, {"ssl.b": "1", "ssl.a": "2"}).ignored == ("ssl.a", "ssl.b")
    assert of(words="x").ignored == ()


def test_a_password_is_never_shown() -> None:
    settings = of(the_secret="swordfish")
    assert settings[SECRET] == "swordfish"
    (entry,) = settings.describe(["the.secret"])
    assert entry.value is None
    assert entry.is_sensitive
    assert "swordfish" not in repr(settings.describe())


def test_a_description_tells_value_source_and_synonyms_as_kafka_does() -> None:
    broker = of(keep_hours="1")
    (entry,) = Settings.of(
        TOPIC, {"topic.keep.ms": "4"}, source=Source.TOPIC, beneath=broker
    ).describe()
    assert (entry.value, entry.source, entry.kind) == ("4", Source.TOPIC, Kind.LONG)
    assert entry.synonyms == (
        ConfigSynonym("topic.keep.ms", "4", Source.TOPIC),
        ConfigSynonym("keep.hours", "1", Source.STATIC_BROKER),
        ConfigSynonym("keep.ms", "7200000", Source.DEFAULT),
    )
    entries = {entry.name: entry for entry in of().describe()}
    assert entries["keep.hours"].is_read_only
    assert not entries["keep.ms"].is_read_only
    assert entries["words"].value == "a"
    assert entries["keep.ms"].synonyms == (ConfigSynonym("keep.ms", "7200000", Source.DEFAULT),)


def test_only_named_settings_are_described_and_unknown_names_are_left_out() -> None:
    assert [e.name for e in of().describe(["words", "nothing"])] == ["words"]


def test_the_unit_is_in_the_name() -> None:
    assert (KEEP.unit, HOURS.unit, WORDS.unit) == ("ms", "hours", "")


def test_declaring_a_name_twice_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="twice"):
        SettingSet("broker", (KEEP, KEEP))


def test_a_setting_without_effect_is_checked_and_told() -> None:
    idle = Setting("idle.ms", Kind.INT, 1, "Nothing yet.", at_least(0), is_idle=True)
    declared = SettingSet("broker", (idle,))
    assert Settings.of(declared).ignored == ()
    settings = Settings.of(declared, {"idle.ms": "5"})
    assert settings.ignored == ("idle.ms",)
    assert settings[idle] == 5
    with pytest.raises(SettingsError, match=r"idle.ms=x cannot be"):
        Settings.of(declared, {"idle.ms": "x"})
