"""What every test of a command needs: a broker to talk to."""

from collections.abc import Iterator

import pytest

from support.answering_broker import AnsweringBroker, answering_broker


@pytest.fixture
def broker() -> Iterator[AnsweringBroker]:
    """Give a broker that answers as told."""
    with answering_broker() as running:
        yield running
