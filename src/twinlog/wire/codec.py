"""A declaration and a version become an encoder and a decoder, compiled once and kept.

Record batches are never copied: the decoder gives a ``memoryview`` into the frame, the encoder a
list of parts with the batches in it. Unknown tagged fields are skipped. Everything else that does
not fit is a WireError which names the message and the version, and the byte or the field.
"""

import struct
from typing import Any, Final, TypeVar

from twinlog.model.errors import WireError
from twinlog.wire.compile_decoder import Decoder, compile_decoder
from twinlog.wire.compile_encoder import Encoder, compile_encoder
from twinlog.wire.misfits import find_misfit
from twinlog.wire.primitives import Buffer, Sized
from twinlog.wire.schema import Api

T = TypeVar("T")
Parts = list[Buffer | Sized]

_ENCODERS: Final[dict[tuple[type[Any], int, bool], Encoder]] = {}
_DECODERS: Final[dict[tuple[type[Any], int, bool], Decoder]] = {}


def encode_request(api: Api[Any, Any], message: Any, version: int) -> Parts:
    """Give the body of a request as buffers in order; a field that ``version`` lacks is left out.

    Raises WireError when a value does not fit its field.
    """
    return encode_parts(message, version, flexible=api.is_flexible(version))


def encode_response(api: Api[Any, Any], message: Any, version: int) -> Parts:
    """Give the body of a response; as ``encode_request``."""
    return encode_parts(message, version, flexible=api.is_flexible(version))


def decode_request(api: Api[T, Any], frame: Buffer, version: int, position: int = 0) -> T:
    """Read the body of a request from ``position`` of ``frame`` on.

    Raises WireError when the bytes are not such a message. Bytes that follow it are passed over,
    as Kafka does: librdkafka 2.16 ends Metadata v13 for all topics with three that mean nothing.
    """
    flexible = api.is_flexible(version)
    return decode_from(api.request, frame, version, flexible=flexible, at=position)[0]


def decode_response(api: Api[Any, T], frame: Buffer, version: int, position: int = 0) -> T:
    """Read the body of a response, which must fill ``frame`` from ``position`` to its end."""
    return decode_whole(
        api.response, frame, version, flexible=api.is_flexible(version), at=position
    )


def encode_parts(message: Any, version: int, *, flexible: bool) -> Parts:
    """Give any message as buffers: small fields joined, record batches as they are."""
    out: list[Any] = []
    marks: list[int] = []
    try:
        encoder(type(message), version, flexible=flexible)(message, out, marks)
        if not marks:
            return [b"".join(out)]
        parts: Parts = []
        start = 0
        for mark in marks:
            parts.append(b"".join(out[start:mark]))
            parts.append(out[mark])
            start = mark + 1
        if start < len(out):
            parts.append(b"".join(out[start:]))
    except (struct.error, ArithmeticError, AttributeError, TypeError, ValueError) as error:
        name = f"{type(message).__name__} v{version}"
        why = find_misfit(message, version, flexible=flexible) or error
        raise WireError(f"{name} cannot be encoded: {why}") from error
    return parts


def encode_bytes(message: Any, version: int, *, flexible: bool) -> bytes:
    """Give a message without file regions as one piece of bytes."""
    return b"".join(encode_parts(message, version, flexible=flexible))  # type: ignore[arg-type]


def decode_whole(cls: type[T], frame: Buffer, version: int, *, flexible: bool, at: int = 0) -> T:
    """Read one message that fills ``frame`` from byte ``at`` on."""
    message, end = decode_from(cls, frame, version, flexible=flexible, at=at)
    if end != len(frame):
        raise WireError(f"{cls.__name__} v{version} ends at byte {end} of {len(frame)}")
    return message


def decode_from(
    cls: type[T], frame: Buffer, version: int, *, flexible: bool, at: int = 0
) -> tuple[T, int]:
    """Read one message from byte ``at`` on; give it and the position after it."""
    try:
        message, end = decoder(cls, version, flexible=flexible)(frame, at, len(frame))
    except (struct.error, IndexError, ValueError, WireError) as error:
        name = f"{cls.__name__} v{version}"
        raise WireError(f"{name} of {len(frame)} bytes cannot be read: {error}") from error
    return message, end


def encoder(cls: type[Any], version: int, *, flexible: bool) -> Encoder:
    """Give the encoder of ``cls`` in ``version``, compiled at the first call."""
    found = _ENCODERS.get((cls, version, flexible))
    if found is None:
        found = _ENCODERS[cls, version, flexible] = compile_encoder(cls, version, flexible=flexible)
    return found


def decoder(cls: type[Any], version: int, *, flexible: bool) -> Decoder:
    """Give the decoder of ``cls`` in ``version``, compiled at the first call."""
    found = _DECODERS.get((cls, version, flexible))
    if found is None:
        found = _DECODERS[cls, version, flexible] = compile_decoder(cls, version, flexible=flexible)
    return found
