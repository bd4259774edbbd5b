"""Every message has the bytes that kafka-python gives it, in every version it knows."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kafka_python_twin import bytes_of, kafka_python_class
from support.messages import EVERY_MESSAGE, Declared, as_of, examples, label_of, messages_of
from twinlog.wire.api_keys import MIRROR_KEYS_START
from twinlog.wire.codec import encode_bytes

UNKNOWN_TO_KAFKA_PYTHON: Final = {"DELETE_GROUPS": {3}}
"""Versions younger than kafka-python. The mirror requests it cannot know either."""

KNOWN = [declared for declared in EVERY_MESSAGE if declared.api.key < MIRROR_KEYS_START]


@pytest.mark.parametrize("declared", KNOWN, ids=label_of)
@given(chosen=st.data())
@examples(20)
def test_the_bytes_are_those_of_kafka_python(declared: Declared, chosen: Any) -> None:
    message = chosen.draw(messages_of(declared.message))
    for version, flexible in declared.versions():
        kind = kafka_python_class(declared, version)
        if kind is None:
            assert version in UNKNOWN_TO_KAFKA_PYTHON[declared.api.key.name]
            continue
        sent = as_of(message, version)
        assert encode_bytes(sent, version, flexible=flexible) == bytes_of(sent, kind, version)
