"""A log agrees with a plain list of batches, whatever happens to it: Hypothesis plays the owner."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.batches import batch, marker
from support.logs import bytes_of, open_log
from twinlog.model.errors import ApiError
from twinlog.storage.settings import LogSettings
from twinlog.wire.records.batch import BatchHeader, read_header

SETTINGS = LogSettings(segment_bytes=700, index_interval_bytes=100, segment_ms=10_000)


class LogAgreesWithList(RuleBasedStateMachine):
    """The model is a list of batches, a start and an end."""

    @initialize(start=st.sampled_from([0, 7]))
    def begin(self, start: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.log = open_log(self.folder, SETTINGS, log_start=start)
        self.batches: list[bytes] = []
        self.start = self.end = start
        self.clock = 1_000

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def headers(self) -> list[BatchHeader]:
        return [read_header(one, 0) for one in self.batches]

    @rule(
        counts=st.lists(st.integers(1, 4), min_size=1, max_size=6),
        gap=st.sampled_from([0, 0, 0, 5]),
        value_bytes=st.sampled_from([1, 60]),
        step_ms=st.integers(-300, 3_000),
        epoch=st.integers(0, 2),
        cut=st.integers(0, 40),
    )
    def append_copies(
        self, counts: list[int], gap: int, value_bytes: int, step_ms: int, epoch: int, cut: int
    ) -> None:
        epoch += max((header.leader_epoch for header in self.headers()), default=0)
        made = []
        base = self.end + gap
        for at, count in enumerate(counts):
            self.clock += step_ms
            made.append(
                batch(
                    count,
                    base_offset=base,
                    leader_epoch=epoch,
                    timestamp=self.clock,
                    value_bytes=value_bytes,
                    producer=(at % 2, 0, base),
                )
            )
            base += count
        torn = batch(1, base_offset=base)[:cut]
        done = self.log.append_as_follower(b"".join(made) + torn)
        assert done.taken_bytes == sum(map(len, made))
        assert (done.first_offset, done.last_offset) == (self.end + gap, base - 1)
        self.batches += made
        self.end = base

    @rule(kind=st.integers(0, 1), markers=st.integers(0, 1))
    def append_transaction(self, kind: int, markers: int) -> None:
        epoch = max((header.leader_epoch for header in self.headers()), default=0)
        producer_id = 100 + self.end
        made = [
            batch(
                1,
                base_offset=self.end,
                leader_epoch=epoch,
                producer=(producer_id, 0, 0),
                is_transactional=True,
            )
        ]
        if markers:
            made.append(
                marker(kind, base_offset=self.end + 1, leader_epoch=epoch, producer_id=producer_id)
            )
        self.log.append_as_follower(b"".join(made))
        self.batches += made
        self.end += len(made)

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        end = max(self.end - back, 0)
        if end < self.start:
            return
        got = self.log.truncate_to(end)
        kept = [one for one in self.batches if read_header(one, 0).next_offset <= end]
        if len(kept) < len(self.batches):
            end = min(end, read_header(self.batches[len(kept)], 0).base_offset)
        self.batches = kept
        self.end = end
        self.start = min(self.start, end)
        assert got == end

    @rule(share=st.floats(0, 1))
    def raise_start(self, share: float) -> None:
        self.start += int((self.end - self.start) * share)
        self.log.raise_start_to(self.start)

    @rule(start=st.integers(0, 50))
    def restart(self, start: int) -> None:
        self.log.restart_at(start)
        self.batches = []
        self.start = self.end = start

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule()
    def stop_and_start(self) -> None:
        producers, unfinished = self.log.producer_count, self.log.open_transactions()
        self.log.close(is_clean=True)
        self.log = open_log(
            self.folder, SETTINGS, log_start=self.start, recovery_point=self.log.recovery_point
        )
        assert self.log.producer_count == producers
        assert self.log.open_transactions() == unfinished

    @rule(garbage=st.binary(max_size=80))
    def crash_leaving_garbage(self, garbage: bytes) -> None:
        self.tear(garbage)
        before = self.log
        self.log = open_log(
            self.folder,
            SETTINGS,
            log_start=self.start,
            recovery_point=before.recovery_point,
            is_clean=False,
        )
        assert self.log.open_transactions() == before.open_transactions()

    def tear(self, garbage: bytes) -> None:
        newest = max(self.folder.glob("*.log"))
        with newest.open("ab") as file:
            file.write(garbage)

    @precondition(lambda self: self.batches)
    @rule(lost_bytes=st.integers(1, 100))
    def crash_losing_the_tail(self, lost_bytes: int) -> None:
        newest = max(self.folder.glob("*.log"))
        size = newest.stat().st_size
        lost_bytes = min(lost_bytes, size)
        with newest.open("ab") as file:
            file.truncate(size - lost_bytes)
        while self.batches and lost_bytes > 0:
            lost = self.batches.pop()
            lost_bytes -= len(lost)
            self.end = read_header(lost, 0).base_offset
        base = int(newest.stem)
        left = self.batches[-1:]
        self.end = max(base, read_header(left[0], 0).next_offset if left else base)
        point = min(int(self.log.recovery_point), self.end)
        self.start = min(self.start, self.end)
        self.log = open_log(
            self.folder, SETTINGS, log_start=self.start, recovery_point=point, is_clean=False
        )

    @invariant()
    def ends_agree(self) -> None:
        assert (self.log.start, self.log.end) == (self.start, self.end)

    @invariant()
    def epochs_agree(self) -> None:
        expected: list[tuple[int, int]] = []
        for header in self.headers():
            if not expected or expected[-1][0] < header.leader_epoch:
                expected.append((header.leader_epoch, header.base_offset))
        found = [(entry.epoch, entry.start) for entry in self.log.epochs.entries]
        live = [one for one in expected if one[1] > self.start]
        assert [one for one in found if one[1] > self.start] == live

    @invariant()
    def every_offset_is_read(self) -> None:
        for offset in range(self.start, self.end + 1):
            want = b"".join(
                one for one in self.batches if read_header(one, 0).last_offset >= offset
            )
            got = bytes_of(
                self.log.read(offset, max_bytes=10_000, up_to=self.end, at_least_one=False)
            )
            assert want.startswith(got)
            assert bool(got) == bool(want)

    @invariant()
    def the_high_watermark_is_never_passed(self) -> None:
        for bound in range(self.start, self.end + 1):
            found = self.log.read(self.start, max_bytes=10_000, up_to=bound, at_least_one=True)
            if found is not None:
                assert found.bound <= bound
                got = bytes_of(found)
                last = [one for one in self.batches if got.endswith(one)]
                assert last, "it ends at a batch's end"
                assert read_header(last[-1], 0).next_offset <= bound

    @invariant()
    def times_are_found(self) -> None:
        timestamps = sorted({header.max_timestamp for header in self.headers()})
        for timestamp in [*timestamps[:3], *timestamps[-3:]]:
            want = next(
                (
                    max(header.base_offset, self.start)
                    for header in self.headers()
                    if header.max_timestamp >= timestamp and header.last_offset >= self.start
                ),
                None,
            )
            got = self.log.offset_for_time(timestamp)
            assert (got.offset if got else None) == want

    @invariant()
    def offsets_outside_are_refused(self) -> None:
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE"):
                self.log.read(offset, max_bytes=1, up_to=self.end, at_least_one=True)


TestLogAgreesWithList = pytest.mark.slow(LogAgreesWithList.TestCase)
TestLogAgreesWithList.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
