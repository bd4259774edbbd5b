"""Every message, in every version, comes back as it went."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.messages import EVERY_MESSAGE, Declared, as_of, examples, label_of, messages_of
from twinlog.wire.codec import decode_whole, encode_bytes

each_message = pytest.mark.parametrize("declared", EVERY_MESSAGE, ids=label_of)


@each_message
@given(chosen=st.data())
@examples(25)
def test_a_message_comes_back_as_it_went(declared: Declared, chosen: Any) -> None:
    message = chosen.draw(messages_of(declared.message))
    for version, flexible in declared.versions():
        sent = as_of(message, version)
        frame = encode_bytes(sent, version, flexible=flexible)
        for buffer in (frame, memoryview(bytearray(frame))):
            assert decode_whole(declared.message, buffer, version, flexible=flexible) == sent


@each_message
def test_a_message_of_nothing_but_defaults_comes_back(declared: Declared) -> None:
    for version, flexible in declared.versions():
        sent = as_of(declared.message(), version)
        frame = encode_bytes(sent, version, flexible=flexible)
        assert decode_whole(declared.message, frame, version, flexible=flexible) == sent
