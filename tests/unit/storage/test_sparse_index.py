"""An index finds what a linear search finds, whether its entries are on disk or still in memory."""

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.logs import home
from twinlog.storage.sparse_index import (
    OFFSET_ENTRY,
    PAGE_ENTRIES,
    TIME_ENTRY,
    WAITING_BYTES_MAX,
    SparseIndex,
)

rising = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 5_000)), max_size=40)


def filled(path: Path, steps: list[tuple[int, int]], written: int) -> SparseIndex:
    index = SparseIndex(home().files, str(path), OFFSET_ENTRY)
    first = second = 0
    for at, (up, on) in enumerate(steps):
        first, second = first + up, second + on
        index.append(first, second)
        if at + 1 == written:
            index.write()
    return index


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(steps=rising, written=st.integers(0, 40), value=st.integers(0, 1_000))
def test_it_agrees_with_a_list(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], written: int, value: int
) -> None:
    path = new_file(tmp_path_factory)
    index = filled(path, steps, written)
    entries = [index.entry(at) for at in range(len(index))]
    assert len(entries) == len(steps)
    assert index.last() == (entries[-1] if entries else None)
    for column in (0, 1):
        count = bisect_right([entry[column] for entry in entries], value)
        assert index.count_up_to(value, column=column) == count
        assert index.find(value, column=column) == (entries[count - 1] if count else None)
    keep = min(value, len(entries))
    index.keep_first(keep)
    index.write()
    again = SparseIndex(home().files, str(path), OFFSET_ENTRY)
    assert [again.entry(at) for at in range(len(again))] == entries[:keep]


def new_file(factory: pytest.TempPathFactory) -> Path:
    """Give a path that no other example uses."""
    return factory.mktemp("index") / "0.index"


def test_entries_are_written_a_page_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "0.timeindex"
    index = SparseIndex(home().files, str(path), TIME_ENTRY)
    fitting = WAITING_BYTES_MAX // TIME_ENTRY.size
    for at in range(fitting):
        index.append(at, at)
    assert not path.exists()
    index.append(fitting, fitting)
    assert path.stat().st_size == WAITING_BYTES_MAX
    assert len(index) == fitting + 1
    index.write()
    assert path.stat().st_size == (fitting + 1) * TIME_ENTRY.size


def test_a_torn_entry_at_the_end_is_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(OFFSET_ENTRY.pack(1, 2) + b"\0\0\0")
    index = SparseIndex(home().files, str(path), OFFSET_ENTRY)
    assert len(index) == 1
    index.append(3, 4)
    index.write()
    assert path.read_bytes() == OFFSET_ENTRY.pack(1, 2) + OFFSET_ENTRY.pack(3, 4)


def test_an_index_of_many_pages_is_searched_page_by_page(tmp_path: Path) -> None:
    index = SparseIndex(home().files, str(tmp_path / "0.index"), OFFSET_ENTRY)
    for at in range(3 * PAGE_ENTRIES + 9):
        index.append(2 * at, 10 * at)
        if at == 3 * PAGE_ENTRIES + 4:
            index.write()
    entries = [index.entry(at) for at in range(len(index))]
    for column, step in ((0, 2), (1, 10)):
        values = [entry[column] for entry in entries]
        for value in range(-1, values[-1] + 2, step // 2):
            assert index.count_up_to(value, column=column) == bisect_right(values, value)
