"""Mirror settings: what a mirror needs, and which names its patterns take."""

from pathlib import Path

import pytest

from twinlog.config import mirror
from twinlog.config.declare import Source
from twinlog.config.mirror import MIRROR, matcher, mirror_settings
from twinlog.config.read import properties, read_settings
from twinlog.model.errors import SettingsError

SAMPLE = Path(__file__).parents[3] / "config" / "mirror.properties"
LEAST = {"bootstrap.servers": "source:9092"}


def test_a_source_is_all_that_a_mirror_needs() -> None:
    settings = mirror_settings(LEAST)
    assert settings[mirror.BOOTSTRAP_SERVERS] == ("source:9092",)
    assert settings[mirror.GROUPS_SYNC_INTERVAL_MS] == 5_000
    assert settings[mirror.MIRROR_GAP_POLICY] == "continue"
    assert settings.source_of(mirror.BOOTSTRAP_SERVERS) is Source.CLUSTER_MIRROR


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "bootstrap.servers is missing: name brokers of the source"),
        ({"bootstrap.servers": "source"}, "each host:port"),
        ({**LEAST, "topic.include": "a"}, "did you mean topics.include?"),
        ({**LEAST, "topics.include": "a("}, "topics.include=a\\( cannot be: .*regular expression"),
        ({**LEAST, "security.protocol": "SASL_SSL"}, "needs sasl.jaas.config"),
        ({**LEAST, "ssl.truststore.locaton": "a"}, "did you mean ssl.truststore.location?"),
        ({**LEAST, "mirror.gap.policy": "ignore"}, "one of continue, fail"),
    ],
    ids=str,
)
def test_a_mirror_that_cannot_work_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        mirror_settings(given)


def test_passwords_for_the_source_are_accepted_and_not_kept_as_settings() -> None:
    settings = mirror_settings({**LEAST, "ssl.truststore.password": "x"})
    assert settings.ignored == ("ssl.truststore.password",)


def test_a_pattern_is_for_the_whole_name_and_exclusion_wins() -> None:
    is_wanted = matcher(["orders", "pay.*|cash"], ["payroll", "__.*"])
    wanted = [
        n for n in ("orders", "orders2", "xpay", "payments", "cash", "payroll") if is_wanted(n)
    ]
    assert wanted == ["orders", "payments", "cash"]


def test_without_patterns_nothing_is_included_and_nothing_excluded() -> None:
    assert not matcher([], [])("a")
    assert matcher([".*"], [])("a")


def test_flags_and_groups_are_of_their_own_pattern_only() -> None:
    is_wanted = matcher(["(?i)cash", "(?P<n>a)1", r"(?P<n>.)b\1", "pay"], ["(x)y"])
    names = ("CASH", "PAY", "pay", "a1", "xbx", "xby", "xy")
    assert [name for name in names if is_wanted(name)] == ["CASH", "pay", "a1", "xbx"]


def test_a_pattern_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'\[a' is not a regular expression"):
        matcher(["ok", "[a"], [])


def test_the_sample_file_can_be_read_and_comments_out_defaults() -> None:
    text = SAMPLE.read_text()
    settings = read_settings(MIRROR, text, file_name=SAMPLE.name)
    assert settings[mirror.BOOTSTRAP_SERVERS]
    commented = "\n".join(
        line[1:] for line in text.splitlines() if line.startswith("#") and "=" in line
    )
    for entry in properties(commented):
        setting = MIRROR.find(entry.key)
        assert setting is not None, entry.key
        assert setting.parse(entry.value) == setting.default, entry.key
