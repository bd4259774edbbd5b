"""Group settings must fit together."""

import pytest

from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.model.errors import SettingsError


def test_the_shortest_session_is_not_longer_than_the_longest() -> None:
    given = {"group.min.session.timeout.ms": "9000", "group.max.session.timeout.ms": "8000"}
    with pytest.raises(SettingsError, match=r"=9000 is above .*=8000: lower the first"):
        Settings.of(BROKER, given)
