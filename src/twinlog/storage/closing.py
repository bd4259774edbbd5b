"""The flush before a clean stop: many logs at a time, each only if it was written to."""

from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from twinlog.model.errors import DiskError
from twinlog.storage.flushing import Flush
from twinlog.storage.log import PartitionLog

FLUSHING_THREADS: Final = 32
"""Flushes that wait together share the disk's work: a journal is written once for all of them."""
FILES_AT_ONCE_MAX: Final = 256
"""Files held open for flushes, more only if one log alone has them."""

Begun = list[tuple[PartitionLog, Flush]]


def flush_for_good(logs: Iterable[PartitionLog]) -> list[str]:
    """Complete the files of logs and wait for the disk; give why some could not be flushed.

    Batches, indexes and the epoch file must be safe before a dir is marked as left cleanly, since
    a start that finds the mark believes them.
    """
    failures: list[str] = []
    begun: Begun = []
    with ThreadPoolExecutor(FLUSHING_THREADS) as threads:
        for log in logs:
            try:
                flush = log.begin_close()
            except DiskError as error:
                failures.append(str(error))
                continue
            if flush.files:
                begun.append((log, flush))
            if sum(len(one.files) for _, one in begun) >= FILES_AT_ONCE_MAX:
                failures += _run(begun, threads)
                begun.clear()
        failures += _run(begun, threads)
    return failures


def _run(begun: Begun, threads: Executor) -> list[str]:
    runs = [(log, flush, threads.submit(log.run_flush, flush)) for log, flush in begun]
    failures: list[str] = []
    for log, flush, run in runs:
        try:
            run.result()
        except DiskError as error:
            failures.append(str(error))
            continue
        log.end_flush(flush)
    return failures
