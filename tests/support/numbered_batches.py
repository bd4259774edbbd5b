"""Batches whose records carry running numbers, made and read fast enough to be a load."""

import re
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Final

from crc32c import crc32c

from twinlog.model.ids import Offset
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import ATTRIBUTES_POSITION, CRC_POSITION, iter_headers
from twinlog.wire.records.build import build_batch
from twinlog.wire.records.records import Record

_MARK: Final = b"No:"
_DIGITS: Final = 12
_NUMBER: Final = re.compile(rb"No:(\d{12})")
_CRC: Final = struct.Struct(">I")


class NotOnceError(Exception):
    """A record did not arrive, or not once, or not in its turn."""


class NumberedBatches:
    """Makes batches of records with these payloads; only numbers and checksum differ."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self.record_count: Final = len(payloads)
        blank = _MARK + b"0" * _DIGITS
        now_ms = time.time_ns() // 1_000_000
        records = [
            Record(Offset(index), now_ms, None, blank + payload[len(blank) :], ())
            for index, payload in enumerate(payloads)
        ]
        self._model: Final = build_batch(records)
        self._places: Final = [
            found.start() + len(_MARK) for found in re.finditer(re.escape(blank), self._model)
        ]
        assert len(self._places) == self.record_count, "a payload holds the mark of a number"

    @property
    def batch_bytes(self) -> int:
        """The size of each."""
        return len(self._model)

    def batch(self, first: int) -> bytearray:
        """Give the batch of the records ``first`` and following."""
        made = bytearray(self._model)
        for number, place in enumerate(self._places, first):
            made[place : place + _DIGITS] = b"%012d" % number
        _CRC.pack_into(made, CRC_POSITION, crc32c(memoryview(made)[ATTRIBUTES_POSITION:]))
        return made


def count_in_turn(records: Buffer, *, first: int, offset: Offset) -> tuple[int, Offset]:
    """Give how many records there are and the offset after them.

    Raises NotOnceError unless their numbers go on from ``first`` and their offsets from
    ``offset``. An incomplete batch at the end is left for the next answer.
    """
    end, next_offset = 0, offset
    for position, header in iter_headers(records):
        if header.base_offset != next_offset:
            raise NotOnceError(f"offset {header.base_offset} follows after {next_offset - 1}")
        end, next_offset = position + header.length, Offset(header.next_offset)
    numbers = list(_numbers_in(memoryview(records)[:end]))
    if numbers != list(range(first, first + len(numbers))):
        raise NotOnceError(f"records {_abridged(numbers)} came where {first} was to come next")
    return len(numbers), next_offset


def _numbers_in(records: memoryview) -> Iterator[int]:
    return map(int, _NUMBER.findall(records))


def _abridged(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:3])) + (f" to {numbers[-1]}" if len(numbers) > 3 else "")
