"""The accounting itself: what it must not let pass."""

from pathlib import Path

import pytest

from support.batches import batch
from support.live_clients import Acknowledged, Session
from support.record_ledger import Held, Ledger, Tail, check_session, records_in, tails_in

OF = ("orders", 0)
HELD: Held = {0: "a", 1: "b", 3: "c", 4: "d"}


def session(*offsets: int, resumed: dict[int, int] | None = None) -> Session:
    """Give what a consumer saw that was at those offsets."""
    made = Session()
    made.consumed[OF] = [(offset, HELD[offset]) for offset in offsets]
    made.resumed[OF] = resumed or {}
    return made


@pytest.mark.parametrize("seen", [(0, 1, 3, 4), (0, 1), ()])
def test_records_in_a_row_are_right(seen: tuple[int, ...]) -> None:
    assert check_session(session(*seen), {OF: None}, {OF: HELD}) == len(seen)


@pytest.mark.parametrize("seen", [(1, 3), (0, 3), (0, 0), (0, 1, 0)])
def test_what_is_skipped_or_repeated_is_found(seen: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError):
        check_session(session(*seen), {OF: None}, {OF: HELD})


def test_after_a_rebalance_a_consumer_goes_back_to_its_last_commit_and_no_further() -> None:
    check_session(session(1, 3, 1, 3, 4, resumed={2: 1}), {OF: 1}, {OF: HELD})
    for committed, seen in ((3, (1, 3, 1)), (0, (1, 3, 0)), (0, (1, 4))):
        with pytest.raises(AssertionError):
            check_session(session(*seen, resumed={2: committed, 1: 0}), {OF: 1}, {OF: HELD})


def test_each_acknowledged_record_is_in_one_place(tmp_path: Path) -> None:
    path = tmp_path / f"{3:020d}.to-5.orders-0.lost.log"
    path.write_bytes(batch([(None, b"x"), (None, b"y")], base_offset=3))
    assert tails_in(tmp_path) == [Tail(path, OF, 3, 5)]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(batch([(None, b"a"), (None, b"b")]))
    logs = {OF: records_in(folder)}
    assert logs == {OF: {0: "a", 1: "b"}}
    ledger = Ledger([Acknowledged("a", OF, 0), Acknowledged("y", OF, 4)])
    assert ledger.account(logs, tails_in(tmp_path)) == {"log": 1, "tail": 1}
    for wrong in (Acknowledged("a", OF, 1), Acknowledged("z", OF, 9)):
        with pytest.raises(AssertionError, match="nothing"):
            Ledger([wrong]).account(logs, tails_in(tmp_path))
    with pytest.raises(AssertionError, match="has twice"):
        Ledger().account({OF: {0: "a", 1: "a"}}, [])
