"""What a command says when it cannot do what was asked: a sentence, and what to do next."""

from typing import Final

from twinlog.model.errors import ErrorCode, error_name

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


class CliError(Exception):
    """The command failed; the text is for the user."""


class UsageError(Exception):
    """The command line makes no sense; the text is for the user, beside the usage."""


NEXT_STEPS: Final[dict[int, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "See which topics there are with kafka-topics.sh --list.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Choose another name, or pass --if-not-exists.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Names have letters, digits, '.', '_' and '-'.",
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "Give --replication-factor, at most the number of brokers."
    ),
    ErrorCode.INVALID_PARTITIONS: "Give --partitions, more than there are now.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Set delete.topic.enable=true on the brokers.",
    ErrorCode.NON_EMPTY_GROUP: "Stop the members of the group first.",
    ErrorCode.GROUP_ID_NOT_FOUND: (
        "See which groups there are with kafka-consumer-groups.sh --list."
    ),
    ErrorCode.CLUSTER_MIRROR_ALREADY_EXISTS: "Choose another name, or use the mirror as it is.",
    ErrorCode.UNKNOWN_CLUSTER_MIRROR: (
        "See which mirrors there are with kafka-cluster-mirrors.sh --list."
    ),
    ErrorCode.TOPIC_ALREADY_IN_CLUSTER_MIRROR: "Stop it in its other mirror first.",
    ErrorCode.CLUSTER_MIRROR_NOT_EMPTY: (
        "Stop its topics first: kafka-cluster-mirrors.sh --stop --topics '.*'."
    ),
    ErrorCode.INVALID_CLUSTER_MIRROR_STATE: (
        "See its state with kafka-cluster-mirrors.sh --describe, and try again when it settles."
    ),
    ErrorCode.INVALID_REGULAR_EXPRESSION: "Patterns are regular expressions for whole names.",
    ErrorCode.UNSUPPORTED_VERSION: "Is --bootstrap-server a twinlog broker of this version?",
    ErrorCode.REQUEST_TIMED_OUT: "The broker is busy or its cluster is not whole; try again.",
    ErrorCode.UNKNOWN_SERVER_ERROR: "The broker's log says more.",
}


def sentence(code: int, why: str | None) -> str:
    """Say what an error code means: the broker's own words, the code's name, the next step."""
    said = (why or "").strip().removeprefix(f"{error_name(code)}: ").rstrip(".")
    what = f"{said} ({error_name(code)})" if said else error_name(code)
    step = NEXT_STEPS.get(code, "")
    return f"{what}. {step}".strip()


def expect_ok(code: int, why: str | None, *, doing: str) -> None:
    """Raise CliError, beginning with what could not be done, unless ``code`` is NONE."""
    if code != ErrorCode.NONE:
        raise CliError(f"{doing}: {sentence(code, why)}")
