"""Damaged frames end in a WireError or in some other message, never in anything else."""

import tracemalloc
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.messages import EVERY_MESSAGE, Declared, as_of, examples, label_of, messages_of
from twinlog.model.errors import WireError
from twinlog.wire.codec import decode_whole, encode_bytes

DAMAGES_PER_FRAME: Final = 12
LENGTHS_TO_LIE_WITH: Final = (
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\xff\x7f",
)

each_message = pytest.mark.parametrize("declared", EVERY_MESSAGE, ids=label_of)


def damaged(frame: bytes, random: Random) -> bytes:
    """Cut the frame, turn some of its bits, or write a length over some bytes."""
    place = random.randrange(len(frame) + 1)
    kind = random.randrange(4)
    if kind == 0:
        return frame[:place]
    if kind == 1:
        return frame[:place] + random.choice(LENGTHS_TO_LIE_WITH) + frame[place:]
    lie = random.choice(LENGTHS_TO_LIE_WITH)
    if kind == 2:
        return frame[:place] + lie + frame[place + len(lie) :]
    changed = bytearray(frame)
    for _ in range(random.randint(1, 3) if frame else 0):
        changed[random.randrange(len(frame))] ^= 1 << random.randrange(8)
    return bytes(changed)


@each_message
@given(chosen=st.data())
@examples(6)
def test_damage_is_a_wire_error_at_worst(declared: Declared, chosen: Any) -> None:
    message = chosen.draw(messages_of(declared.message))
    random = Random(chosen.draw(st.integers(0, 1 << 32)))
    for version, flexible in declared.versions():
        frame = encode_bytes(as_of(message, version), version, flexible=flexible)
        for _ in range(DAMAGES_PER_FRAME):
            _decode(declared, damaged(frame, random), version, flexible=flexible)


@each_message
def test_a_lie_about_a_length_costs_no_memory(declared: Declared) -> None:
    for version, flexible in declared.versions():
        frame = encode_bytes(as_of(declared.message(), version), version, flexible=flexible)
        _decode(declared, frame, version, flexible=flexible)  # compiles the decoder
        tracemalloc.start()
        for place in range(len(frame)):
            for lie in LENGTHS_TO_LIE_WITH:
                bad = frame[:place] + lie + frame[place:] + bytes(100)
                _decode(declared, bad, version, flexible=flexible)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < 200_000


def _decode(declared: Declared, frame: bytes, version: int, *, flexible: bool) -> None:
    try:
        message = decode_whole(declared.message, memoryview(frame), version, flexible=flexible)
    except WireError:
        return
    encode_bytes(message, version, flexible=flexible)  # what was let in can go out again
