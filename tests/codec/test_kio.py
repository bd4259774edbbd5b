"""Every message has the bytes that kio gives it, in every version that kio knows."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kio_twin import bytes_of, kio_class, read, twin_of
from support.messages import EVERY_MESSAGE, Declared, as_of, examples, label_of, messages_of
from twinlog.wire.api_keys import MIRROR_KEYS_START
from twinlog.wire.codec import encode_bytes

UNKNOWN_TO_KIO: Final = {"DELETE_GROUPS": {3}}
"""Versions younger than kio. The mirror requests it cannot know either."""

KNOWN = [declared for declared in EVERY_MESSAGE if declared.api.key < MIRROR_KEYS_START]


@pytest.mark.parametrize("declared", KNOWN, ids=label_of)
@given(chosen=st.data())
@examples(20)
def test_the_bytes_are_those_of_kio(declared: Declared, chosen: Any) -> None:
    message = chosen.draw(messages_of(declared.message))
    for version, flexible in declared.versions():
        kind = kio_class(declared, version)
        if kind is None:
            assert version in UNKNOWN_TO_KIO[declared.api.key.name]
            continue
        sent = as_of(message, version)
        twin = twin_of(sent, kind)
        frame = encode_bytes(sent, version, flexible=flexible)
        assert frame == bytes_of(twin)
        assert read(kind, frame) == twin
