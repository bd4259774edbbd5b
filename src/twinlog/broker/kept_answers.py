"""Whole answers that say nothing but what the cluster image says, kept until it changes.

Metadata of a thousand topics takes 2 ms to make, and clients ask for the same again and again.
"""

import struct
from typing import Final

from twinlog.cluster.image import ClusterImage
from twinlog.wire.codec import Parts

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
_CORRELATION_ID: Final = struct.Struct(">i")
_BEFORE_ID_BYTES: Final = 4  # the frame's length
_AFTER_ID_BYTES: Final = 8

Question = tuple[int, int, bytes]
"""Api key, version, and the body of the request."""


class KeptAnswers:
    """Answers to questions asked of one image; those of another image are forgotten."""

    __slots__ = ("_answers", "_bytes_max", "_image", "_kept_bytes")

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        """Begin with none; ``bytes_max`` bounds questions and answers together."""
        self._bytes_max: Final = bytes_max
        self._image: ClusterImage | None = None
        self._answers: Final[dict[Question, tuple[bytes, bytes]]] = {}
        self._kept_bytes = 0

    def find(self, image: ClusterImage, question: Question, correlation_id: int) -> Parts | None:
        """Give the answer's frame for another request that asks the same."""
        if image is not self._image:
            return None
        kept = self._answers.get(question)
        if kept is None:
            return None
        length, rest = kept
        return [length + _CORRELATION_ID.pack(correlation_id), rest]

    def keep(self, image: ClusterImage, question: Question, frame: bytes) -> None:
        """Keep an answer's whole frame; when there is no room, all that is kept goes first."""
        size_bytes = len(question[2]) + len(frame)
        if image is not self._image or self._kept_bytes + size_bytes > self._bytes_max:
            self._image = image
            self._answers.clear()
            self._kept_bytes = 0
        if size_bytes <= self._bytes_max:
            self._answers[question] = frame[:_BEFORE_ID_BYTES], frame[_AFTER_ID_BYTES:]
            self._kept_bytes += size_bytes
