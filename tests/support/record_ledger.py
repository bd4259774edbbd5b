"""Accounts for acknowledged records: in which log or saved tail is each, and at which offset."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka.record import MemoryRecords

from support.live_clients import Acknowledged, Partition, Session
from support.log_bytes import Batch, batches_in, batches_of

_CONTROL: Final = 0x20

Held = dict[int, str]
"""What stands at each offset; control records are left out."""


def records_in(folder: Path) -> Held:
    """Read the records of a partition's log from its files."""
    return _records_of(batches_of(folder))


def _records_of(batches: Iterable[Batch]) -> Held:
    held: Held = {}
    for batch in batches:
        if batch.attributes & _CONTROL:
            continue
        records = MemoryRecords(batch.content)
        while (some := records.next_batch()) is not None:
            for record in some:
                assert record.offset not in held, f"offset {record.offset} is there twice"
                held[record.offset] = record.value.decode()
    return held


@dataclass(frozen=True, slots=True)
class Tail:
    """A file of what was cut off one partition."""

    path: Path
    of: Partition
    first: int
    end: int

    @property
    def records(self) -> Held:
        """Read what it holds."""
        return _records_of(batches_in(self.path))

    @classmethod
    def at(cls, path: Path) -> "Tail":
        """Read the name of a file."""
        first, to, rest = path.name.split(".", 2)
        topic, _, number = rest.partition(".lost")[0].rpartition("-")
        return cls(path, (topic, int(number)), int(first), int(to.removeprefix("to-")))


def tails_in(log_folder: Path) -> list[Tail]:
    """Give the saved tails of a broker."""
    return [Tail.at(path) for path in sorted(log_folder.glob("*.lost*.log"))]


@dataclass(slots=True)
class Ledger:
    """Every record that a broker ever said it has."""

    acknowledged: list[Acknowledged] = field(default_factory=list)

    def account(self, logs: dict[Partition, Held], tails: Iterable[Tail]) -> Counter[str]:
        """Find each record in its log or in a saved tail, at its offset, and once in all."""
        saved: dict[tuple[Partition, int], list[str]] = {}
        for tail in tails:
            for offset, value in tail.records.items():
                assert tail.first <= offset < tail.end, f"{tail.path.name} holds {offset}"
                saved.setdefault((tail.of, offset), []).append(value)
        wrong: list[str] = []
        found: Counter[str] = Counter()
        for one in self.acknowledged:
            places = [
                name
                for name, held in (
                    ("log", [logs[one.of].get(one.offset)]),
                    ("tail", saved.get((one.of, one.offset), [])),
                )
                for value in held
                if value == one.value
            ]
            if len(places) == 1:
                found[places[0]] += 1
            else:
                wrong.append(f"{one} is in {places or 'nothing'}")
        assert not wrong, f"{len(wrong)} of {len(self.acknowledged)}: {wrong[:5]}"
        for of, held in logs.items():
            twice = [value for value, count in Counter(held.values()).items() if count > 1]
            assert not twice, f"{of} has twice: {twice[:5]}"
        return found


def check_session(
    session: Session, begins: dict[Partition, int | None], logs: dict[Partition, Held]
) -> int:
    """See that a consumer got all from where its group stood on, in order; give how much.

    Only where its group gave it a partition anew it may have gone back, to the last commit at most.
    """
    for of, consumed in session.consumed.items():
        begin = begins[of] or 0
        held = sorted(logs[of].items())
        due = bisect_left(held, (begin, ""))
        for number, seen in enumerate(consumed):
            expected = held[due] if due < len(held) else None
            if seen != expected and number in session.resumed[of]:
                least = max(session.resumed[of][number], begin)
                went_back = least <= seen[0] <= consumed[number - 1][0]
                assert went_back, f"{of} is resumed at {seen}, committed {least}, due {expected}"
                due = bisect_left(held, (seen[0], ""))
                expected = held[due]
            assert seen == expected, f"{of}, record {number} from {begin} on: {seen}, {expected}"
            due += 1
    return sum(map(len, session.consumed.values()))
