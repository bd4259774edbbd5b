from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.groups.settings import GroupSettings, group_settings


def test_the_group_settings_are_those_of_the_broker() -> None:
    assert group_settings(Settings.of(BROKER, {})) == GroupSettings()
    settings = Settings.of(BROKER, {"offsets.retention.minutes": "2", "group.max.size": "5"})
    assert group_settings(settings).offsets_retention_ms == 120_000
    assert group_settings(settings).members_max == 5
