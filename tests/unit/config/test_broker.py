"""The broker's settings as a whole, and the sample file."""

from pathlib import Path

import pytest

from twinlog.config.broker import AUTO_CREATE_TOPICS_ENABLE, BROKER, NODE_ID
from twinlog.config.declare import Settings
from twinlog.config.read import properties, read_settings
from twinlog.model.errors import SettingsError

SAMPLE = Path(__file__).parents[3] / "config" / "server.properties"


def test_every_default_is_a_value_that_could_be_given() -> None:
    for setting in BROKER.settings:
        text = setting.format(setting.default)
        if text:
            assert setting.parse(text) == setting.default, setting.name


def test_every_setting_says_what_it_does_in_sentences() -> None:
    for setting in BROKER.settings:
        assert setting.doc.endswith((".", ".)")), setting.name


def test_the_older_name_of_the_broker_serves() -> None:
    assert Settings.of(BROKER, {"broker.id": "4"})[NODE_ID] == 4
    assert Settings.of(BROKER, {"broker.id": "4", "node.id": "4"})[NODE_ID] == 4
    with pytest.raises(SettingsError, match=r"node.id=1 and broker.id=2 differ: .*remove"):
        Settings.of(BROKER, {"broker.id": "2", "node.id": "1"})


def test_the_sample_file_can_be_read_and_gives_what_it_comments_out() -> None:
    text = SAMPLE.read_text()
    settings = read_settings(BROKER, text, file_name=SAMPLE.name)
    assert settings.ignored == ()
    # What is commented out is the default, so that the comment sign can be removed safely.
    commented = "\n".join(
        line[1:] for line in text.splitlines() if line.startswith("#") and "=" in line
    )
    for entry in properties(commented):
        setting = BROKER.find(entry.key)
        assert setting is not None, entry.key
        assert setting.parse(entry.value) == setting.default, entry.key


def test_topics_are_created_on_demand_as_in_kafka() -> None:
    assert Settings.of(BROKER)[AUTO_CREATE_TOPICS_ENABLE]
