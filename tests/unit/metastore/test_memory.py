from twinlog.metastore.memory import MemoryTable
from twinlog.metastore.store import Committed, Delete, Put, Revision


def test_a_transaction_that_changes_nothing_takes_no_revision() -> None:
    table = MemoryTable()
    written = table.transact((), (Delete(b"a"),), is_leased=False)
    assert (written.outcome, written.batch) == (Committed(Revision(0)), None)


def test_keys_stay_sorted_through_puts_and_deletes() -> None:
    table = MemoryTable()
    table.transact((), [Put(key, b"") for key in (b"c", b"a", b"b")], is_leased=False)
    table.transact((), (Delete(b"b"), Put(b"a", b"again")), is_leased=False)
    assert [entry.key for entry in table.list(b"").entries] == [b"a", b"c"]
