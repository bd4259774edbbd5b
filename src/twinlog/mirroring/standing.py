"""What is durable of a mirrored partition's state, and how a failure and its retries change it."""

from dataclasses import dataclass
from typing import Final

from twinlog.mirroring.effects import SaveState
from twinlog.mirroring.policy import RetryPolicy
from twinlog.mirroring.records import NON_RETRYABLE, PartitionState
from twinlog.mirroring.states import (
    DesiredState,
    MirrorState,
    next_target,
    state_after_failure,
)

ALIGNED: Final = frozenset(
    {
        MirrorState.EPOCH_FENCING,
        MirrorState.MIRRORING,
        MirrorState.PAUSING,
        MirrorState.PAUSED,
    }
)


@dataclass(slots=True)
class Standing:
    """The state, its epoch, and the last failure.

    ``previous`` is what a FAILED partition was doing; of one that is STOPPING, where it came from.
    A stop that failed keeps that as long as nothing of the source was here: or its retry would take
    what was written here for the source's.
    ``error`` and ``retry_attempt`` stay until something succeeds.
    """

    state: MirrorState = MirrorState.UNKNOWN
    state_epoch: int = 0
    previous: MirrorState = MirrorState.UNKNOWN
    error: str | None = None
    retry_attempt: int = 0
    stop_failed: bool = False
    """Whether it was a stop that failed; after a kill it may be tried at once."""

    def restore(self, actual: PartitionState) -> None:
        """Take over what was durable."""
        self.state, self.state_epoch = MirrorState(actual.state), actual.state_epoch
        self.previous = MirrorState(actual.previous_state)
        self.error, self.retry_attempt = actual.error, actual.retry_attempt
        self.stop_failed = self.previous == MirrorState.STOPPING

    def target(self, desired: DesiredState) -> MirrorState:
        """Give the state to write next; a stop that failed waits for its retry."""
        if self.state == MirrorState.FAILED and self.stop_failed:
            return self.state
        return next_target(self.state, desired)

    @property
    def retry_target(self) -> MirrorState:
        """Give the state in which a FAILED partition tries again."""
        return MirrorState.STOPPING if self.stop_failed else state_after_failure(self.previous)

    @property
    def had_begun(self) -> bool:
        """Whether a partition that is STOPPING had got as far as to hold the source's records."""
        return self.previous not in (MirrorState.UNKNOWN, MirrorState.LOG_ALIGNMENT)

    @property
    def is_aligned(self) -> bool:
        """Whether the log is known to hold nothing but the source's records, and no stop is on.

        Of one that has failed for good the source may have other records by now, or another topic.
        """
        if self.has_failed_for_good:
            return False
        doing = self.previous if self.state == MirrorState.FAILED else self.state
        return doing in ALIGNED

    @property
    def has_failed_for_good(self) -> bool:
        """Whether only an operator can mend it."""
        return self.state == MirrorState.FAILED and self.retry_attempt == NON_RETRYABLE

    def fail(self, why: str, *, is_retryable: bool) -> None:
        """Note a failure of what the present state stands for."""
        if self.state == MirrorState.STOPPING:
            self.stop_failed = True
            if self.had_begun:
                self.previous = self.state
        elif self.state != MirrorState.FAILED:
            self.previous = self.state
        self.error = why
        self.retry_attempt = max(self.retry_attempt, 0) + 1 if is_retryable else NON_RETRYABLE

    def forgive(self) -> None:
        """Forget the last failure."""
        self.error, self.retry_attempt = None, 0

    def retry_delay_ms(self, retry: RetryPolicy, chance: float) -> int | None:
        """Give how long a FAILED partition waits; None when an operator must act.

        A stop is tried for ever: nothing else can make the partition writable.
        """
        is_left = 0 <= self.retry_attempt <= retry.attempts_max and retry.attempts_max > 0
        if not is_left and not self.stop_failed:
            return None
        return retry.delay_ms(self.retry_attempt, chance)

    def leave_for(self, state: MirrorState) -> SaveState:
        """Give the record of a step to ``state``."""
        if state == MirrorState.STOPPING:
            if self.state not in (MirrorState.FAILED, MirrorState.STOPPING):
                self.previous = self.state
        elif state != MirrorState.FAILED:
            self.previous = MirrorState.UNKNOWN
        if state != MirrorState.FAILED:
            self.stop_failed = False
        if state in (MirrorState.STOPPED, MirrorState.PAUSED):
            self.forgive()
        return SaveState(state, self.state_epoch, self.previous, self.error, self.retry_attempt)
